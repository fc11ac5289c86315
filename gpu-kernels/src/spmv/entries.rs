//! Access to the value and the column of a CSR entry, for full and compressed storage.

use crate::device::shared::SharedArray;
use crate::device::{DevicePtr, Number, thread};

/// The entries of a CSR matrix, by position.
pub(crate) trait Entries<T: Number>: Copy {
    /// Value and column of entry `k`.
    fn entry(self, k: u32) -> (T, u32);
}

/// Puts the products of `count` entries from `first` on into shared memory, in order, with all
/// threads of a one-dimensional block; four entries are loaded before the first is used. To be
/// followed by a barrier.
#[inline(always)]
pub(crate) fn products_to_shared<T: Number>(
    products: SharedArray<T>,
    matrix: impl Entries<T>,
    x: DevicePtr<T>,
    first: u32,
    count: u32,
) {
    let threads = thread::block_dim_x();
    let mut i = thread::thread_idx_x();
    // `count` is at most a few thousand: nothing wraps.
    while i + 3 * threads < count {
        let entries = [0, 1, 2, 3].map(|j| matrix.entry(first + i + j * threads));
        let x = entries.map(|(_, column)| x.load(column));
        products.store(i, entries[0].0 * x[0]);
        products.store(i + threads, entries[1].0 * x[1]);
        products.store(i + 2 * threads, entries[2].0 * x[2]);
        products.store(i + 3 * threads, entries[3].0 * x[3]);
        i += 4 * threads;
    }
    while i < count {
        let (value, column) = matrix.entry(first + i);
        products.store(i, value * x.load(column));
        i += threads;
    }
}

/// A column and a value for each entry.
#[derive(Clone, Copy)]
pub(crate) struct Stored<T> {
    pub(crate) col_ind: DevicePtr<u32>,
    pub(crate) values: DevicePtr<T>,
}

impl<T: Number> Entries<T> for Stored<T> {
    #[inline(always)]
    fn entry(self, k: u32) -> (T, u32) {
        (self.values.load(k), self.col_ind.load(k))
    }
}

/// All values equal: no value array is read.
#[derive(Clone, Copy)]
pub(crate) struct Equal<T> {
    pub(crate) col_ind: DevicePtr<u32>,
    pub(crate) value: T,
}

impl<T: Number> Entries<T> for Equal<T> {
    #[inline(always)]
    fn entry(self, k: u32) -> (T, u32) {
        (self.value, self.col_ind.load(k))
    }
}

/// Columns as 16-bit offsets from a base, that of the row.
#[derive(Clone, Copy)]
pub(crate) struct Short<T> {
    pub(crate) base: u32,
    pub(crate) col_offsets: DevicePtr<u16>,
    pub(crate) values: DevicePtr<T>,
}

impl<T: Number> Entries<T> for Short<T> {
    #[inline(always)]
    fn entry(self, k: u32) -> (T, u32) {
        (self.values.load(k), self.base + u32::from(self.col_offsets.load(k)))
    }
}

/// [`Short`] columns, all values equal.
#[derive(Clone, Copy)]
pub(crate) struct ShortEqual<T> {
    pub(crate) base: u32,
    pub(crate) col_offsets: DevicePtr<u16>,
    pub(crate) value: T,
}

impl<T: Number> Entries<T> for ShortEqual<T> {
    #[inline(always)]
    fn entry(self, k: u32) -> (T, u32) {
        (self.value, self.base + u32::from(self.col_offsets.load(k)))
    }
}
