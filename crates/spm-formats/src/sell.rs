//! SELL-C-sigma: chunks of C rows in ELLPACK, after sorting the rows by length inside windows of
//! sigma rows.

use crate::check::{check_length, check_nonzero};
use crate::padding::{Padded, offsets, padded_accessors};
use crate::{FormatError, Scalar};

/// A matrix in SELL-C-sigma (Kreutzer, Hager, Wellein, Fehske, Bishop: "A unified sparse matrix
/// data format for efficient general sparse matrix-vector multiplication on modern processors with
/// wide SIMD units", SIAM J. Sci. Comput. 36(5), 2014).
///
/// ```text
///     | 1 0 2 |      C = 2, sigma = 4: rows sorted by length, longest first, stable
/// A = | 0 3 0 |      permutation     0 2 | 1 -
///     | 4 0 5 |      chunk offsets   0        4     6
///                    column indices  0 0 2 2  1 0*
///                    values          1 4 2 5  3 0*
/// ```
///
/// Every chunk has exactly C rows (the last is filled up with rows of length 0), column-major:
/// stored element `s` of lane `i` of chunk `c` is at `chunk_offsets[c] + s * C + i`. `permutation[p]`
/// is the row of A at position `p`; it and the row lengths (by position) have one element per row of A.
/// Padding follows the rule of [`Ell`](crate::Ell).
///
/// # Invariants
/// `unsafe` code may rely on these; every constructor upholds them.
/// - Every column index, padding included, is < cols, or the matrix has no stored elements.
/// - The permutation holds every row of A exactly once, each inside its window of sigma rows.
/// - Chunk offsets start at 0, ascend, end at the length of both arrays, one more than there are
///   chunks; the stored elements of a chunk are a multiple of C.
/// - There is one length per row, each at most the width of its chunk; they sum up to entries.
/// - The columns of a row ascend strictly; values of padding are 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Sell<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) entries: usize,
    pub(crate) chunk: usize,
    pub(crate) sigma: usize,
    pub(crate) chunk_offsets: Vec<usize>,
    pub(crate) permutation: Vec<u32>,
    pub(crate) row_lengths: Vec<u32>,
    pub(crate) col_ind: Vec<u32>,
    pub(crate) values: Vec<T>,
}

padded_accessors!(Sell, chunk_offsets, permutation);

impl<T: Scalar> Sell<T> {
    /// Takes the arrays of a `shape` = (rows, columns) matrix, every chunk as wide as its longest
    /// row; the chunk offsets follow from the row lengths. `tuning` = (chunk, sigma).
    ///
    /// # Errors
    /// Chunk or sigma 0, a permutation that takes a row out of its window, arrays that break one
    /// of the invariants, sizes beyond 32 bits.
    pub fn new(
        shape: (usize, usize),
        tuning: (usize, usize),
        permutation: Vec<u32>,
        row_lengths: Vec<u32>,
        col_ind: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        let ((rows, cols), (chunk, sigma)) = (shape, tuning);
        check_nonzero("chunk", "at least 1 row", chunk)?;
        check_nonzero("sigma", "at least 1 row", sigma)?;
        let arrays =
            Padded { rows, cols, row_lengths: &row_lengths, col_ind: &col_ind, values: &values };
        let entries = arrays.check_sizes()?;
        check_permutation(&permutation, rows, sigma)?;
        let offsets = offsets(&row_lengths, chunk, |_| chunk);
        arrays.check_stored_elements(offsets.last().copied().unwrap_or(0))?;
        let chunk_offsets: Vec<usize> = offsets.iter().map(|&offset| offset as usize).collect();
        for (index, lengths) in row_lengths.chunks(chunk).enumerate() {
            let width = (chunk_offsets[index + 1] - chunk_offsets[index]) / chunk;
            let lengths = lengths.iter().copied().chain(std::iter::repeat(0));
            // A chunk without stored elements may have more lanes than memory.
            for (lane, length) in lengths.take(if width > 0 { chunk } else { 0 }).enumerate() {
                arrays.check_lane(length as usize, width, chunk_offsets[index] + lane, chunk)?;
            }
        }
        Ok(Self {
            rows,
            cols,
            entries,
            chunk,
            sigma,
            chunk_offsets,
            permutation,
            row_lengths,
            col_ind,
            values,
        })
    }

    /// C: rows of a chunk.
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// Sigma: rows of a sorting window.
    pub fn sigma(&self) -> usize {
        self.sigma
    }

    /// Number of chunks.
    pub fn chunks(&self) -> usize {
        self.chunk_offsets.len() - 1
    }

    /// The start of each chunk in the flat arrays, and the number of stored elements at the end.
    pub fn chunk_offsets(&self) -> &[usize] {
        &self.chunk_offsets
    }

    /// The row of A at each position.
    pub fn permutation(&self) -> &[u32] {
        &self.permutation
    }
}

/// Checks that every row occurs once, inside its own window.
fn check_permutation(permutation: &[u32], rows: usize, sigma: usize) -> Result<(), FormatError> {
    check_length("permutation", rows, permutation.len())?;
    let mut seen = vec![false; rows];
    for (position, &row) in permutation.iter().enumerate() {
        let row = row as usize;
        if row >= rows || row / sigma != position / sigma || seen[row] {
            let (what, expected) = ("permutation", "a row of its window, each row once");
            return Err(FormatError::InvalidStructure { what, position, expected });
        }
        seen[row] = true;
    }
    Ok(())
}
