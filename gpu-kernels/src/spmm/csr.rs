//! CSR as its kernels over columns of X read it: four entries at once.

use crate::device::{DevicePtr, Real};

/// Entries that are loaded at once.
pub(super) const QUAD: u32 = 4;

/// The matrix.
#[derive(Clone, Copy)]
pub(super) struct Csr<T> {
    pub(super) rows: u32,
    pub(super) entries: u32,
    pub(super) pointers: DevicePtr<u32>,
    pub(super) col_indices: DevicePtr<u32>,
    pub(super) values: DevicePtr<T>,
}

impl<T: Real> Csr<T> {
    /// Columns and values of the entries from `first` on, a multiple of 4 below the number of
    /// entries, across the ends of rows; column 0 and value 0 behind the last one.
    #[inline(always)]
    pub(super) fn quad(self, first: u32) -> ([u32; 4], [T; 4]) {
        if self.entries - first >= QUAD {
            let low = T::load_pair(self.values, u64::from(first));
            let high = T::load_pair(self.values, u64::from(first) + 2);
            (self.col_indices.load_vector::<4>(first), [low[0], low[1], high[0], high[1]])
        } else {
            let left = self.entries - first;
            let column = |u: usize| {
                if (u as u32) < left { self.col_indices.load(first + u as u32) } else { 0 }
            };
            let value = |u: usize| {
                if (u as u32) < left { self.values.load(first + u as u32) } else { T::ZERO }
            };
            (core::array::from_fn(column), core::array::from_fn(value))
        }
    }
}
