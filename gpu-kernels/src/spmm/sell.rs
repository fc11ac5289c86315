//! SELL-32-sigma access for the SpMM kernels: each row up to its length, without padding.

use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, Real};

/// The matrix. Position p lies in chunk p / 32; its stored elements are 32 apart.
#[derive(Clone, Copy)]
pub(super) struct Sell<T> {
    pub(super) rows: u32,
    /// Whether positions are not rows.
    pub(super) sorted: bool,
    /// Chunk offsets in columns of 32 stored elements.
    pub(super) chunk_starts: DevicePtr<u32>,
    pub(super) permutation: DevicePtr<u32>,
    pub(super) row_lengths: DevicePtr<u32>,
    pub(super) col_ind: DevicePtr<u32>,
    pub(super) values: DevicePtr<T>,
}

/// The stored elements of a position.
#[derive(Clone, Copy)]
pub(super) struct Elements<T> {
    first: u64,
    pub(super) length: u32,
    col_ind: DevicePtr<u32>,
    values: DevicePtr<T>,
}

impl<T: Real> Sell<T> {
    /// Those of `position`, which must be below `rows`.
    #[inline(always)]
    pub(super) fn elements(self, position: u32) -> Elements<T> {
        let start = u64::from(self.chunk_starts.load(position / WARP_SIZE));
        Elements {
            first: start * u64::from(WARP_SIZE) + u64::from(position % WARP_SIZE),
            length: self.row_lengths.load(position),
            col_ind: self.col_ind,
            values: self.values,
        }
    }

    /// The row at `position`.
    #[inline(always)]
    pub(super) fn row(self, position: u32) -> u32 {
        if self.sorted { self.permutation.load(position) } else { position }
    }
}

impl<T: Real> Elements<T> {
    /// Column and value of `N` stored elements from `element` on, `left` of which are the row's;
    /// column 0 and value 0 for the others.
    #[inline(always)]
    pub(super) fn load<const N: usize>(self, element: u32, left: u32) -> [(u32, T); N] {
        // Constant distances from one address.
        let first = self.first + u64::from(element) * u64::from(WARP_SIZE);
        let (col_ind, values) = (self.col_ind.offset(first), self.values.offset(first));
        let at = |u: usize| {
            let at = u as u32 * WARP_SIZE;
            (col_ind.load_with_line(at), values.load_with_line(at))
        };
        if left >= N as u32 {
            return core::array::from_fn(at);
        }
        core::array::from_fn(|u| if (u as u32) < left { at(u) } else { (0, T::ZERO) })
    }
}
