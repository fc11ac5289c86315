//! Dynamic shared memory: one untyped buffer per block, whose size is an argument of the launch.
//!
//! A kernel allocates typed arrays from it with [`Pool`]. The host makes the same allocations and
//! then calls [`Pool::bytes`] to compute the size.

use core::marker::PhantomData;

use super::backend::{Access, AccessIf, AtomicAccess, AtomicSum};
use super::{AtomicAdd, AtomicWord, Element};

/// An allocator of arrays in shared memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pool {
    bytes: u32,
}

impl Pool {
    /// All of the block's shared memory.
    #[inline(always)]
    pub const fn new() -> Self {
        Self { bytes: 0 }
    }

    /// The next `length` elements.
    #[inline(always)]
    pub fn array<T: Element>(&mut self, length: u32) -> SharedArray<T> {
        let offset = (self.bytes + T::ALIGNMENT - 1) & !(T::ALIGNMENT - 1);
        self.bytes = offset + length * size_of::<T>() as u32;
        SharedArray { offset, length, element: PhantomData }
    }

    /// Bytes allocated so far: the dynamic shared memory that the launch needs.
    #[inline(always)]
    pub const fn bytes(self) -> u32 {
        self.bytes
    }
}

/// An array in shared memory.
#[derive(Debug, Clone, Copy)]
pub struct SharedArray<T> {
    offset: u32,
    length: u32,
    element: PhantomData<T>,
}

impl<T: Element> SharedArray<T> {
    #[inline(always)]
    fn offset_of(self, index: u32) -> u32 {
        #[cfg(not(target_arch = "nvptx64"))]
        super::backend::check_shared_index(index, self.length);
        self.offset + index * size_of::<T>() as u32
    }

    /// Number of elements.
    #[inline(always)]
    pub fn length(self) -> u32 {
        self.length
    }

    /// Element `index`.
    #[inline(always)]
    pub fn load(self, index: u32) -> T {
        T::load_shared(self.offset_of(index))
    }

    /// Overwrites element `index`.
    #[inline(always)]
    pub fn store(self, index: u32, value: T) {
        T::store_shared(self.offset_of(index), value);
    }

    /// Elements `index` to `index + N` at once, as for [`SharedArray::store_vector`].
    #[inline(always)]
    pub fn load_vector<const N: usize>(self, index: u32) -> [T; N]
    where
        [T; N]: Element,
    {
        #[cfg(not(target_arch = "nvptx64"))]
        super::backend::check_shared_index(index + N as u32 - 1, self.length);
        <[T; N]>::load_shared(self.offset_of(index))
    }

    /// Overwrites elements `index` to `index + N` at once. `index` must be a multiple of N, which is 2
    /// or 4, and the array must begin where `[T; N]` may lie, as the first one of a [`Pool`] does.
    #[inline(always)]
    pub fn store_vector<const N: usize>(self, index: u32, value: [T; N])
    where
        [T; N]: Element,
    {
        #[cfg(not(target_arch = "nvptx64"))]
        super::backend::check_shared_index(index + N as u32 - 1, self.length);
        <[T; N]>::store_shared(self.offset_of(index), value);
    }
}

impl<T: Element + AccessIf> SharedArray<T> {
    /// As [`SharedArray::offset_of`]; `index` means nothing without the condition.
    #[inline(always)]
    fn offset_if(self, condition: bool, index: u32) -> u32 {
        #[cfg(not(target_arch = "nvptx64"))]
        if condition {
            super::backend::check_shared_index(index, self.length);
        }
        let _ = condition;
        self.offset.wrapping_add(index.wrapping_mul(size_of::<T>() as u32))
    }

    /// Element `index` if `condition` holds, else `otherwise`: a load under a predicate, without a
    /// branch. For `u16`, `u32`, `u64`, `f32`, `f64`.
    #[inline(always)]
    pub fn load_if(self, condition: bool, index: u32, otherwise: T) -> T {
        T::load_shared_if(condition, self.offset_if(condition, index), otherwise)
    }

    /// Overwrites element `index` if `condition` holds; see [`SharedArray::load_if`].
    #[inline(always)]
    pub fn store_if(self, condition: bool, index: u32, value: T) {
        T::store_shared_if(condition, self.offset_if(condition, index), value);
    }
}

impl<T: AtomicAdd> SharedArray<T> {
    /// Adds to element `index` and returns what it was.
    #[inline(always)]
    pub fn atomic_add(self, index: u32, value: T) -> T {
        <T as AtomicSum>::atomic_add_shared(self.offset_of(index), value)
    }
}

impl<T: AtomicWord> SharedArray<T> {
    /// Replaces element `index` and returns what it was.
    #[inline(always)]
    pub fn atomic_exchange(self, index: u32, value: T) -> T {
        <T as AtomicAccess>::atomic_exchange_shared(self.offset_of(index), value)
    }

    /// Replaces element `index` by `new` where it is `expected`; returns what it was.
    #[inline(always)]
    pub fn atomic_compare_exchange(self, index: u32, expected: T, new: T) -> T {
        <T as AtomicAccess>::atomic_compare_exchange_shared(self.offset_of(index), expected, new)
    }
}
