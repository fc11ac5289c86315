//! SELL-32-sigma as its kernels here read it: each row as far as its length, no padding.

use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, Real};

/// The matrix. Position p lies in chunk p / 32; its slots are 32 apart.
#[derive(Clone, Copy)]
pub(super) struct Sell<T> {
    pub(super) rows: u32,
    /// Whether positions are not rows.
    pub(super) sorted: bool,
    /// Chunk offsets in columns of 32 slots.
    pub(super) chunk_starts: DevicePtr<u32>,
    pub(super) permutation: DevicePtr<u32>,
    pub(super) row_lengths: DevicePtr<u32>,
    pub(super) col_indices: DevicePtr<u32>,
    pub(super) values: DevicePtr<T>,
}

/// The slots of a position.
#[derive(Clone, Copy)]
pub(super) struct Slots<T> {
    first: u64,
    pub(super) length: u32,
    col_indices: DevicePtr<u32>,
    values: DevicePtr<T>,
}

impl<T: Real> Sell<T> {
    /// Those of `position`, which must be below `rows`.
    #[inline(always)]
    pub(super) fn slots(self, position: u32) -> Slots<T> {
        let start = u64::from(self.chunk_starts.load(position / WARP_SIZE));
        Slots {
            first: start * u64::from(WARP_SIZE) + u64::from(position % WARP_SIZE),
            length: self.row_lengths.load(position),
            col_indices: self.col_indices,
            values: self.values,
        }
    }

    /// The row at `position`.
    #[inline(always)]
    pub(super) fn row(self, position: u32) -> u32 {
        if self.sorted { self.permutation.load(position) } else { position }
    }
}

impl<T: Real> Slots<T> {
    /// Column and value of `N` slots from `slot` on; column 0 and value 0 beyond the row.
    #[inline(always)]
    pub(super) fn load<const N: usize>(self, slot: u32) -> [(u32, T); N] {
        core::array::from_fn(|u| {
            if slot + (u as u32) < self.length {
                let at = self.first + (u64::from(slot) + u as u64) * u64::from(WARP_SIZE);
                (self.col_indices.load(at), self.values.load(at))
            } else {
                (0, T::ZERO)
            }
        })
    }
}
