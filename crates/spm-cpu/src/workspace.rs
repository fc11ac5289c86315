//! Workspace of a plan: memory aligned to cache lines, on huge pages if it is large enough.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use spm_formats::Scalar;
use spm_formats::huge_pages::{self, HUGE_PAGE};
use spm_formats::kernel::Schedule;

use crate::Threads;
use crate::disjoint::Disjoint;

/// Bytes of a cache line, and of the widest vector.
pub(crate) const CACHE_LINE: usize = 64;

/// The alignment of a workspace of this many bytes.
fn alignment(bytes: usize) -> usize {
    if bytes < HUGE_PAGE { CACHE_LINE } else { HUGE_PAGE }
}

/// An array aligned to cache lines, on huge pages if it fills at least one.
#[derive(Debug)]
pub(crate) struct Workspace<T> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: owns its elements, as Vec does.
unsafe impl<T: Send> Send for Workspace<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Workspace<T> {}

impl<T: Copy + Send> Workspace<T> {
    pub(crate) fn new(len: usize, value: T) -> Self {
        let write = |all: &mut [MaybeUninit<T>]| {
            for element in all {
                element.write(value);
            }
        };
        // SAFETY: each element is written.
        unsafe { Self::written(len, write) }
    }

    /// An array of `len` elements, element i of which is `of(i)`; a large one is written by all of `threads`, whose
    /// memory its pages then are.
    pub(crate) fn on(threads: &Threads, len: usize, of: impl Fn(usize) -> T + Sync) -> Self {
        let caller = threads.on_the_caller();
        let threads = if len * size_of::<T>() < HUGE_PAGE { &caller } else { threads };
        let write = |all: &mut [MaybeUninit<T>]| {
            let all = Disjoint::new(all);
            threads.for_each_chunk(len, Schedule::Static, 0, |range| {
                // SAFETY: the ranges do not overlap.
                for (i, element) in range.clone().zip(unsafe { all.range(range) }) {
                    element.write(of(i));
                }
            });
        };
        // SAFETY: the ranges cover all elements.
        unsafe { Self::written(len, write) }
    }

    /// An array of what `write` writes.
    ///
    /// # Safety
    /// `write` writes each element.
    unsafe fn written(len: usize, write: impl FnOnce(&mut [MaybeUninit<T>])) -> Self {
        let layout = Self::layout(len);
        if layout.size() == 0 {
            return Self { start: NonNull::dangling(), len };
        }
        // SAFETY: the size is not 0.
        let start = unsafe { alloc(layout) }.cast::<T>();
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // SAFETY: `len` elements were allocated; MaybeUninit may hold anything.
        let memory =
            unsafe { std::slice::from_raw_parts_mut(start.as_ptr().cast::<MaybeUninit<T>>(), len) };
        huge_pages::prefer(memory);
        write(memory);
        Self { start, len }
    }

    fn layout(len: usize) -> Layout {
        let align = |array: Layout| array.align_to(alignment(array.size()));
        let layout = Layout::array::<T>(len).and_then(align);
        layout.expect("the workspace fits into the address space")
    }
}

impl<T: Scalar> Workspace<T> {
    pub(crate) fn zeros(len: usize) -> Self {
        Self::new(len, T::ZERO)
    }
}

impl<T> Drop for Workspace<T> {
    fn drop(&mut self) {
        let bytes = self.len * size_of::<T>();
        if bytes > 0 {
            // SAFETY: the layout it was allocated with.
            unsafe {
                let layout = Layout::from_size_align_unchecked(bytes, alignment(bytes));
                dealloc(self.start.as_ptr().cast(), layout);
            }
        }
    }
}

impl<T> Deref for Workspace<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised elements.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Workspace<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_cache_line_and_holds_what_is_written() {
        for len in [0, 1, 1000, 1 << 20] {
            let mut workspace = Workspace::<f64>::zeros(len);
            assert!(len == 0 || workspace.as_ptr().addr().is_multiple_of(CACHE_LINE));
            assert_eq!(*workspace, vec![0.0; len]);
            let numbered = Workspace::on(&Threads::new(3), len, |i| i);
            assert!(numbered.iter().copied().eq(0..len));
            workspace.fill(2.0);
            assert_eq!(workspace.iter().sum::<f64>(), 2.0 * len as f64);
        }
    }
}
