//! The rows of one rank, with global columns.

use std::ops::Range;

use spm_formats::{CsrView, FormatError, Scalar};

/// Consecutive rows of a distributed matrix in CSR, with 64-bit global columns: what a rank gives to
/// [`DistCsr::new`](crate::DistCsr::new).
///
/// # Invariants
/// `row_ptr` has rows + 1 elements that ascend from 0 to the number of entries; the columns of a row
/// ascend strictly and are below `cols`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows<T> {
    pub(crate) cols: u64,
    pub(crate) row_ptr: Vec<usize>,
    pub(crate) col_ind: Vec<u64>,
    pub(crate) values: Vec<T>,
}

impl<T: Scalar> Rows<T> {
    /// Takes the arrays of rows of a matrix with `cols` columns in all.
    ///
    /// # Errors
    /// Arrays that break one of the invariants.
    pub fn new(
        cols: u64,
        row_ptr: Vec<usize>,
        col_ind: Vec<u64>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        let (expected, found) = (col_ind.len(), values.len());
        if expected != found {
            return Err(FormatError::LengthMismatch { what: "values", expected, found });
        }
        let wrong = |what, position, expected| {
            Err(FormatError::InvalidStructure { what, position, expected })
        };
        if row_ptr.first() != Some(&0) {
            return wrong("row pointers", 0, "0");
        }
        if let Some(position) = row_ptr.windows(2).position(|pair| pair[0] > pair[1]) {
            return wrong("row pointers", position + 1, "at least the one before it");
        }
        if row_ptr.last() != Some(&found) {
            return wrong("row pointers", row_ptr.len() - 1, "the number of entries");
        }
        for ends in row_ptr.windows(2) {
            let row = &col_ind[ends[0]..ends[1]];
            if let Some(at) = row.windows(2).position(|pair| pair[0] >= pair[1]) {
                return wrong("columns", ends[0] + at + 1, "above the one before it in the row");
            }
            if row.last().is_some_and(|&last| last >= cols) {
                return wrong("columns", ends[1] - 1, "below the number of columns");
            }
        }
        Ok(Self { cols, row_ptr, col_ind, values })
    }

    /// The rows `range` of a matrix that this process has as a whole.
    ///
    /// # Panics
    /// When the matrix does not have these rows.
    pub fn of(a: CsrView<'_, T>, range: Range<u64>) -> Self {
        let pointers = &a.row_ptr()[range.start as usize..=range.end as usize];
        let entries = pointers[0] as usize..pointers[pointers.len() - 1] as usize;
        Self {
            cols: a.cols() as u64,
            row_ptr: pointers.iter().map(|&pointer| pointer as usize - entries.start).collect(),
            col_ind: a.col_ind()[entries.clone()].iter().map(|&col| u64::from(col)).collect(),
            values: a.values()[entries].to_vec(),
        }
    }

    /// Rows that a function generates: `row(i, entries)` appends the (column, value) pairs of global
    /// row i to `entries`, which is empty, in ascending order. It is called twice for each row, so that
    /// memory is allocated once.
    ///
    /// # Errors
    /// As [`Rows::new`].
    pub fn generate(
        range: Range<u64>,
        cols: u64,
        row: impl Fn(u64, &mut Vec<(u64, T)>),
    ) -> Result<Self, FormatError> {
        let mut entries = Vec::new();
        let mut row_ptr = Vec::with_capacity((range.end - range.start) as usize + 1);
        row_ptr.push(0);
        let mut end = 0;
        for i in range.clone() {
            entries.clear();
            row(i, &mut entries);
            end += entries.len();
            row_ptr.push(end);
        }
        let (mut col_ind, mut values) = (Vec::with_capacity(end), Vec::with_capacity(end));
        for i in range {
            entries.clear();
            row(i, &mut entries);
            col_ind.extend(entries.iter().map(|entry| entry.0));
            values.extend(entries.iter().map(|entry| entry.1));
        }
        Self::new(cols, row_ptr, col_ind, values)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.row_ptr.len() - 1
    }

    /// Number of columns of the whole matrix.
    pub fn cols(&self) -> u64 {
        self.cols
    }

    /// Number of entries.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Start of each row in the other two arrays, and the end of the last one.
    pub fn row_ptr(&self) -> &[usize] {
        &self.row_ptr
    }

    /// Global column of each entry.
    pub fn col_ind(&self) -> &[u64] {
        &self.col_ind
    }

    /// Value of each entry.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arrays_are_refused() {
        let message = |row_ptr: &[usize], cols: &[u64], values: usize| {
            Rows::new(5, row_ptr.to_vec(), cols.to_vec(), vec![1.0; values])
                .unwrap_err()
                .to_string()
        };
        assert_eq!(message(&[0, 1], &[0], 2), "values: expected length 1, found 2");
        assert_eq!(message(&[], &[], 0), "row pointers at position 0: must be 0");
        assert!(message(&[0, 2, 1], &[0, 1], 2).contains("position 2: must be at least"));
        assert!(message(&[0, 1], &[0, 1], 2).contains("must be the number of entries"));
        assert!(message(&[0, 2], &[1, 1], 2).contains("columns at position 1"));
        assert!(message(&[0, 1, 2], &[1, 5], 2).contains("below the number of columns"));
    }

    #[test]
    fn rows_are_generated() {
        let rows = Rows::generate(3..5, 9, |i, entries| {
            entries.extend((0..i - 2).map(|col| (col, (10 * i + col) as f64)));
        });
        let rows = rows.unwrap();
        assert_eq!((rows.row_ptr(), rows.col_ind()), (&[0, 1, 3][..], &[0, 0, 1][..]));
        assert_eq!(rows.values(), [30.0, 40.0, 41.0]);
    }
}
