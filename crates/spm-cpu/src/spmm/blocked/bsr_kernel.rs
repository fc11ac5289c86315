//! The inner kernel of `bsr-blocked`: block rows of A times X, with some columns of Y in vector registers.

use std::ops::Range;

use spm_formats::{Bsr, CsrView, Scalar};

use super::kernel::Dense;
use super::sink::Sink;
use crate::simd::{self, AHEAD, Isa, Job, LANES};

/// The block rows of one thread.
///
/// Invariants: `bsr` is `a`, and has the block rows; X has a row of `k` elements for each column of A.
pub(super) struct Part<'a, T: Scalar> {
    pub(super) a: CsrView<'a, T>,
    pub(super) bsr: &'a Bsr<T>,
    pub(super) block_rows: Range<usize>,
    pub(super) x: Dense<'a, T>,
    pub(super) k: usize,
    /// Number of block rows that are passed to the sink together.
    pub(super) tile: usize,
    /// Prefetch distance for rows of X, in blocks; 0 disables it.
    pub(super) prefetch: usize,
    pub(super) sink: Sink<'a, T>,
}

// SAFETY: `As<T>` is `Part<T>`.
unsafe impl<'a, T: Scalar> Job<T> for Part<'a, T> {
    type As<U: Scalar> = Part<'a, U>;
    const GATHERS: bool = false;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(mut self) {
        let mut next = self.block_rows.start;
        while next < self.block_rows.end {
            let end = self.block_rows.end.min(next + self.tile);
            let (to, pitch) = self.sink.tile();
            let size = self.bsr.block().0;
            let rows = next * size..self.bsr.rows().min(end * size);
            for block_row in next..end {
                let first_row = block_row * size;
                let count = size.min(rows.end - first_row);
                // SAFETY: the sink has room for a tile of rows; the rest by the invariants.
                unsafe {
                    let to = to.add((first_row - rows.start) * pitch);
                    BlockRow { part: &self, block_row, count, to, pitch }.compute::<I>();
                }
            }
            // SAFETY: the caller's promise.
            unsafe { self.sink.flush::<I>(rows.len()) };
            next = end;
        }
        // SAFETY: the caller's promise.
        unsafe { self.sink.finish::<I>() };
    }
}

/// A block row, and where its rows of A X go: `to`, `to + pitch`, ...
struct BlockRow<'a, 'b, T: Scalar> {
    part: &'a Part<'b, T>,
    block_row: usize,
    /// Number of its rows.
    count: usize,
    to: *mut T,
    pitch: usize,
}

/// # Safety
/// Of every function: the invariants of [`Part`], room for the rows, the instructions of `I`.
impl<T: Scalar> BlockRow<'_, '_, T> {
    #[inline(always)]
    unsafe fn compute<I: Isa<T>>(&self) {
        let Part { bsr, k, .. } = *self.part;
        let size = bsr.block().0;
        let blocks = self.blocks();
        let last = bsr.block_col()[blocks.clone()].last();
        let end_col = last.map_or(0, |&last| (last as usize + 1) * size);
        // SAFETY: the caller's promise.
        unsafe {
            match size {
                // The last block is inside A.
                _ if k < LANES || end_col > bsr.cols() => self.rows_of_any::<I>(),
                2 => self.columns::<I, 2>(),
                3 => self.columns::<I, 3>(),
                4 => self.columns::<I, 4>(),
                5 => self.columns::<I, 5>(),
                6 => self.columns::<I, 6>(),
                8 => self.columns::<I, 8>(),
                _ => self.rows_of_any::<I>(),
            }
        }
        if !bsr.padding().is_empty() {
            // SAFETY: as above.
            unsafe { self.repair() };
        }
    }

    #[inline(always)]
    fn blocks(&self) -> Range<usize> {
        let block_ptr = self.part.bsr.block_ptr();
        block_ptr[self.block_row] as usize..block_ptr[self.block_row + 1] as usize
    }

