//! BSR (block compressed sparse row): dense blocks of equal size.

use crate::check::{Axes, check_compressed, check_length, check_limits, check_nonzero};
use crate::padding::padding_ratio;
use crate::{FormatError, Scalar};

/// The axes of the blocks.
const BLOCKS: Axes = Axes {
    outer: "block row",
    inner: "block column",
    pointers: "block pointers",
    indices: "block columns",
};

/// A matrix in BSR: CSR whose elements are dense blocks of r x c, column-major inside a block.
///
/// ```text
///     | 1 2 . . |      blocks of 2 x 2: block rows 0-1 | 2-3
/// A = | 3 4 . 5 |      block pointers  0           2     3
///     | . . 6 . |      block columns   0       1       1
///     | . . 7 8 |      values          1 3 2 4 0* 0* 0* 5 | 6 7 0* 8
///                      padding         4 5 6 10
/// ```
///
/// Block row b has the blocks k from `block_ptr[b]` to `block_ptr[b + 1]`. The element in row i and column j
/// of block k is at `values[k * r * c + j * r + i]`. It is the element of A in row b r + i and column
/// `block_col[k]` c + j.
/// The last block row and the last block column may extend beyond A. What is not an entry of A is
/// padding; the list of its positions tells explicit zeros from padding, and is not read by a product.
///
/// # Invariants
/// `unsafe` code may rely on these; every constructor upholds them.
/// - r and c are at least 1; every block column times c is < cols.
/// - Block pointers start at 0, ascend, end at the number of blocks, one more than there are block rows;
///   there are r c values for each block.
/// - The block columns of a block row ascend strictly.
/// - The positions of padding ascend strictly, and are below the number of values. Values there are 0.
///   Each element beyond the rows or the columns of A is padding.
#[derive(Debug, Clone, PartialEq)]
pub struct Bsr<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) block: (usize, usize),
    pub(crate) block_ptr: Vec<u32>,
    pub(crate) block_col: Vec<u32>,
    pub(crate) values: Vec<T>,
    pub(crate) padding: Vec<usize>,
}

impl<T: Scalar> Bsr<T> {
    /// Takes the arrays of a `shape` = (rows, columns) matrix in blocks of `block` = (rows, columns).
    ///
    /// # Errors
    /// Blocks without elements, arrays that break one of the invariants, sizes beyond 32 bits.
    pub fn new(
        shape: (usize, usize),
        block: (usize, usize),
        block_ptr: Vec<u32>,
        block_col: Vec<u32>,
        values: Vec<T>,
        padding: Vec<usize>,
    ) -> Result<Self, FormatError> {
        let ((rows, cols), (height, width)) = (shape, block);
        check_nonzero("block height", "at least 1 row", height)?;
        check_nonzero("block width", "at least 1 column", width)?;
        let of_block = height.saturating_mul(width);
        check_length("values", block_col.len().saturating_mul(of_block), values.len())?;
        let blocks = (rows.div_ceil(height), cols.div_ceil(width));
        check_compressed(&BLOCKS, blocks, (&block_ptr, &block_col), block_col.len())?;
        let wrong = |what, position, expected| {
            Err(FormatError::InvalidStructure { what, position, expected })
        };
        if let Some(at) = padding.windows(2).position(|pair| pair[0] >= pair[1]) {
            return wrong("padding", at + 1, "above the one before it");
        }
        if let Some(&last) = padding.last().filter(|&&last| last >= values.len()) {
            return wrong("padding", last, "a position of a value");
        }
        if let Some(&at) = padding.iter().find(|&&at| values[at] != T::ZERO) {
            return wrong("value", at, "0 in padding");
        }
        let entries = values.len() - padding.len();
        check_limits(rows as u64, cols as u64, entries as u64)?;
        let new = Self { rows, cols, block, block_ptr, block_col, values, padding };
        if let Some(position) = new.first_outside() {
            return wrong("value", position, "padding beyond the rows and columns of the matrix");
        }
        Ok(new)
    }

    /// The first element beyond the rows or the columns of the matrix that is not padding.
    fn first_outside(&self) -> Option<usize> {
        let (height, width) = self.block;
        for (block_row, ends) in self.block_ptr.windows(2).enumerate() {
            let rows = height.min(self.rows - block_row * height);
            for block in ends[0] as usize..ends[1] as usize {
                let cols = width.min(self.cols - self.block_col[block] as usize * width);
                if (rows, cols) == self.block {
                    continue;
                }
                let start = block * height * width;
                let outside = |&at: &usize| at % height >= rows || at / height >= cols;
                let mut positions = (0..height * width).filter(outside).map(|at| start + at);
                let found = positions.find(|at| self.padding.binary_search(at).is_err());
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries, padding not counted.
    pub fn entries(&self) -> usize {
        self.values.len() - self.padding.len()
    }

    /// Rows and columns of a block.
    pub fn block(&self) -> (usize, usize) {
        self.block
    }

    /// Number of block rows; the last one may extend beyond the rows of the matrix.
    pub fn block_rows(&self) -> usize {
        self.block_ptr.len() - 1
    }

    /// The first block of each block row, and the number of blocks at the end.
    pub fn block_ptr(&self) -> &[u32] {
        &self.block_ptr
    }

    /// The block column of each block: its first column divided by the columns of a block.
    pub fn block_col(&self) -> &[u32] {
        &self.block_col
    }

    /// Value of every stored element, padding included.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Positions of padding among the values, ascending.
    pub fn padding(&self) -> &[usize] {
        &self.padding
    }

    /// Number of stored elements, padding included.
    pub fn stored_elements(&self) -> usize {
        self.values.len()
    }

    /// Stored elements per entry: 1 without padding, and 1 for a matrix without stored elements.
    pub fn padding_ratio(&self) -> f64 {
        padding_ratio(self.stored_elements(), self.entries())
    }

    /// Bytes of all arrays.
    pub fn memory_bytes(&self) -> u64 {
        let bytes = size_of_val(&*self.block_ptr)
            + size_of_val(&*self.block_col)
            + size_of_val(&*self.values)
            + size_of_val(&*self.padding);
        bytes as u64
    }
}
