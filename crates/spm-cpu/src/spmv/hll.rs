//! The common part of the HLL SpMV kernels: the product of some blocks with x.

use std::ops::Range;

use spm_formats::convert::csr_to_hll;
use spm_formats::kernel::{ParameterSpec, Parameters, PlanError, Value};
use spm_formats::{CsrView, Hll, Scalar};

use super::plan::Memory;
use super::rows::RowSums;
use crate::scaled::Update;
use crate::simd::LANES;
use crate::{PlanOptions, scaled};

/// The hack size of R2 III-B.
pub(super) const HACK: ParameterSpec = ParameterSpec {
    name: "hack",
    meaning: "rows of a block",
    default: Value::Count(32),
    studied: &[Value::Count(16), Value::Count(32), Value::Count(64), Value::Count(128)],
};

/// Whether eight rows of a block are summed at once. R2 sums a block row by row.
pub(super) const SIMD: ParameterSpec = ParameterSpec {
    name: "simd",
    meaning: "sum eight rows of a block at once instead of row by row",
    default: Value::Switch(true),
    studied: &[Value::Switch(false), Value::Switch(true)],
};

/// An HLL matrix, and how its blocks are summed.
pub(super) struct HllBlocks<T> {
    hll: Hll<T>,
    simd: bool,
}

impl<T: Scalar> HllBlocks<T> {
    pub(super) fn new(
        a: CsrView<'_, T>,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<Self, PlanError> {
        let hll = csr_to_hll(a, parameters.count(HACK.name), &options.budget)?;
        Ok(Self { hll, simd: parameters.switch(SIMD.name) })
    }

    /// Sums all stored elements of a block with `y.len()` rows, padding included. `store` takes the
    /// position of a row in the block, its sum and its element of `y`.
    ///
    /// # Safety
    /// x has an element for each column of A.
    #[inline(always)]
    unsafe fn sum_block(
        &self,
        elements: Range<usize>,
        x: &[T],
        y: &mut [T],
        store: impl Fn(usize, T, &mut T),
    ) {
        let height = y.len();
        let side_by_side = if self.simd { height / LANES * LANES } else { 0 };
        let (together, alone) = y.split_at_mut(side_by_side);
        for (group, y) in together.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let mut sums = [T::ZERO; LANES];
            for start in elements.clone().step_by(height).map(|start| start + group * LANES) {
                let cols = &self.hll.col_ind()[start..start + LANES];
                let values = &self.hll.values()[start..start + LANES];
                for lane in 0..LANES {
                    // SAFETY: every column index of an Hll, padding included, is below those of A;
                    // the caller's promise.
                    sums[lane] += values[lane] * unsafe { *x.get_unchecked(cols[lane] as usize) };
                }
            }
            for (lane, (&sum, y)) in sums.iter().zip(y).enumerate() {
                store(group * LANES + lane, sum, y);
            }
        }
        for (lane, y) in (side_by_side..).zip(alone) {
            // SAFETY: the caller's promise.
            store(lane, unsafe { self.sum_row(elements.clone(), lane, height, x) }, y);
        }
    }

    /// Sums some stored elements of a lane of a block with `height` rows.
    ///
    /// # Safety
    /// As [`HllBlocks::sum_block`].
    unsafe fn sum_row(&self, elements: Range<usize>, lane: usize, height: usize, x: &[T]) -> T {
        let cols = self.hll.col_ind()[elements.clone()].iter().skip(lane).step_by(height);
        let values = self.hll.values()[elements].iter().skip(lane).step_by(height);
        cols.zip(values).fold(T::ZERO, |sum, (&col, &value)| {
            // SAFETY: every column index of an Hll is below those of A; the caller's promise.
            sum + value * unsafe { *x.get_unchecked(col as usize) }
        })
    }
}

/// The units are the blocks of the format.
impl<T: Scalar> RowSums<T> for HllBlocks<T> {
    fn shape(&self) -> (usize, usize) {
        (self.hll.rows(), self.hll.cols())
    }

    fn count(&self) -> usize {
        self.hll.blocks()
    }

    fn rows(&self, blocks: &Range<usize>) -> Range<usize> {
        let start = |block: usize| (block * self.hll.hack_size()).min(self.hll.rows());
        start(blocks.start)..start(blocks.end)
    }

    fn memory(&self, rest: usize) -> Memory {
        // The row lengths are read only for a sum that is not finite: no traffic.
        let all = self.hll.memory_bytes();
        let lengths = size_of_val(self.hll.row_lengths()) as u64;
        Memory { matrix: all - lengths, plan: all + rest as u64 }
    }

    fn multiply(&self, blocks: Range<usize>, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        assert!(x.len() >= self.hll.cols());
        let mut rest = y;
        for block in blocks {
            let rows = self.hll.block_rows(block);
            let (y, after) = rest.split_at_mut(rows.len());
            rest = after;
            let elements = self.hll.block_offsets()[block]..self.hll.block_offsets()[block + 1];
            let store = |lane: usize, sum: T, y: &mut T| {
                let sum = if sum.is_finite() {
                    sum
                } else {
                    // Padding may have met an infinite x; 0 x inf is NaN.
                    let length = self.hll.row_lengths()[rows.start + lane] as usize;
                    let own = elements.start..elements.start + length * rows.len();
                    // SAFETY: asserted above.
                    unsafe { self.sum_row(own, lane, rows.len(), x) }
                };
                scaled::store(scaling, sum, y);
            };
            // SAFETY: asserted above.
            unsafe { self.sum_block(elements.clone(), x, y, store) };
        }
    }
}
