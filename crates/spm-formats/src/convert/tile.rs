//! Filling column-major tiles: what ELLPACK, HLL and SELL-C-sigma have in common.

use super::disjoint::DisjointSlice;
use crate::{CsrView, Scalar};

/// Lanes that are copied together: their rows stay in the first-level cache while their slots are
/// written in runs of this many elements.
const LANES: usize = 64;

/// The two arrays of a padded format while threads fill them.
pub(super) struct Slots<'a, T> {
    col_indices: DisjointSlice<'a, u32>,
    values: DisjointSlice<'a, T>,
}

impl<'a, T: Scalar> Slots<'a, T> {
    pub(super) fn new(col_indices: &'a mut [u32], values: &'a mut [T]) -> Self {
        Self { col_indices: DisjointSlice::new(col_indices), values: DisjointSlice::new(values) }
    }

    /// Fills `lanes` lanes of `width` slots, slot `s` of lane `i` at `start + s * stride + i`, with
    /// the rows `row_of(i)`, padded by the rule of [`Ell`](crate::Ell).
    ///
    /// # Safety
    /// No other thread touches these slots meanwhile.
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
                    (self.col_indices.part(at..at + count), self.values.part(at..at + count))
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

/// The column of a row's padding: its last one again, or 0 in an empty row.
#[inline]
pub(super) fn padding_column(row: &[u32]) -> u32 {
    row.last().copied().unwrap_or(0)
}
