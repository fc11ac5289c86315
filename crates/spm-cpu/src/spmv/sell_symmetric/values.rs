//! New values of `sell-symmetric`: their places.

use std::ops::Range;

use spm_formats::{CsrView, Scalar};

use super::Part;
use crate::simd::{Isa, Job, LANES, Machine};
use crate::values::{Lanes, Stores};

/// Rows whose values are copied together.
const BLOCK: usize = 32 * LANES;

impl<T: Scalar> Part<T> {
    /// Takes the values of `a`, whose pattern is that of the part's matrix. `copy` is called with all rows in
    /// blocks, each before its values are read here, so that they have come from memory in their order.
    pub(super) fn set_values(
        &mut self,
        a: &CsrView<'_, T>,
        stores: Stores,
        copy: &mut dyn FnMut(Range<usize>),
    ) {
        let machine = Machine::gathering(a.nnz());
        machine.run(Replace { part: self, a: *a, stores, copy });
    }
}

/// Replaces the values of a part by those of `a`; see [`Part::set_values`].
struct Replace<'a, 'c, T> {
    part: &'a mut Part<T>,
    a: CsrView<'a, T>,
    stores: Stores,
    copy: &'a mut (dyn FnMut(Range<usize>) + 'c),
}

// SAFETY: `As<T>` is `Replace<T>`.
unsafe impl<'a, 'c, T: Scalar> Job<T> for Replace<'a, 'c, T> {
    type As<U: Scalar> = Replace<'a, 'c, U>;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        let Self { part, a, stores, copy } = self;
        let Part { rows, run_counts, runs, full, masks, lower, values, .. } = part;
        let (mut runs, mut masks) = (&**runs, &**masks);
        let (mut to, _) = values.as_chunks_mut::<LANES>();
        let mut copied = rows.start;
        let starts = (rows.start..).step_by(LANES);
        for ((start, &count), &full) in starts.zip(&*run_counts).zip(&*full) {
            if start >= copied {
                let end = (copied + BLOCK).min(rows.end);
                copy(copied..end);
                copied = end;
            }
            let of_chunk;
            (of_chunk, runs) = runs.split_at(usize::from(count));
            let width = of_chunk.iter().map(|run| run.count as usize).sum();
            let elements;
            (elements, to) = to.split_at_mut(width);
            let put = |at: usize, new| {
                // SAFETY: the caller's promise.
                unsafe { stores.put::<T, I>(new, elements[at].as_mut_ptr()) };
            };
            // The entries on the diagonal and above it.
            let lower = &lower[start - rows.start..];
            let lanes = Lanes::new(std::array::from_fn(|lane| {
                let row_ptr = &a.row_ptr()[start + lane..start + lane + 2];
                row_ptr[0] + lower[lane]..row_ptr[1]
            }));
            let of_chunk =
                (!full).then(|| masks.split_off(..width).expect("a mask for each column"));
            // SAFETY: entries of `a`, for whose number `Part::set_values` has asked for a machine; the caller's
            // promise.
            unsafe { lanes.each::<T, I>(a.values(), width, of_chunk, put) };
        }
        copy(copied..rows.end);
    }
}
