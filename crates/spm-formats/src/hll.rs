//! HLL (hacked ELLPACK): blocks of rows in ELLPACK, each as wide as its own longest row.

use std::ops::Range;

use crate::check::check_nonzero;
use crate::padding::{Padded, offsets, padded_accessors};
use crate::{FormatError, Scalar};

/// A matrix in HLL: blocks ("hacks") of `hack_size` consecutive rows, column-major inside a block,
/// all blocks in two flat arrays with offsets (R2 III-B and VI-B).
///
/// ```text
///     | 1 0 2 |      hack size 2: rows 0-1 | row 2
/// A = | 0 3 0 |      block offsets   0           4     6
///     | 4 0 5 |      column indices  0 1 | 2 1*  0 | 2
///                    values          1 3 | 2 0*  4 | 5
/// ```
///
/// The last block has as many rows as are left. Block `b` with `h` rows is
/// `(block_offsets[b + 1] - block_offsets[b]) / h` wide, and stored element `s` of its row `i` is at
/// `block_offsets[b] + s * h + i`. Padding follows the rule of [`Ell`](crate::Ell).
///
/// # Invariants
/// `unsafe` code may rely on these; every constructor upholds them.
/// - Every column index, padding included, is < cols, or the matrix has no stored elements.
/// - Block offsets start at 0, ascend, end at the length of both arrays, one more than there are
///   blocks; the stored elements of a block are a multiple of its rows.
/// - There is one length per row, each at most the width of its block; they sum up to entries.
/// - The columns of a row ascend strictly; values of padding are 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Hll<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) entries: usize,
    pub(crate) hack_size: usize,
    pub(crate) block_offsets: Vec<usize>,
    pub(crate) row_lengths: Vec<u32>,
    pub(crate) col_ind: Vec<u32>,
    pub(crate) values: Vec<T>,
}

padded_accessors!(Hll, block_offsets);

impl<T: Scalar> Hll<T> {
    /// Takes the arrays of a `shape` = (rows, columns) matrix, every block as wide as its longest
    /// row; the block offsets follow from the row lengths.
    ///
    /// # Errors
    /// Hack size 0, arrays that break one of the invariants, sizes beyond 32 bits.
    pub fn new(
        shape: (usize, usize),
        hack_size: usize,
        row_lengths: Vec<u32>,
        col_ind: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        let (rows, cols) = shape;
        check_nonzero("hack size", "at least 1 row", hack_size)?;
        let arrays =
            Padded { rows, cols, row_lengths: &row_lengths, col_ind: &col_ind, values: &values };
        let entries = arrays.check_sizes()?;
        let offsets = offsets(&row_lengths, hack_size, |rows| rows);
        arrays.check_stored_elements(offsets.last().copied().unwrap_or(0))?;
        let block_offsets: Vec<usize> = offsets.iter().map(|&offset| offset as usize).collect();
        for (block, lengths) in row_lengths.chunks(hack_size).enumerate() {
            let height = lengths.len();
            let width = (block_offsets[block + 1] - block_offsets[block]) / height;
            for (lane, &length) in lengths.iter().enumerate() {
                arrays.check_lane(length as usize, width, block_offsets[block] + lane, height)?;
            }
        }
        Ok(Self { rows, cols, entries, hack_size, block_offsets, row_lengths, col_ind, values })
    }

    /// Rows of a block; the last block may have fewer.
    pub fn hack_size(&self) -> usize {
        self.hack_size
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.block_offsets.len() - 1
    }

    /// The start of each block in the flat arrays, and the number of stored elements at the end.
    pub fn block_offsets(&self) -> &[usize] {
        &self.block_offsets
    }

    /// The rows of block `block`, which is below [`Hll::blocks`].
    pub fn block_rows(&self, block: usize) -> Range<usize> {
        let first = block * self.hack_size;
        first..self.rows.min(first.saturating_add(self.hack_size))
    }
}
