//! Sums of long rows, each split between all threads.

use spm_formats::{CsrView, Scalar, partition};

use super::row;
use crate::Threads;
use crate::disjoint::Disjoint;

/// Rows with more entries than this are split.
pub(super) const LONG: usize = 2048;

/// The long rows of a matrix, and the partial sums of the threads.
pub(super) struct LongRows<T> {
    rows: Vec<u32>,
    parts: usize,
    /// The partial sum of thread t for long row l at `t * rows.len() + l`.
    sums: Vec<T>,
}

impl<T: Scalar> LongRows<T> {
    pub(super) fn new(a: &CsrView<'_, T>, threads: &Threads) -> Self {
        let long = |ends: &[u32]| (ends[1] - ends[0]) as usize > LONG;
        let rows: Vec<u32> = (0..)
            .zip(a.row_ptr().windows(2))
            .filter_map(|(row, ends)| long(ends).then_some(row))
            .collect();
        let parts = threads.count();
        Self { sums: vec![T::ZERO; rows.len() * parts], rows, parts }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.rows) + size_of_val(&*self.sums)
    }

    /// Access to the partial sums for the threads of a pool.
    pub(super) fn pieces(&mut self) -> Pieces<'_, T> {
        Pieces { rows: &self.rows, parts: self.parts, sums: Disjoint::new(&mut self.sums) }
    }

    /// Adds the partial sums, always in the same order.
    pub(super) fn finish(&self, y: &mut [T]) {
        for (l, &row) in self.rows.iter().enumerate() {
            let pieces = (0..self.parts).map(|part| self.sums[part * self.rows.len() + l]);
            y[row as usize] = pieces.fold(T::ZERO, |sum, piece| sum + piece);
        }
    }
}

pub(super) struct Pieces<'a, T> {
    rows: &'a [u32],
    parts: usize,
    sums: Disjoint<'a, T>,
}

impl<T: Scalar> Pieces<'_, T> {
    /// Computes the partial sums of thread `part`. Each part is computed by one thread only.
    pub(super) fn sum(&self, a: &CsrView<'_, T>, part: usize, x: &[T]) {
        let (start, count) = (part * self.rows.len(), self.rows.len());
        // SAFETY: the parts do not overlap, and each belongs to one thread.
        let sums = unsafe { self.sums.range(start..start + count) };
        for (sum, &row) in sums.iter_mut().zip(self.rows) {
            let ends = &a.row_ptr()[row as usize..=row as usize + 1];
            let piece = partition::even((ends[1] - ends[0]) as usize, self.parts, part);
            let start = ends[0] as usize;
            *sum = row::dot_entries(a, start + piece.start..start + piece.end, x, true);
        }
    }
}
