//! Row access to CSR views for the conversions.

use std::ops::Range;

use crate::{CsrView, Scalar, parallel};

impl<'a, T: Scalar> CsrView<'a, T> {
    /// Length of row `row`.
    #[inline]
    pub(super) fn length(&self, row: usize) -> usize {
        (self.row_ptr[row + 1] - self.row_ptr[row]) as usize
    }

    /// The row of each entry in `range`.
    pub(super) fn rows_of_entries(&self, range: Range<usize>) -> impl Iterator<Item = u32> + 'a {
        let ends = &self.row_ptr[1..];
        let mut row = ends.partition_point(|&end| end as usize <= range.start);
        range.map(move |entry| {
            while ends[row] as usize <= entry {
                row += 1;
            }
            row as u32
        })
    }

    /// Length of every row.
    pub(super) fn lengths(&self) -> Vec<u32> {
        parallel::map_ranges(self.rows(), GRAIN, |rows| {
            self.row_ptr[rows.start..=rows.end].windows(2).map(|p| p[1] - p[0])
        })
    }

    /// Length of the longest row, by all threads.
    pub(super) fn width(&self) -> usize {
        let longest = |rows: Range<usize>| self.longest(rows.start, rows.end) as u64;
        parallel::reduce(self.rows(), GRAIN, 0, &longest, u64::max) as usize
    }

    /// Length of the longest of the rows `from..to`.
    pub(super) fn longest(&self, from: usize, to: usize) -> usize {
        (from..to).map(|row| self.length(row)).max().unwrap_or(0)
    }
}

/// Elements below which a loop is not split between threads.
pub(super) const GRAIN: usize = 4096;
