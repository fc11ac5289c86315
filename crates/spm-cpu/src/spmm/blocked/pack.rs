//! A row-major copy of a column-major X, aligned to cache lines and on huge pages.

use spm_formats::Scalar;
use spm_formats::kernel::Schedule;

use crate::Threads;
use crate::disjoint::Disjoint;
use crate::simd::LANES;
use crate::workspace::Workspace;

/// Rows of X that are packed at a time: two cache lines of each column.
const ROWS_PER_TILE: usize = 16;

/// A copy of X with `pitch` elements from row to row.
pub(super) struct Packed<T> {
    pub(super) elements: Workspace<T>,
    pub(super) pitch: usize,
}

impl<T: Scalar> Packed<T> {
    pub(super) fn new(rows: usize, k: usize) -> Self {
        let pitch = Self::pitch(k);
        Self { elements: Workspace::zeros(rows * pitch), pitch }
    }

    /// Elements that [`Packed::new`] allocates.
    pub(super) fn elements(rows: usize, k: usize) -> u128 {
        rows as u128 * Self::pitch(k) as u128
    }

    /// Narrow rows stay close to each other; wide ones start on a vector.
    fn pitch(k: usize) -> usize {
        if k < LANES { k.next_power_of_two() } else { k.next_multiple_of(LANES) }
    }

    /// Copies the `k` columns of `x`, which start `leading` elements apart.
    pub(super) fn fill(
        &mut self,
        x: &[T],
        (rows, k): (usize, usize),
        leading: usize,
        threads: &Threads,
    ) {
        let pitch = self.pitch;
        let elements = Disjoint::new(&mut self.elements);
        let tiles = rows.div_ceil(ROWS_PER_TILE);
        threads.for_each_chunk(tiles, Schedule::Static, 0, |tiles| {
            for tile in tiles {
                let (start, end) = (tile * ROWS_PER_TILE, rows.min((tile + 1) * ROWS_PER_TILE));
                // SAFETY: tiles do not overlap.
                let packed = unsafe { elements.range(start * pitch..end * pitch) };
                for c in 0..k {
                    let column = &x[c * leading + start..c * leading + end];
                    for (to, &element) in packed.chunks_exact_mut(pitch).zip(column) {
                        to[c] = element;
                    }
                }
            }
        });
    }
}
