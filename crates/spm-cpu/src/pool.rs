//! Workspaces of a plan that many threads run at once.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Workspaces of one kind. Each run of a plan takes one and gives it back; the lock is held for
/// that alone.
#[derive(Debug)]
pub(crate) struct Pool<W> {
    free: Mutex<Vec<Box<W>>>,
}

impl<W> Pool<W> {
    /// A pool with one workspace, so that a single caller never waits for an allocation.
    pub(crate) fn new(first: W) -> Self {
        Self { free: Mutex::new(vec![Box::new(first)]) }
    }

    /// A pool whose first caller allocates.
    pub(crate) fn empty() -> Self {
        Self { free: Mutex::new(Vec::new()) }
    }

    /// A free workspace, or what `make` makes if there is none. It goes back when it is dropped.
    pub(crate) fn take(&self, make: impl FnOnce() -> W) -> Taken<'_, W> {
        let free = self.lock().pop();
        Taken { pool: self, workspace: Some(free.unwrap_or_else(|| Box::new(make()))) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Box<W>>> {
        // A push and a pop leave the list whole if they panic.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A workspace of a [`Pool`], for one caller.
#[derive(Debug)]
pub(crate) struct Taken<'a, W> {
    pool: &'a Pool<W>,
    /// There until the drop.
    workspace: Option<Box<W>>,
}

impl<W> Deref for Taken<'_, W> {
    type Target = W;

    fn deref(&self) -> &W {
        self.workspace.as_ref().expect("not dropped yet")
    }
}

impl<W> DerefMut for Taken<'_, W> {
    fn deref_mut(&mut self) -> &mut W {
        self.workspace.as_mut().expect("not dropped yet")
    }
}

impl<W> Drop for Taken<'_, W> {
    fn drop(&mut self) {
        self.pool.lock().extend(self.workspace.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_used_again_and_by_one_caller_at_a_time() {
        let pool = Pool::new(vec![1]);
        {
            let (mut first, second) = (pool.take(Vec::new), pool.take(|| vec![7]));
            assert_eq!((&**first, &**second), (&[1][..], &[7][..]));
            first.push(2);
        }
        let both = [pool.take(|| unreachable!()), pool.take(|| unreachable!())];
        let mut found = both.map(|workspace| workspace.clone());
        found.sort();
        assert_eq!(found, [vec![1, 2], vec![7]]);
        assert_eq!(*Pool::empty().take(|| 3), 3);
    }
}
