//! Test matrices: small ones by hand, and seeded ones wider than a warp and a block.

use spm_formats::{Coo, Scalar};
use spm_testing::edge_cases::{with_entries, with_lengths, with_value};

/// Matrices whose row lengths cover what a kernel branches on.
pub(crate) fn all<T: Scalar>() -> Vec<(&'static str, Coo<T>)> {
    let sample =
        Coo::new(3, 3, vec![0, 0, 1, 2, 2], vec![0, 2, 1, 0, 2], (1..6).map(number).collect());
    vec![
        ("the 3 x 3 sample", sample.expect("five entries of a 3 x 3 matrix")),
        ("1 x 1", with_lengths((1, 1), |_, _| 1)),
        ("no entries", with_lengths((70, 3), |_, _| 0)),
        ("one entry in the last row", with_lengths((97, 5), |row, _| usize::from(row == 96))),
        ("short rows", with_lengths((300, 200), |_, random| random.between(0, 5))),
        ("rows of all lengths", with_lengths((290, 150), |_, random| random.between(0, 90))),
        ("long rows, wide", with_lengths((35, 1500), |_, random| random.between(200, 900))),
        (
            "a dense row among short ones",
            with_lengths((400, 3000), |row, random| match row {
                123 => 3000,
                124..200 => 0,
                _ => random.between(1, 4),
            }),
        ),
        (
            "two dense rows, first and last",
            with_lengths((65, 2500), |row, random| match row {
                0 | 64 => 2500,
                _ => random.between(0, 3),
            }),
        ),
    ]
}

fn number<T: Scalar>(value: i32) -> T {
    T::from_f64(f64::from(value))
}

/// The same structures with one value in all entries.
pub(crate) fn all_equal<T: Scalar>() -> Vec<(&'static str, Coo<T>)> {
    all().into_iter().map(|(name, a)| (name, with_value(a, 0.7))).collect()
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
        let column = |row: u32, diagonal: u32| (row + 7 * diagonal).checked_sub(14);
        let entries = (0..130).flat_map(|row| {
            let columns = (0..5).filter_map(move |diagonal| Some(column(row, diagonal)? * scale));
            columns.filter(|&col| col < cols).map(move |col| (row, col))
        });
        matrices.push((name, with_entries((130, cols as usize), entries)));
    }
    matrices
}
