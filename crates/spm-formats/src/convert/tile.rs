//! Fills column-major tiles, the storage that ELLPACK, HLL and SELL-C-sigma share.

use crate::disjoint::Disjoint;
use crate::{CsrView, Scalar};

/// Rows that are copied together: they stay in the first-level cache while their stored elements
/// are written in runs of this length.
const LANES: usize = 64;

/// The two arrays of a padded format while threads fill them.
pub(super) struct Elements<'a, T> {
    col_ind: Disjoint<'a, u32>,
    values: Disjoint<'a, T>,
}

impl<'a, T: Scalar> Elements<'a, T> {
    pub(super) fn new(col_ind: &'a mut [u32], values: &'a mut [T]) -> Self {
        Self { col_ind: Disjoint::new(col_ind), values: Disjoint::new(values) }
    }

    /// Writes the rows `row_of(i)` for `i` below `lanes` with `width` stored elements each: stored
    /// element `s` of row `row_of(i)` goes to `start + s * stride + i`. Padding follows the rule of
    /// [`Ell`](crate::Ell).
    ///
    /// # Safety No other thread accesses these elements at the same time.
    pub(super) unsafe fn fill(
        &self,
        matrix: &CsrView<'_, T>,
        row_of: impl Fn(usize) -> usize,
        lanes: usize,
        start: usize,
        width: usize,
        stride: usize,
    ) {
        for first in (0..lanes).step_by(LANES) {
            let count = LANES.min(lanes - first);
            let mut rows = [(&[] as &[u32], &[] as &[T]); LANES];
            for (lane, row) in rows[..count].iter_mut().enumerate() {
                *row = matrix.row(row_of(first + lane));
            }
            for element in 0..width {
                let at = start + element * stride + first;
                // SAFETY: a run of this tile, which is this thread's alone.
                let (cols, values) = unsafe {
                    (self.col_ind.range(at..at + count), self.values.range(at..at + count))
                };
                for (lane, &(row_cols, row_values)) in rows[..count].iter().enumerate() {
                    if element < row_cols.len() {
                        cols[lane] = row_cols[element];
                        values[lane] = row_values[element];
                    } else {
                        cols[lane] = padding_column(row_cols);
                        values[lane] = T::ZERO;
                    }
                }
            }
        }
    }
}

/// The column of a row's padding: that of its last entry, or 0 in an empty row.
#[inline]
pub(super) fn padding_column(row: &[u32]) -> u32 {
    row.last().copied().unwrap_or(0)
}
