//! The rows of any CSR view, outer slices of larger matrices included.

use std::ops::Range;

use rayon::prelude::*;

use crate::csr::require_csr;
use crate::{CsrView, FormatError, Scalar};

/// The arrays of a CSR view, with the pointer at which its entries start.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    pub(super) cols: usize,
    pointers: &'a [u32],
    indices: &'a [u32],
    values: &'a [T],
}

impl<'a, T: Scalar> Rows<'a, T> {
    /// The rows of `matrix`.
    ///
    /// # Errors
    /// [`FormatError::WrongStorage`] for a CSC matrix.
    pub(super) fn new(matrix: CsrView<'a, T>) -> Result<Self, FormatError> {
        require_csr(&matrix)?;
        let cols = matrix.cols();
        let (pointers, indices, values) = matrix.into_raw_storage();
        Ok(Self { cols, pointers, indices, values })
    }

    pub(super) fn rows(&self) -> usize {
        self.pointers.len() - 1
    }

    pub(super) fn entries(&self) -> usize {
        self.values.len()
    }

    /// Length of row `row`.
    #[inline]
    pub(super) fn length(&self, row: usize) -> usize {
        (self.pointers[row + 1] - self.pointers[row]) as usize
    }

    /// Position of the first entry of row `row`.
    #[inline]
    pub(super) fn start(&self, row: usize) -> usize {
        (self.pointers[row] - self.pointers[0]) as usize
    }

    /// Columns and values of row `row`.
    #[inline]
    pub(super) fn row(&self, row: usize) -> (&'a [u32], &'a [T]) {
        let range = self.start(row)..self.start(row + 1);
        (&self.indices[range.clone()], &self.values[range])
    }

    /// Row pointers, rows + 1; in a slice of a larger matrix the first is not 0.
    pub(super) fn pointers(&self) -> &'a [u32] {
        self.pointers
    }

    /// All columns and values, row after row.
    pub(super) fn arrays(&self) -> (&'a [u32], &'a [T]) {
        (self.indices, self.values)
    }

    /// The row of each entry in `range`.
    pub(super) fn rows_of_entries(&self, range: Range<usize>) -> impl Iterator<Item = u32> + 'a {
        let (base, ends) = (self.pointers[0] as usize, &self.pointers[1..]);
        let mut row = ends.partition_point(|&end| end as usize - base <= range.start);
        range.map(move |entry| {
            while ends[row] as usize - base <= entry {
                row += 1;
            }
            row as u32
        })
    }

    /// Length of every row.
    pub(super) fn lengths(&self) -> Vec<u32> {
        self.pointers.par_windows(2).with_min_len(GRAIN).map(|p| p[1] - p[0]).collect()
    }

    /// Length of the longest row, by all threads.
    pub(super) fn width(&self) -> usize {
        let lengths = (0..self.rows()).into_par_iter().with_min_len(GRAIN);
        lengths.map(|row| self.length(row)).max().unwrap_or(0)
    }

    /// Length of the longest of the rows `from..to`.
    pub(super) fn longest(&self, from: usize, to: usize) -> usize {
        (from..to).map(|row| self.length(row)).max().unwrap_or(0)
    }
}

/// Elements below which a loop is not worth splitting between threads.
pub(super) const GRAIN: usize = 4096;
