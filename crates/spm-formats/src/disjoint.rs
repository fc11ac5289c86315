//! A mutable slice that several threads write at the same time, each in its own ranges.

use std::marker::PhantomData;
use std::ops::Range;

/// A mutable slice that several threads may write, each element by one thread only.
#[derive(Debug, Clone, Copy)]
pub struct Disjoint<'a, T> {
    start: *mut T,
    len: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

// SAFETY: whoever calls the unsafe methods promises that no element is used by two threads.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    /// Borrows the slice for all threads.
    pub fn new(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), lifetime: PhantomData }
    }

    /// The elements of `range`.
    ///
    /// # Safety
    /// While the result lives, nothing else reads or writes these elements.
    ///
    /// # Panics
    /// When the range is outside the slice.
    pub unsafe fn range(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        // SAFETY: inside the slice by the assertion, exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// Overwrites the element at `index`.
    ///
    /// # Safety
    /// Nothing else reads or writes this element at the same time.
    ///
    /// # Panics
    /// When the index is outside the slice.
    #[inline(always)]
    pub unsafe fn write(&self, index: usize, value: T) {
        assert!(index < self.len, "{index} of {}", self.len);
        // SAFETY: inside the slice by the assertion, exclusive by the caller's promise.
        unsafe { self.start.add(index).write(value) };
    }

    /// [`Disjoint::write`] without its check.
    ///
    /// # Safety
    /// The index is inside the slice, and nothing else reads or writes this element at the same
    /// time.
    #[inline(always)]
    pub unsafe fn write_unchecked(&self, index: usize, value: T) {
        debug_assert!(index < self.len, "{index} of {}", self.len);
        // SAFETY: the caller's promise.
        unsafe { self.start.add(index).write(value) };
    }

    /// Prefetches the cache line of an element for a write. Any index is allowed.
    #[inline(always)]
    pub fn prefetch(&self, index: usize) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch accesses nothing that the program can observe, at any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.address(index).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = index;
    }

    /// The address of the element at `index`, for a prefetch. Any index is allowed; nothing is
    /// read.
    #[inline(always)]
    pub fn address(&self, index: usize) -> *const T {
        self.start.wrapping_add(index)
    }

    /// A pointer to the element at `index`.
    ///
    /// # Safety
    /// The index is inside the slice. Writes through the pointer obey the rule of
    /// [`Disjoint::range`].
    #[inline(always)]
    pub unsafe fn pointer(&self, index: usize) -> *mut T {
        debug_assert!(index < self.len, "{index} of {}", self.len);
        // SAFETY: the caller's promise.
        unsafe { self.start.add(index) }
    }
}
