//! Atomic operations on global memory, relaxed where their names do not say more. The order in which floating-point additions
//! happen is not fixed: a kernel that must give the same bits every time cannot use them.

use super::backend::{self, AtomicAccess};
use super::{DevicePtrMut, Element, Index};

/// A word that can be compared and exchanged: `u32`, `u64`.
pub trait AtomicWord: Element + AtomicAccess {}
impl AtomicWord for u32 {}
impl AtomicWord for u64 {}

/// A number that can be added to: `u32`, `u64`, `f32`, `f64`.
pub trait AtomicAdd: Element + backend::AtomicSum {}
impl AtomicAdd for u32 {}
impl AtomicAdd for u64 {}
impl AtomicAdd for f32 {}
impl AtomicAdd for f64 {}

impl<T: AtomicAdd> DevicePtrMut<T> {
    /// Adds to element `index` and returns what it was.
    #[inline(always)]
    pub fn atomic_add(self, index: impl Index, value: T) -> T {
        T::atomic_add_global(self.element_address(index), value)
    }

    /// [`DevicePtrMut::atomic_add`] after all earlier accesses of this thread (`atom.release.gpu`).
    #[inline(always)]
    pub fn atomic_add_release(self, index: impl Index, value: T) -> T {
        T::atomic_add_release(self.element_address(index), value)
    }
}

impl<T: AtomicWord> DevicePtrMut<T> {
    /// Replaces element `index` and returns what it was.
    #[inline(always)]
    pub fn atomic_exchange(self, index: impl Index, value: T) -> T {
        T::atomic_exchange_global(self.element_address(index), value)
    }

    /// Replaces element `index` by `new` where it is `expected`; returns what it was.
    #[inline(always)]
    pub fn atomic_compare_exchange(self, index: impl Index, expected: T, new: T) -> T {
        T::atomic_compare_exchange_global(self.element_address(index), expected, new)
    }

    /// Element `index`, ordered before all later accesses of this thread
    /// (`ld.acquire.gpu`).
    #[inline(always)]
    pub fn load_acquire(self, index: impl Index) -> T {
        T::load_acquire(self.element_address(index))
    }

    /// Overwrites element `index` after all earlier accesses of this thread
    /// (`st.release.gpu`).
    #[inline(always)]
    pub fn store_release(self, index: impl Index, value: T) {
        T::store_release(self.element_address(index), value);
    }
}
