//! y = alpha A x + beta y: what the kernels share.
//!
//! `None` in place of a [`Scaling`] is y = A x. Most kernels [`store`] each sum where it belongs. A
//! kernel that accumulates in y, or that may compute a block of rows again, writes A x of the block to
//! a buffer that stays in a core's cache ([`Staged`]); the buffer is then combined with y. Either way y
//! is read once and written once.

use spm_formats::Scalar;
use spm_formats::kernel::Scaling;

use crate::disjoint::Disjoint;
use crate::pool::{Pool, Taken};
use crate::workspace::Workspace;

/// `y` = alpha `sum` + beta `y`.
#[inline(always)]
pub(crate) fn store<T: Scalar>(scaling: Option<Scaling<T>>, sum: T, y: &mut T) {
    match scaling {
        None => *y = sum,
        Some(scaling) => scaling.apply(sum, y),
    }
}

/// `y` += alpha `sum`: the rest of a row that was stored before.
#[inline(always)]
pub(crate) fn add<T: Scalar>(scaling: Option<Scaling<T>>, sum: T, y: &mut T) {
    *y += scaling.map_or(sum, |scaling| scaling.alpha * sum);
}

/// Elements of a cache line of the smallest scalar: buffers of two threads share none.
const LINE: usize = 16;

/// The buffers of a plan: one for each part of a product.
pub(crate) struct Staged<T> {
    parts: usize,
    rows: usize,
    buffers: Pool<Workspace<T>>,
}

impl<T: Scalar> Staged<T> {
    /// For `parts` parts that compute up to `rows` rows at a time. Nothing is allocated before the
    /// first scaled product.
    pub(crate) fn new(parts: usize, rows: usize) -> Self {
        Self { parts, rows: rows.next_multiple_of(LINE), buffers: Pool::empty() }
    }

    /// The buffers of one product.
    pub(crate) fn buffers(&self, scaling: Option<Scaling<T>>) -> Option<Buffers<'_, T>> {
        let scaling = scaling?;
        let elements = self.buffers.take(|| Workspace::zeros(self.parts * self.rows));
        Some(Buffers { scaling, rows: self.rows, elements })
    }
}

/// The buffers of one scaled product.
pub(crate) struct Buffers<'a, T> {
    scaling: Scaling<T>,
    rows: usize,
    elements: Taken<'a, Workspace<T>>,
}

impl<T: Scalar> Buffers<'_, T> {
    /// Access for the threads that compute the parts.
    pub(crate) fn parts(&mut self) -> Parts<'_, T> {
        let Self { scaling, rows, elements } = self;
        Parts { scaling: *scaling, rows: *rows, elements: Disjoint::new(elements) }
    }
}

/// The buffer of each part.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a, T> {
    scaling: Scaling<T>,
    rows: usize,
    elements: Disjoint<'a, T>,
}

/// Calls `multiply` with elements for the rows of `y`, which it overwrites with A x: those of `y`, or
/// those of the buffer of part `part`, which are then combined with `y`.
///
/// # Safety
/// No other thread uses the same part at the same time.
#[inline(always)]
pub(crate) unsafe fn through<T: Scalar>(
    parts: Option<Parts<'_, T>>,
    part: usize,
    y: &mut [T],
    multiply: impl FnOnce(&mut [T]),
) {
    let mut buffer = parts.map(|parts| {
        let start = part * parts.rows;
        assert!(y.len() <= parts.rows, "a block of {} rows", y.len());
        // SAFETY: the parts do not overlap; the caller's promise.
        unsafe { parts.elements.range(start..start + y.len()) }
    });
    // One call, so that `multiply` is compiled once.
    multiply(match &mut buffer {
        Some(buffer) => buffer,
        None => &mut *y,
    });
    if let (Some(parts), Some(buffer)) = (parts, buffer) {
        parts.scaling.combine(buffer, y);
    }
}
