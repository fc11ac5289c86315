//! Fills column-major tiles, the storage that ELLPACK, HLL and SELL-C-sigma share.

use crate::disjoint::Disjoint;
use crate::{CsrView, Scalar};

/// Rows that are copied together: they stay in the first-level cache while their stored elements
/// are written in runs of this length.
const LANES: usize = 64;

/// The two arrays of a padded format while threads fill them.
pub(super) struct Slots<'a, T> {
    col_indices: Disjoint<'a, u32>,
    values: Disjoint<'a, T>,
}

impl<'a, T: Scalar> Slots<'a, T> {
    pub(super) fn new(col_indices: &'a mut [u32], values: &'a mut [T]) -> Self {
        Self { col_indices: Disjoint::new(col_indices), values: Disjoint::new(values) }
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
            for slot in 0..width {
                let at = start + slot * stride + first;
                // SAFETY: a run of this tile, which is this thread's alone.
                let (cols, values) = unsafe {
                    (self.col_indices.range(at..at + count), self.values.range(at..at + count))
                };
                for (lane, &(row_cols, row_values)) in rows[..count].iter().enumerate() {
                    if slot < row_cols.len() {
                        cols[lane] = row_cols[slot];
                        values[lane] = row_values[slot];
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
