//! A mutable slice that several threads write at the same time, each in its own ranges.

use std::marker::PhantomData;
use std::ops::Range;

/// A mutable slice that threads share; each element is written by one thread only.
pub(crate) struct DisjointSlice<'a, T> {
    pointer: *mut T,
    length: usize,
    owner: PhantomData<&'a mut [T]>,
}

// SAFETY: the methods' contracts forbid overlapping accesses, so sharing the pointer moves elements
// between threads at most; that needs T: Send.
unsafe impl<T: Send> Sync for DisjointSlice<'_, T> {}
// SAFETY: as for Sync; the slice itself is exclusively borrowed for 'a.
unsafe impl<T: Send> Send for DisjointSlice<'_, T> {}

impl<'a, T: Copy> DisjointSlice<'a, T> {
    /// Borrows `slice` for all threads.
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self { pointer: slice.as_mut_ptr(), length: slice.len(), owner: PhantomData }
    }

    /// Writes one element.
    ///
    /// # Safety
    /// `index` is inside the slice, and no other thread accesses it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, index: usize, value: T) {
        debug_assert!(index < self.length, "write at {index} of {}", self.length);
        // SAFETY: in bounds and unshared by contract.
        unsafe { self.pointer.add(index).write(value) }
    }

    /// Prefetches the cache line of an element for a write; any `index` is allowed.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: usize) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch accesses nothing that the program can observe, at any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.pointer.wrapping_add(index).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = index;
    }

    /// One part of the slice.
    ///
    /// # Safety
    /// No other part that is alive meanwhile overlaps `range`.
    ///
    /// # Panics
    /// When `range` leaves the slice.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the contract makes the parts disjoint")]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.length, "part outside the slice");
        // SAFETY: in bounds by the assertion, unaliased by contract.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.add(range.start), range.len()) }
    }
}
