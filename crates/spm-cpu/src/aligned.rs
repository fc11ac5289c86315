//! Arrays aligned to a cache line, so that a vector load never crosses two lines.

use std::ops::{Deref, DerefMut};

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

    /// An array for `len` elements that becomes aligned without another allocation.
    pub(crate) fn vec(len: usize) -> Vec<T> {
        Vec::with_capacity(len + Self::GAP)
    }

    /// Where the first cache line of `storage` begins.
    fn start(storage: &[T]) -> usize {
        storage.as_ptr().align_offset(ALIGNMENT).min(Self::GAP)
    }
}

impl<T: Copy + Default> Aligned<T> {
    /// An array of default values.
    pub(crate) fn new(len: usize) -> Self {
        let storage = vec![T::default(); len + Self::GAP];
        let start = Self::start(&storage);
        Self { storage, start }
    }
}

impl<T: Copy + Default> From<Vec<T>> for Aligned<T> {
    fn from(mut storage: Vec<T>) -> Self {
        let len = storage.len();
        // Room for the gap and no more. First of all: the address counts after the last
        // reallocation.
        let gap = Self::GAP;
        storage.reserve_exact(gap);
        storage.shrink_to(len + gap);
        let start = Self::start(&storage);
        storage.resize(len + start, T::default());
        storage.copy_within(..len, start);
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
        for len in [0, 1, 7, 1000] {
            let elements: Vec<u16> = (0..len).collect();
            let aligned = Aligned::from(elements.clone());
            assert_eq!(*aligned, *elements);
            assert_eq!(aligned.as_ptr().addr() % ALIGNMENT, 0);
        }
    }
}
