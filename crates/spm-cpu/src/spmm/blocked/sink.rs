//! Writes finished rows of Y to memory in the layout and with the stores that suit Y.

use std::ops::Range;

use spm_formats::{Layout, Scalar};

use crate::disjoint::Disjoint;
use crate::scaled::{self, Update};
use crate::simd::{Isa, LANES};

/// Takes tiles of rows, one after the other.
pub(super) enum Sink<'a, T> {
    /// Row-major Y in cache: rows are written directly.
    Direct {
        /// The remaining rows, `pitch` elements from one to the next.
        y: &'a mut [T],
        pitch: usize,
    },
    /// Row-major Y larger than the caches: rows are collected and written with streaming stores, a
    /// cache line at a time, so that Y is not read before it is written.
    Stream {
        /// The remaining elements.
        y: &'a mut [T],
        k: usize,
        /// `pending` finished elements, then room for a tile and a vector.
        stage: &'a mut [T],
        pending: usize,
    },
    /// Row-major Y = alpha A X + beta Y: rows are collected in cache, and combined with Y.
    Scaled {
        /// The remaining rows, `pitch` elements from one to the next.
        y: &'a mut [T],
        pitch: usize,
        k: usize,
        stage: &'a mut [T],
        scaling: Update<'a, T>,
    },
    /// Column-major Y: tiles are transposed.
    Columns {
        y: Disjoint<'a, T>,
        /// Elements from one column to the next.
        pitch: usize,
        k: usize,
        /// The first row of the next tile.
        row: usize,
        stage: &'a mut [T],
        scaling: Option<Update<'a, T>>,
    },
}

/// Y of a product, whose rows several threads write.
#[derive(Clone, Copy)]
pub(super) struct Output<'a, T> {
    pub(super) y: Disjoint<'a, T>,
    /// Elements of `y`.
    pub(super) length: usize,
    pub(super) layout: Layout,
    pub(super) k: usize,
    /// Elements from one row (row-major) or column (column-major) to the next.
    pub(super) leading: usize,
    /// Whether sums that are not scaled are streamed past the caches.
    pub(super) stream: bool,
    pub(super) scaling: Option<Update<'a, T>>,
}

impl<'a, T: Scalar> Output<'a, T> {
    /// The sink for some rows, with a staging buffer if it needs one.
    ///
    /// # Safety
    /// `y` has the rows, and nothing else uses them while the sink is there.
    pub(super) unsafe fn rows(self, rows: Range<usize>, stage: &'a mut [T]) -> Sink<'a, T> {
        let Self { y, length, layout, k, leading, stream, scaling } = self;
        if layout == Layout::ColumnMajor {
            return Sink::Columns { y, pitch: leading, k, row: rows.start, stage, scaling };
        }
        // Behind the last row there may be less than from one row to the next.
        let (start, end) = (rows.start * leading, (rows.end * leading).min(length));
        // SAFETY: the caller's promise.
        let y = unsafe { y.range(start.min(end)..end) };
        match scaling {
            Some(scaling) => Sink::Scaled { y, pitch: leading, k, stage, scaling },
            None if stream && leading == k => Sink::Stream { y, k, stage, pending: 0 },
            None => Sink::Direct { y, pitch: leading },
        }
    }
}

/// Elements of the staging buffer of a tile.
pub(super) fn stage_len(tile: usize, k: usize) -> usize {
    // A line's worth of pending elements, of f32 at most.
    tile * k + 2 * LANES
}

impl<T: Scalar> Sink<'_, T> {
    /// The destination of the next tile's rows, and the distance between neighbouring rows.
    #[inline(always)]
    pub(super) fn tile(&mut self) -> (*mut T, usize) {
        match self {
            Self::Direct { y, pitch } => (y.as_mut_ptr(), *pitch),
            Self::Stream { stage, pending, k, .. } => (stage[*pending..].as_mut_ptr(), *k),
            Self::Scaled { stage, k, .. } | Self::Columns { stage, k, .. } => {
                (stage.as_mut_ptr(), *k)
            }
        }
    }

    /// Called when the tile's `count` rows have been written.
    ///
    /// # Safety
    /// The processor has the instructions of `I`.
    #[inline(always)]
    pub(super) unsafe fn flush<I: Isa<T>>(&mut self, count: usize) {
        match self {
            Self::Direct { y, pitch } => {
                let all = std::mem::take(y);
                // Behind the last row there may be less than from one row to the next.
                let done = (count * *pitch).min(all.len());
                *y = &mut all[done..];
            }
            Self::Stream { y, k, stage, pending } => {
                let finished = *pending + count * *k;
                // Elements before a multiple of the vector's size are written as usual.
                let head = y.as_ptr().align_offset(LANES * T::BYTES).min(finished);
                let streamed = (finished - head) / LANES * LANES;
                let all = std::mem::take(y);
                let (to, rest) = all.split_at_mut(head + streamed);
                to[..head].copy_from_slice(&stage[..head]);
                for (to, from) in to[head..]
                    .chunks_exact_mut(LANES)
                    .zip(stage[head..finished].chunks_exact(LANES))
                {
                    // SAFETY: a vector on either side; the first of `to` is aligned by `head`.
                    unsafe { I::stream(to.as_mut_ptr(), I::load(from.as_ptr())) };
                }
                stage.copy_within(head + streamed..finished, 0);
                *pending = finished - head - streamed;
                *y = rest;
            }
            Self::Scaled { y, pitch, k, stage, scaling } => {
                let all = std::mem::take(y);
                let done = (count * *pitch).min(all.len());
                let (to, rest) = all.split_at_mut(done);
                if *pitch == *k {
                    scaling.combine(&stage[..to.len()], to);
                } else {
                    for (to, sums) in to.chunks_mut(*pitch).zip(stage.chunks_exact(*k)) {
                        scaling.combine(sums, &mut to[..*k]);
                    }
                }
                *y = rest;
            }
            Self::Columns { y, pitch, k, row, stage, scaling } => {
                for c in 0..*k {
                    let start = c * *pitch + *row;
                    // SAFETY: no other part has these rows.
                    let column = unsafe { y.range(start..start + count) };
                    for (i, element) in column.iter_mut().enumerate() {
                        scaled::store(*scaling, stage[i * *k + c], element);
                    }
                }
                *row += count;
            }
        }
    }

    /// Writes the pending elements.
    ///
    /// # Safety
    /// The processor has the instructions of `I`.
    #[inline(always)]
    pub(super) unsafe fn finish<I: Isa<T>>(&mut self) {
        if let Self::Stream { y, stage, pending, .. } = self {
            y[..*pending].copy_from_slice(&stage[..*pending]);
            // SAFETY: the caller's promise.
            unsafe { I::stream_fence() };
        }
    }
}