    /// All columns, for blocks of `B` x `B` inside A.
    #[inline(always)]
    unsafe fn columns<I: Isa<T>, const B: usize>(&self) {
        let k = self.part.k;
        // As many vectors as leave registers for those of X.
        let most = if I::MOST_VECTORS < 8 {
            1
        } else if B > 6 {
            2
        } else {
            4
        };
        let mut col = 0;
        while col < k {
            // SAFETY: the caller's promise; the vectors are inside a row of X, which has at least one.
            unsafe {
                col += if most >= 4 && col + 4 * LANES <= k {
                    self.vectors::<I, B, 4>(col)
                } else if most >= 2 && col + 2 * LANES <= k {
                    self.vectors::<I, B, 2>(col)
                } else {
                    // The last vector may repeat columns of the one before.
                    self.vectors::<I, B, 1>(col.min(k - LANES))
                };
            }
        }
    }

    /// `V` vectors from column `col` on; returns the number of columns.
    #[inline(always)]
    unsafe fn vectors<I: Isa<T>, const B: usize, const V: usize>(&self, col: usize) -> usize {
        let Part { bsr, x, prefetch, .. } = *self.part;
        let (cols, blocks) = (bsr.block_col(), self.blocks());
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [[I::splat(T::ZERO); V]; B];
            let from_x = x.elements.as_ptr().add(col);
            for block in blocks {
                let values = bsr.values().as_ptr().add(block * B * B);
                simd::prefetch(values.wrapping_add(AHEAD));
                if prefetch > 0 {
                    let ahead = *cols.get_unchecked((block + prefetch).min(cols.len() - 1));
                    let rows = from_x.wrapping_add(ahead as usize * B * x.pitch);
                    for c in 0..B {
                        for v in 0..V {
                            simd::prefetch(rows.wrapping_add(c * x.pitch + v * LANES));
                        }
                    }
                }
                let mut row = from_x.add(*cols.get_unchecked(block) as usize * B * x.pitch);
                for c in 0..B {
                    let mut of_x = [I::splat(T::ZERO); V];
                    for (v, of_x) in of_x.iter_mut().enumerate() {
                        *of_x = I::load(row.add(v * LANES));
                    }
                    for (r, sums) in sums.iter_mut().enumerate() {
                        let value = I::splat(*values.add(c * B + r));
                        for (sum, &of_x) in sums.iter_mut().zip(&of_x) {
                            *sum = I::mul_add(value, of_x, *sum);
                        }
                    }
                    row = row.wrapping_add(x.pitch);
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                if r < self.count {
                    let to = self.to.add(r * self.pitch + col);
                    for (v, &sum) in sums.iter().enumerate() {
                        I::store(to.add(v * LANES), sum);
                    }
                }
            }
        }
        V * LANES
    }

    /// Blocks of any size, some of which may extend beyond A.
    #[inline(always)]
    unsafe fn rows_of_any<I: Isa<T>>(&self) {
        let Part { bsr, x, k, .. } = *self.part;
        let size = bsr.block().0;
        for r in 0..self.count {
            for first in (0..k).step_by(LANES) {
                let columns = LANES.min(k - first);
                // SAFETY: the caller's promise; blocks have `size` x `size` values, and a column of A for
                // the first column of each.
                unsafe {
                    let mut sum = I::splat(T::ZERO);
                    for block in self.blocks() {
                        let first_col = *bsr.block_col().get_unchecked(block) as usize * size;
                        for c in 0..size.min(bsr.cols() - first_col) {
                            let value = *bsr.values().get_unchecked((block * size + c) * size + r);
                            let row = x.elements.as_ptr().add((first_col + c) * x.pitch + first);
                            let of_x = I::load_first(columns, row);
                            sum = I::mul_add(I::splat(value), of_x, sum);
                        }
                    }
                    I::store_first(columns, self.to.add(r * self.pitch + first), sum);
                }
            }
        }
    }

    /// Computes again what is not finite: padding may have met an infinite x; 0 x inf is NaN.
    #[inline(always)]
    unsafe fn repair(&self) {
        let Part { a, bsr, x, k, .. } = *self.part;
        for r in 0..self.count {
            let (cols, values) = a.row(self.block_row * bsr.block().0 + r);
            for c in 0..k {
                // SAFETY: the caller's promise: `k` elements were stored.
                let to = unsafe { &mut *self.to.add(r * self.pitch + c) };
                if !to.is_finite() {
                    let terms = cols.iter().zip(values);
                    *to = terms.fold(T::ZERO, |sum, (&col, &value)| {
                        sum + value * x.elements[col as usize * x.pitch + c]
                    });
                }
            }
        }
    }
}
