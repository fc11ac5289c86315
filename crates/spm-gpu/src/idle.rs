//! What is kept of a device for its next user, because to make it takes longer than a short kernel.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// As many as planning uses at once, mostly.
const MOST: usize = 4;

/// Things of one kind that nobody uses.
#[derive(Debug)]
pub(crate) struct Idle<T>(Mutex<Vec<T>>);

impl<T> Default for Idle<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Idle<T> {
    fn kept(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.kept().pop()
    }

    /// Keeps it, or drops it where enough are kept.
    pub(crate) fn put(&self, unused: T) {
        let mut kept = self.kept();
        if kept.len() < MOST {
            kept.push(unused);
        }
    }
}
