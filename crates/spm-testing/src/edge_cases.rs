//! Matrices that kernels and conversions may trip over, and vectors to multiply them by.
//!
//! Sizes are arguments: the emulator takes smaller ones than a CPU.

use std::collections::BTreeSet;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use spm_formats::convert::csr_to_coo;
use spm_formats::{Coo, Csr, Scalar};

use crate::exact::{self, Whole};
use crate::generate;

/// Values that a sum must pass on as IEEE 754 says: a product of 0 and an infinite one is NaN.
pub const SPECIAL: [f64; 5] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];

/// `length` numbers with parts between -1 and 1.
pub fn vector<T: Scalar>(length: usize) -> Vec<T> {
    let part = T::Real::from_f64;
    let number = |i: f64| T::from_parts(part(libm::sin(i * 0.7)), part(libm::cos(i * 1.3)));
    (0..length).map(|i| number(i as f64)).collect()
}

/// A matrix of `shape` (rows, columns) with values between -1 and 1 at `entries`, pairs of a row and a
/// column.
///
/// # Panics
/// When an entry is outside of the shape.
pub fn with_entries<T: Scalar>(
    (rows, cols): (usize, usize),
    entries: impl IntoIterator<Item = (u32, u32)>,
) -> Coo<T> {
    let (row_indices, col_ind): (Vec<u32>, Vec<u32>) = entries.into_iter().unzip();
    let values = vector(row_indices.len());
    Coo::new(rows, cols, row_indices, col_ind, values).expect("entries inside of the matrix")
}

/// A matrix of `shape` (rows, columns) in which row i has `length(i, random)` entries, all of the row at
/// most, in random columns that ascend. Values are between -1 and 1.
pub fn with_lengths<T: Scalar>(
    (rows, cols): (usize, usize),
    length: impl Fn(usize, &mut Lengths) -> usize,
) -> Coo<T> {
    let mut random = Lengths(Pcg64Mcg::seed_from_u64(0x5eed));
    let mut entries = Vec::new();
    for row in 0..rows {
        let mut columns: Vec<u32> = (0..cols as u32).collect();
        let length = length(row, &mut random).min(cols);
        for i in 0..length {
            columns.swap(i, random.between(i, cols));
        }
        columns.truncate(length);
        columns.sort_unstable();
        entries.extend(columns.into_iter().map(|col| (row as u32, col)));
    }
    with_entries((rows, cols), entries)
}

/// Dense blocks of `size` x `size` with whole numbers as values: up to six in each of 17 block rows of 11 block
/// columns. The last block row and block column have `fewer` (rows, columns) less, and every 13th entry is
/// missing where there are `holes`.
pub fn blocks<T: Scalar>(size: u32, fewer: (u32, u32), holes: bool) -> Coo<T> {
    let (rows, cols) = (17 * size - fewer.0, 11 * size - fewer.1);
    let mut entries = BTreeSet::new();
    for row in 0..rows {
        let block_row = row / size;
        for block in 0..(block_row * 5 + 2) % 7 {
            let first = (block_row * 3 + block * block * 2) % 11 * size;
            entries.extend((first..cols.min(first + size)).map(|col| (row, col)));
        }
    }
    let kept = entries.into_iter().filter(|(row, col)| !holes || (row * 7 + col * 3) % 13 > 0);
    let pattern = with_entries((rows as usize, cols as usize), kept);
    exact::matrix(&pattern, Whole::Wide)
}

/// Random numbers for the lengths of rows, the same in every run.
#[derive(Debug)]
pub struct Lengths(Pcg64Mcg);

impl Lengths {
    /// A number from `first` to below `end`; `first` where there is none.
    pub fn between(&mut self, first: usize, end: usize) -> usize {
        first + (self.0.next_u64() % end.saturating_sub(first).max(1) as u64) as usize
    }
}

/// The pattern of `a` with the value `value` in all entries.
pub fn with_value<T: Scalar>(a: Coo<T>, value: f64) -> Coo<T> {
    let (rows, cols) = (a.rows(), a.cols());
    let (row_indices, col_ind, mut values) = a.into_arrays();
    values.fill(T::from_f64(value));
    Coo::new(rows, cols, row_indices, col_ind, values).expect("the same pattern")
}

/// The matrix that a generator's `name` describes ([`generate::named`]).
///
/// # Panics
/// When there is no such generator.
pub fn generated<T: Scalar>(name: &str) -> Coo<T> {
    let a: Csr<T> = generate::named(name).and_then(|spec| spec.generate()).expect(name);
    csr_to_coo(a.view())
}

