//! COO, the coordinate format: triplets of row, column and value, as in Matrix Market files.

use crate::check::check_limits;
use crate::check::{check_indices, check_length};
use crate::{FormatError, Scalar};

/// A matrix in COO: triplets in any order. Duplicates are allowed and stand for their sum.
///
/// ```text
///     | 1 0 2 |      row indices     0 2 1 0 2
/// A = | 0 3 0 |      column indices  0 0 1 2 2
///     | 4 0 5 |      values          1 4 3 2 5
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Coo<T> {
    rows: usize,
    cols: usize,
    row_ind: Vec<u32>,
    col_ind: Vec<u32>,
    values: Vec<T>,
}

impl<T: Scalar> Coo<T> {
    /// Makes a `rows` x `cols` matrix from the arrays of its triplets.
    ///
    /// # Errors
    /// Arrays of different lengths, an index outside the matrix, sizes beyond 32 bits.
    pub fn new(
        rows: usize,
        cols: usize,
        row_ind: Vec<u32>,
        col_ind: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        check_limits(rows as u64, cols as u64, values.len() as u64)?;
        check_length("row indices", values.len(), row_ind.len())?;
        check_length("column indices", values.len(), col_ind.len())?;
        check_indices("row", &row_ind, rows)?;
        check_indices("column", &col_ind, cols)?;
        Ok(Self { rows, cols, row_ind, col_ind, values })
    }

    /// Triplets that come from a valid matrix of this shape.
    pub(crate) fn from_valid(
        (rows, cols): (usize, usize),
        row_ind: Vec<u32>,
        col_ind: Vec<u32>,
        values: Vec<T>,
    ) -> Self {
        debug_assert_eq!((row_ind.len(), col_ind.len()), (values.len(), values.len()));
        debug_assert!(row_ind.iter().all(|&row| (row as usize) < rows));
        debug_assert!(col_ind.iter().all(|&col| (col as usize) < cols));
        Self { rows, cols, row_ind, col_ind, values }
    }

    /// A `rows` x `cols` matrix without entries.
    ///
    /// # Errors
    /// Sizes beyond 32 bits.
    pub fn empty(rows: usize, cols: usize) -> Result<Self, FormatError> {
        Self::new(rows, cols, Vec::new(), Vec::new(), Vec::new())
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored triplets, duplicates and explicit zeros included.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Row of each triplet.
    pub fn row_ind(&self) -> &[u32] {
        &self.row_ind
    }

    /// Column of each triplet.
    pub fn col_ind(&self) -> &[u32] {
        &self.col_ind
    }

    /// Value of each triplet.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The triplets in their stored order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, u32, T)> + '_ {
        (0..self.values.len()).map(|i| (self.row_ind[i], self.col_ind[i], self.values[i]))
    }

    /// Bytes of the three arrays.
    pub fn memory_bytes(&self) -> u64 {
        let bytes =
            size_of_val(&*self.row_ind) + size_of_val(&*self.col_ind) + size_of_val(&*self.values);
        bytes as u64
    }

    /// Row indices, column indices, values.
    pub fn into_arrays(self) -> (Vec<u32>, Vec<u32>, Vec<T>) {
        (self.row_ind, self.col_ind, self.values)
    }
}
