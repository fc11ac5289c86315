//! Writes finished rows of Y to memory in the layout and with the stores that suit Y.

use spm_formats::Scalar;

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
