//! Arrays aligned to a cache line, so that a vector load never crosses two lines.

use std::ops::{Deref, DerefMut};

use spm_formats::huge_pages;

/// Bytes of a cache line, and of the widest vector.
pub(crate) const ALIGNMENT: usize = 64;

/// An array of fixed length whose first element is at the start of a cache line.
#[derive(Debug)]
pub(crate) struct Aligned<T> {
    storage: Vec<T>,
    start: usize,
}

impl<T> Aligned<T> {
    /// Elements that are left free before the first one at most.
    const GAP: usize = ALIGNMENT / size_of::<T>();

    /// Where the first cache line of `storage` begins.
    fn start(storage: *const T) -> usize {
        storage.align_offset(ALIGNMENT).min(Self::GAP)
    }
}

impl<T: Copy + Default> Aligned<T> {
    /// An empty array with room for `len` elements. It may grow beyond that, and is aligned again by
    /// [`Aligned::shrunk`].
    pub(crate) fn with_capacity(len: usize) -> Self {
        let mut storage = Vec::with_capacity(len + Self::GAP);
        huge_pages::prefer(storage.spare_capacity_mut());
        let start = Self::start(storage.as_ptr());
        storage.resize(start, T::default());
        Self { storage, start }
    }

    pub(crate) fn push(&mut self, element: T) {
        self.storage.push(element);
    }

    /// Appends default values up to `len` elements.
    pub(crate) fn grow(&mut self, len: usize) {
        self.storage.resize(self.start + len, T::default());
    }

    /// The same elements, aligned, without room for more.
    pub(crate) fn shrunk(self) -> Self {
        let Self { mut storage, start: before } = self;
        let len = storage.len() - before;
        // First of all: the address counts after the last reallocation.
        storage.reserve_exact(Self::GAP - before);
        storage.shrink_to(len + Self::GAP);
        let start = Self::start(storage.as_ptr());
        if start != before {
            storage.resize(len + start.max(before), T::default());
            storage.copy_within(before..before + len, start);
            storage.truncate(start + len);
        }
        Self { storage, start }
    }
}

/// An empty array.
impl<T> Default for Aligned<T> {
    fn default() -> Self {
        Self { storage: Vec::new(), start: 0 }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.storage[self.start..]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.storage[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_cache_line_and_keeps_its_elements() {
        for (len, room) in [(0, 0), (1, 0), (7, 9), (1000, 1000), (1000, 10)] {
            let elements: Vec<u16> = (0..len).collect();
            let mut aligned = Aligned::with_capacity(room);
            elements.iter().for_each(|&element| aligned.push(element));
            aligned.grow(elements.len() + 3);
            let aligned = aligned.shrunk();
            assert_eq!(*aligned, *[&elements, &[0; 3][..]].concat());
            assert_eq!(aligned.as_ptr().addr() % ALIGNMENT, 0);
        }
    }
}
