//! Where the value and the column of a CSR entry come from.

use crate::device::{DevicePtr, Real};

/// The entries of a CSR matrix, by position.
pub(crate) trait Entries<T: Real>: Copy {
    /// Value and column of entry `k`.
    fn entry(self, k: u32) -> (T, u32);

    /// The product of entry `k`, rounded.
    #[inline(always)]
    fn product(self, k: u32, x: DevicePtr<T>) -> T {
        let (value, column) = self.entry(k);
        value * x.load(column)
    }
}

/// A column and a value for each entry.
#[derive(Clone, Copy)]
pub(crate) struct Stored<T> {
    pub(crate) col_indices: DevicePtr<u32>,
    pub(crate) values: DevicePtr<T>,
}

impl<T: Real> Entries<T> for Stored<T> {
    #[inline(always)]
    fn entry(self, k: u32) -> (T, u32) {
        (self.values.load(k), self.col_indices.load(k))
    }
}

/// All values equal: no value array is read.
#[derive(Clone, Copy)]
pub(crate) struct Equal<T> {
    pub(crate) col_indices: DevicePtr<u32>,
    pub(crate) value: T,
}

impl<T: Real> Entries<T> for Equal<T> {
    #[inline(always)]
    fn entry(self, k: u32) -> (T, u32) {
        (self.value, self.col_indices.load(k))
    }
}

/// Columns as 16-bit offsets from a base, that of the row.
#[derive(Clone, Copy)]
pub(crate) struct Short<T> {
    pub(crate) base: u32,
    pub(crate) col_offsets: DevicePtr<u16>,
    pub(crate) values: DevicePtr<T>,
}

impl<T: Real> Entries<T> for Short<T> {
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

impl<T: Real> Entries<T> for ShortEqual<T> {
    #[inline(always)]
    fn entry(self, k: u32) -> (T, u32) {
        (self.value, self.base + u32::from(self.col_offsets.load(k)))
    }
}
