//! HLL, hacked ELLPACK: ELLPACK by blocks of rows, each as wide as its own longest row.

/// Blocks ("hacks") of `hack_size` consecutive rows, column-major inside a block, all blocks in
/// two flat arrays with offsets (R2 III-B and VI-B).
///
/// ```text
///     | 1 0 2 |      hack size 2: rows 0-1 | row 2
/// A = | 0 3 0 |      block offsets   0           4     6
///     | 4 0 5 |      column indices  0 1 | 2 1*  0 | 2
///                    values          1 3 | 2 0*  4 | 5
/// ```
///
/// The last block has as many rows as are left. Block `b` with `h` rows is
/// `(block_offsets[b + 1] - block_offsets[b]) / h` wide, and slot `s` of its row `i` is at
/// `block_offsets[b] + s * h + i`. Padding follows the rule of [`Ell`](crate::Ell).
#[derive(Debug, Clone, PartialEq)]
pub struct Hll<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) entries: usize,
    pub(crate) hack_size: usize,
    pub(crate) block_offsets: Vec<usize>,
    pub(crate) row_lengths: Vec<u32>,
    pub(crate) col_indices: Vec<u32>,
    pub(crate) values: Vec<T>,
}
