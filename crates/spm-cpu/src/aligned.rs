//! Arrays aligned to a cache line, so that a vector load never crosses two lines; large ones to a huge page.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use spm_formats::huge_pages::{self, HUGE_PAGE};

/// Bytes of a cache line, and of the widest vector.
pub(crate) const ALIGNMENT: usize = 64;

/// Bytes that the alignment of so many arrays takes at most, whose elements take `bytes` bytes together.
pub(crate) fn gaps(arrays: usize, bytes: usize) -> usize {
    let of_large = if bytes < HUGE_PAGE { 0 } else { bytes.min(arrays.saturating_mul(HUGE_PAGE)) };
    arrays * ALIGNMENT + of_large
}

/// An array whose first element is at the start of a cache line, or of a huge page if it fills one.
///
/// The allocator is not asked for the alignment: what glibc's aligns to huge pages it takes from the system each time
/// and gives back, and plans that follow each other would wait for new memory. The array begins inside a longer one.
#[derive(Debug)]
pub(crate) struct Aligned<T> {
    /// Elements from `start` on, `len` of them, are initialised.
    storage: Vec<MaybeUninit<T>>,
    start: usize,
    len: usize,
}

impl<T: Copy> Aligned<T> {
    /// An empty array with room for `len` elements.
    pub(crate) fn with_capacity(len: usize) -> Self {
        let alignment = if len * size_of::<T>() < HUGE_PAGE { ALIGNMENT } else { HUGE_PAGE };
        let gap = alignment / size_of::<T>();
        let mut storage: Vec<MaybeUninit<T>> = Vec::with_capacity(len + gap);
        // SAFETY: so many elements were allocated, which need not be initialised.
        unsafe { storage.set_len(len + gap) };
        let start = storage.as_ptr().align_offset(alignment).min(gap);
        huge_pages::prefer(&mut storage[start..]);
        Self { storage, start, len: 0 }
    }

    /// An array of what `write` writes.
    ///
    /// # Safety
    /// `write` writes each element.
    pub(crate) unsafe fn written(len: usize, write: impl FnOnce(&mut [MaybeUninit<T>])) -> Self {
        let mut array = Self::with_capacity(len);
        write(&mut array.storage[array.start..array.start + len]);
        Self { len, ..array }
    }

    /// Appends all of `elements`.
    pub(crate) fn extend(&mut self, elements: &[T]) {
        self.reserve(elements.len());
        let from = self.start + self.len;
        let room = &mut self.storage[from..from + elements.len()];
        room.iter_mut().zip(elements).for_each(|(to, &element)| _ = to.write(element));
        self.len += elements.len();
    }

    /// Appends `element` until there are `len` elements.
    pub(crate) fn grow(&mut self, len: usize, element: T) {
        let more = len - self.len;
        self.reserve(more);
        let from = self.start + self.len;
        self.storage[from..from + more].fill(MaybeUninit::new(element));
        self.len = len;
    }

    /// Makes room for so many more elements.
    #[inline]
    fn reserve(&mut self, more: usize) {
        if self.start + self.len + more > self.storage.len() {
            *self = self.copied((self.len + more).max(2 * self.len));
        }
    }

    /// The same elements with room for `len`.
    #[cold]
    fn copied(&self, len: usize) -> Self {
        let mut copy = Self::with_capacity(len);
        let elements = &self.storage[self.start..self.start + self.len];
        copy.storage[copy.start..copy.start + self.len].copy_from_slice(elements);
        Self { len: self.len, ..copy }
    }

    /// The same elements, without room for more.
    pub(crate) fn shrunk(mut self) -> Self {
        self.storage.truncate(self.start + self.len);
        self.storage.shrink_to_fit();
        // An allocator may move what it shrinks.
        if self.as_ptr().addr().is_multiple_of(ALIGNMENT) { self } else { self.copied(self.len) }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let elements = &self.storage[self.start..self.start + self.len];
        // SAFETY: these are initialised; `MaybeUninit` has the layout of what it holds.
        unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), elements.len()) }
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let elements = &mut self.storage[self.start..self.start + self.len];
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), elements.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_cache_line_and_keeps_its_elements() {
        for (len, room) in [(0, 0), (1, 0), (7, 9), (1000, 1000), (1000, 10), (60_000, 59_000)] {
            let elements: Vec<u16> = (0..len).collect();
            let mut aligned = Aligned::with_capacity(room);
            elements.chunks(100).for_each(|some| aligned.extend(some));
            aligned.grow(elements.len() + 3, 5);
            let mut aligned = aligned.shrunk();
            assert_eq!(*aligned, *[&elements, &[5; 3][..]].concat());
            assert_eq!(aligned.as_ptr().addr() % ALIGNMENT, 0);
            aligned.extend(&[6]);
            assert_eq!((aligned.len(), aligned.last()), (elements.len() + 4, Some(&6)));
        }
    }

    #[test]
    fn what_alignment_takes_is_known() {
        for lens in [&[3, 70][..], &[HUGE_PAGE / 8 - 1; 3], &[HUGE_PAGE, 5, HUGE_PAGE / 4]] {
            let arrays: Vec<_> =
                lens.iter().map(|&len| Aligned::<f64>::with_capacity(len)).collect();
            let taken: usize = arrays.iter().map(|array| 8 * array.storage.len()).sum();
            let bytes = 8 * lens.iter().sum::<usize>();
            assert!(taken - bytes <= gaps(lens.len(), bytes), "{lens:?}");
        }
        assert_eq!((gaps(2, 1000), gaps(2, 1 << 30)), (2 * ALIGNMENT, 2 * (ALIGNMENT + HUGE_PAGE)));
    }

    #[test]
    fn a_large_array_starts_on_a_huge_page() {
        for len in [HUGE_PAGE / 8, HUGE_PAGE] {
            let write = |all: &mut [MaybeUninit<f64>]| {
                (0..).zip(all).for_each(|(i, element)| _ = element.write(f64::from(i)));
            };
            // SAFETY: all elements are written.
            let numbered = unsafe { Aligned::written(len, write) };
            assert!(numbered.iter().copied().eq((0..len).map(|i| i as f64)));
            assert_eq!(numbered.as_ptr().addr() % HUGE_PAGE, 0);
        }
    }
}
