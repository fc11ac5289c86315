//! Slices in memory that something else owns.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An immutable slice that keeps its owner alive: an array of another library, a mapped file, a vector.
///
/// Clones share the owner, which is dropped with the last of them, on whichever thread that is.
///
/// ```
/// use spm_formats::SharedSlice;
///
/// let values = SharedSlice::new(vec![1.0, 2.0]);
/// let same = values.clone();
/// assert_eq!(same.as_ptr(), values.as_ptr());
/// ```
pub struct SharedSlice<T> {
    slice: *const [T],
    owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: it gives out shared references to its elements only, from any thread, and drops none of them.
unsafe impl<T: Sync> Send for SharedSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for SharedSlice<T> {}

impl<T> SharedSlice<T> {
    /// The slice of `owner`, whose `as_ref` is called once.
    pub fn new<O: AsRef<[T]> + Send + Sync + 'static>(owner: O) -> Self {
        let owner = Arc::new(owner);
        let slice: *const [T] = O::as_ref(&owner);
        Self { slice, owner }
    }
}

impl<T> Deref for SharedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the slice was borrowed from the owner, which stays where it is in its `Arc`, lives as long
        // as `self`, and is not used otherwise: the borrow could have lasted until now.
        unsafe { &*self.slice }
    }
}

impl<T> Clone for SharedSlice<T> {
    fn clone(&self) -> Self {
        Self { slice: self.slice, owner: Arc::clone(&self.owner) }
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// An array of a matrix: a vector, or a slice in memory that something else owns.
#[derive(Clone)]
pub(crate) enum Array<T> {
    Own(Vec<T>),
    Shared(SharedSlice<T>),
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Own(own) => own,
            Self::Shared(shared) => shared,
        }
    }
}

impl<T: Clone> Array<T> {
    /// The elements in a vector: copied from memory of another owner.
    pub(crate) fn into_vec(self) -> Vec<T> {
        match self {
            Self::Own(own) => own,
            Self::Shared(shared) => shared.to_vec(),
        }
    }

    /// The elements to be overwritten: first copied from memory of another owner.
    pub(crate) fn make_mut(&mut self) -> &mut [T] {
        if let Self::Shared(shared) = self {
            *self = Self::Own(shared.to_vec());
        }
        match self {
            Self::Own(own) => own,
            Self::Shared(_) => unreachable!("copied above"),
        }
    }
}

impl<T: Clone> Array<T> {
    /// Exchanges the elements for those of a vector: memory of another owner is copied for it.
    pub(crate) fn swap(&mut self, other: &mut Vec<T>) {
        let former = std::mem::replace(self, Self::Own(std::mem::take(other)));
        *other = former.into_vec();
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(own: Vec<T>) -> Self {
        Self::Own(own)
    }
}

impl<T: PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