/// Matrices without rows, columns or entries, of one row, one column and one entry, with names.
/// `long` is the larger number of rows or columns, at least 100.
pub fn shapes<T: Scalar>(long: usize) -> Vec<(String, Coo<T>)> {
    let empty = [(0, 0), (0, 1), (0, long), (1, 0), (long, 0), (1, 1), (long, 7), (7, long)];
    let mut matrices: Vec<(String, Coo<T>)> =
        empty.map(|shape| (format!("{shape:?}, no entries"), with_entries(shape, []))).into();
    let n = long as u32;
    let filled = |i: &u32| i % 5 != 3;
    matrices.extend([
        ("one row".to_owned(), with_entries((1, long), (0..n).map(|j| (0, j)))),
        ("one row, a gap".to_owned(), with_entries((1, long), (5..9).map(|j| (0, j)))),
        ("one column".to_owned(), with_entries((long, 1), (0..n).filter(filled).map(|i| (i, 0)))),
        ("one entry".to_owned(), with_entries((1, 1), [(0, 0)])),
        ("one entry, first".to_owned(), with_entries((long, long - 50), [(0, 0)])),
        ("one entry, last".to_owned(), with_entries((long, long - 50), [(n - 1, n - 51)])),
    ]);
    matrices
}

/// Three rows: an empty one, one with all `length` columns, and one with the first column.
pub fn dense_row<T: Scalar>(length: u32) -> Coo<T> {
    with_entries((3, length as usize), (0..length).map(|j| (1, j)).chain([(2, 0)]))
}

/// Two columns, the second of which has all `length` rows.
pub fn dense_column<T: Scalar>(length: u32) -> Coo<T> {
    with_entries((length as usize, 2), (0..length).map(|i| (i, 1)))
}

/// Long and short rows side by side, 61 x 10,000, a long one last, so that whatever cuts the entries cuts rows: where
/// they begin, in the middle, and with several cuts in one.
pub fn long_rows<T: Scalar>() -> Coo<T> {
    let length = |row: u32| match row {
        3 | 17 | 18 | 60 => 10_000,
        40..50 => 0,
        _ => row * 7 % 10,
    };
    let entries = (0..61).flat_map(|row| {
        let length = length(row);
        // Apart from each other where there are few.
        (0..length).map(move |i| (row, (i * (10_000 / length.max(1)) + row) % 10_000))
    });
    let mut entries: Vec<(u32, u32)> = entries.collect();
    entries.sort_unstable();
    with_entries((61, 10_000), entries)
}

/// Two rows of 5,000 entries among nine, which padded formats store in little memory.
pub fn few_long_rows<T: Scalar>() -> Coo<T> {
    let length = |row: u32| if row == 2 || row == 8 { 5_000 } else { row % 4 };
    let entries = (0..9).flat_map(|row| (0..length(row)).map(move |col| (row, col)));
    with_entries((9, 5_000), entries)
}

/// 62 x 53 with rows of 0 to 12 entries and one of 40; the first entry is in the first column, the last
/// one in the last column. `value` gives the value of the i-th entry.
pub fn ragged<T: Scalar>(value: impl Fn(usize) -> T) -> Coo<T> {
    let mut entries = vec![(0, 0), (61, 52)];
    for i in 0..61_u32 {
        let length = match i {
            20 => 40,
            _ if i % 13 == 0 => 12,
            _ => i * 7 % 5,
        };
        entries.extend((0..length).map(|s| (i, (i * 31 + s * s * 7) % 53)));
    }
    entries.sort_unstable();
    entries.dedup();
    let (row_indices, col_ind): (Vec<u32>, Vec<u32>) = entries.into_iter().unzip();
    let values = (0..row_indices.len()).map(value).collect();
    Coo::new(62, 53, row_indices, col_ind, values).expect("entries inside of the matrix")
}

/// 72 x 72, symmetric: five diagonals, so that all rows but those at the ends have one length.
/// `special` replaces the value at (row, column) and (column, row), row <= column.
pub fn symmetric<T: Scalar>(special: Option<(u32, u32, T)>) -> Coo<T> {
    let neighbours = |i: u32| [i.wrapping_sub(9), i.wrapping_sub(1), i, i + 1, i + 9];
    let entries = (0..72).flat_map(|i| neighbours(i).map(|j| (i, j))).filter(|&(_, j)| j < 72);
    let (row_indices, col_ind): (Vec<u32>, Vec<u32>) = entries.unzip();
    let value = |(&i, &j): (&u32, &u32)| match special {
        Some((row, col, value)) if (row, col) == (i.min(j), i.max(j)) => value,
        _ => T::from_f64(f64::from((i + j) % 7) - 2.5),
    };
    let values = row_indices.iter().zip(&col_ind).map(value).collect();
    Coo::new(72, 72, row_indices, col_ind, values).expect("entries inside of the matrix")
}
