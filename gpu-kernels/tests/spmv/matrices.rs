//! Test matrices: small ones by hand, and seeded ones wider than a warp and a block.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use spm_formats::{Coo, Csr, Scalar};

/// Matrices whose row lengths cover what a kernel branches on.
pub(crate) fn all<T: Scalar>() -> Vec<(&'static str, Coo<T>)> {
    let sample =
        Coo::new(3, 3, vec![0, 0, 1, 2, 2], vec![0, 2, 1, 0, 2], (1..6).map(number).collect());
    vec![
        ("the 3 x 3 sample", sample.expect("five entries of a 3 x 3 matrix")),
        ("1 x 1", with_lengths(1, 1, |_, _| 1)),
        ("no entries", with_lengths(70, 3, |_, _| 0)),
        ("one entry in the last row", with_lengths(97, 5, |row, _| usize::from(row == 96))),
        ("short rows", with_lengths(300, 200, |_, rng| rng.random_range(0..5))),
        ("rows of all lengths", with_lengths(290, 150, |_, rng| rng.random_range(0..90))),
        ("long rows, wide", with_lengths(35, 1500, |_, rng| rng.random_range(200..900))),
        (
            "a dense row among short ones",
            with_lengths(400, 3000, |row, rng| match row {
                123 => 3000,
                124..200 => 0,
                _ => rng.random_range(1..4),
            }),
        ),
        (
            "two dense rows, first and last",
            with_lengths(65, 2500, |row, rng| match row {
                0 | 64 => 2500,
                _ => rng.random_range(0..3),
            }),
        ),
    ]
}

fn number<T: Scalar>(value: i32) -> T {
    T::from_f64(f64::from(value))
}

/// Row `i` has `length(i)` entries in distinct columns, ascending, with values in -1 to 1.
fn with_lengths<T: Scalar>(
    rows: usize,
    cols: usize,
    length: impl Fn(usize, &mut Pcg64Mcg) -> usize,
) -> Coo<T> {
    let mut rng = Pcg64Mcg::seed_from_u64(42);
    let (mut row_indices, mut col_indices, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let mut columns: Vec<u32> = (0..cols as u32).collect();
        let length = length(row, &mut rng).min(cols);
        for i in 0..length {
            columns.swap(i, rng.random_range(i..cols));
        }
        columns.truncate(length);
        columns.sort_unstable();
        for column in columns {
            row_indices.push(row as u32);
            col_indices.push(column);
            values.push(value(&mut rng));
        }
    }
    Coo::new(rows, cols, row_indices, col_indices, values).expect("indices inside the matrix")
}

fn value<T: Scalar>(rng: &mut impl Rng) -> T {
    T::from_f64(rng.random_range(-1.0..1.0))
}

/// A vector with elements in -1 to 1.
pub(crate) fn vector<T: Scalar>(length: usize) -> Vec<T> {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    (0..length).map(|_| value(&mut rng)).collect()
}

/// The triplets, which are sorted by row and column, as CSR.
pub(crate) fn csr<T: Scalar>(a: &Coo<T>) -> Csr<T> {
    let mut pointers = vec![0; a.rows() + 1];
    for &row in a.row_indices() {
        pointers[row as usize + 1] += 1;
    }
    for row in 0..a.rows() {
        pointers[row + 1] += pointers[row];
    }
    Csr::new((a.rows(), a.cols()), pointers, a.col_indices().to_vec(), a.values().to_vec()).unwrap()
}

/// The same structures with one value in all entries.
pub(crate) fn all_equal<T: Scalar>() -> Vec<(&'static str, Coo<T>)> {
    let equal = |a: Coo<T>| {
        let (rows, cols) = (a.rows(), a.cols());
        let (row_indices, col_indices, values) = a.into_arrays();
        let values = vec![T::from_f64(0.7); values.len()];
        Coo::new(rows, cols, row_indices, col_indices, values).expect("the same structure")
    };
    all().into_iter().map(|(name, a)| (name, equal(a))).collect()
}

/// [`all`], and matrices whose columns take 0, 8, 16 and 32 bits in the compact formats.
pub(crate) fn all_and_banded<T: Scalar>() -> Vec<(&'static str, Coo<T>)> {
    let mut matrices = all();
    for (name, cols, scale) in [
        ("five diagonals, cut at the edges", 130, 1),
        ("columns eight apart", 1200, 8),
        ("columns a thousand apart", 140_000, 1000),
        ("columns ten thousand apart", 1_400_000, 10_000),
    ] {
        let (mut row_indices, mut col_indices) = (Vec::new(), Vec::new());
        for row in 0..130_u32 {
            for diagonal in 0..5 {
                let column = (row + 7 * diagonal).checked_sub(14).map(|c| c * scale);
                if let Some(column) = column.filter(|&c| c < cols) {
                    row_indices.push(row);
                    col_indices.push(column);
                }
            }
        }
        let mut rng = Pcg64Mcg::seed_from_u64(9);
        let values = row_indices.iter().map(|_| value(&mut rng)).collect();
        let a = Coo::new(130, cols as usize, row_indices, col_indices, values);
        matrices.push((name, a.expect("indices inside the matrix")));
    }
    matrices
}
