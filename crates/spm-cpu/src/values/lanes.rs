//! The new values of the eight rows of a chunk, as vectors.

use std::ops::Range;

use spm_formats::Scalar;

use crate::simd::{Isa, LANES};

/// The entries of the rows of a chunk that are still to come: lane l has those from `next[l]` to before
/// `ends[l]`, which are inside the matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes {
    next: [u32; LANES],
    ends: [u32; LANES],
}

impl Lanes {
    #[inline(always)]
    pub(crate) fn new(entries: [Range<u32>; LANES]) -> Self {
        let ends = std::array::from_fn(|lane| entries[lane].end);
        Self { next: entries.map(|entries| entries.start), ends }
    }

    /// Of consecutive rows with these pointers.
    #[inline(always)]
    pub(crate) fn in_order(row_ptr: &[u32; LANES + 1]) -> Self {
        let next = std::array::from_fn(|lane| row_ptr[lane]);
        Self { next, ends: std::array::from_fn(|lane| row_ptr[lane + 1]) }
    }

    /// The fewest entries of a lane.
    #[inline(always)]
    pub(crate) fn shortest(&self) -> usize {
        self.lengths().into_iter().min().unwrap_or(0) as usize
    }

    /// The most entries of a lane.
    #[inline(always)]
    pub(crate) fn most(&self) -> usize {
        self.lengths().into_iter().max().unwrap_or(0) as usize
    }

    #[inline(always)]
    fn lengths(&self) -> [u32; LANES] {
        std::array::from_fn(|lane| self.ends[lane] - self.next[lane])
    }

    /// Calls `put` with vector e for e in 0..`width`: of each lane entry e, or 0 where it has none. With masks,
    /// of the lanes whose bit of mask e is 1 the next entry, or 0.
    ///
    /// # Safety
    /// There are `width` masks, and a lane has as many entries as they have bits for it; without masks a lane has
    /// `width` entries. The entries are inside `values`, of which there is one, and their numbers below 2^31 if `I`
    /// gathers by them; the processor has the instructions of `I`.
    #[inline(always)]
    pub(crate) unsafe fn each<T: Scalar, I: Isa<T>>(
        &self,
        values: &[T],
        width: usize,
        masks: Option<&[u8]>,
        mut put: impl FnMut(usize, I::Vector),
    ) {
        if let Some(masks) = masks {
            // SAFETY: the caller's promise.
            return unsafe { self.masked::<T, I>(values, masks, put) };
        }
        let lengths = self.lengths();
        let full = self.shortest().min(width);
        for element in 0..full {
            // SAFETY: each lane has this entry; the caller's promise.
            let vector = unsafe { I::gather_u32(values.as_ptr().add(element), self.next.as_ptr()) };
            put(element, vector);
        }
        for element in full..width {
            let left = lengths.map(|length| element < length as usize);
            let mask = (0..LANES).fold(0, |mask, lane| mask | u8::from(left[lane]) << lane);
            // SAFETY: a lane has this entry, so the values have one of this number; the caller's promise.
            put(element, unsafe { I::gather_some(mask, values.as_ptr().add(element), &self.next) });
        }
    }

    /// [`Lanes::each`] with masks.
    ///
    /// # Safety
    /// That of [`Lanes::each`].
    #[inline(always)]
    unsafe fn masked<T: Scalar, I: Isa<T>>(
        &self,
        values: &[T],
        masks: &[u8],
        mut put: impl FnMut(usize, I::Vector),
    ) {
        let mut next = self.next;
        for (element, &mask) in masks.iter().enumerate() {
            // SAFETY: the caller's promise.
            put(element, unsafe { I::gather_some(mask, values.as_ptr(), &next) });
            for (lane, next) in next.iter_mut().enumerate() {
                *next += u32::from(mask >> lane & 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::Complex;

    use super::*;
    use crate::simd::{Job, Machine};
    use crate::values::Stores;

    /// Vectors of entries that end in different columns, and of entries at places of masks.
    struct Put<'a, T> {
        lanes: Lanes,
        values: &'a [T],
        width: usize,
        masks: &'a [u8],
        stores: Stores,
        to: &'a mut [[T; LANES]],
    }

    // SAFETY: `As<T>` is `Put<T>`.
    unsafe impl<'a, T: Scalar> Job<T> for Put<'a, T> {
        type As<U: Scalar> = Put<'a, U>;

        #[inline(always)]
        unsafe fn run<I: Isa<T>>(self) {
            let Self { lanes, values, width, masks, stores, to } = self;
            let (each, masked) = to.split_at_mut(width);
            // SAFETY: the test's entries are inside its few values; the caller's promise.
            unsafe {
                lanes.each::<T, I>(values, width, None, |e, new| {
                    stores.put::<T, I>(new, each[e].as_mut_ptr());
                });
                lanes.each::<T, I>(values, masks.len(), Some(masks), |e, new| {
                    stores.put::<T, I>(new, masked[e].as_mut_ptr());
                });
            }
        }
    }

    fn check<T: Scalar>() {
        let values: Vec<T> = (1..100).map(|i| T::from_f64(f64::from(i))).collect();
        let starts = [0, 3, 10, 20, 21, 40, 90, 60_u32];
        for lengths in [[3; LANES], [2, 7, 3, 3, 2, 4, 1, 9], [0, 1, 0, 0, 0, 0, 0, 0]] {
            let lanes = Lanes::new(std::array::from_fn(|l| starts[l]..starts[l] + lengths[l]));
            // Lane l begins with chunk column l.
            let width = lanes.most();
            let has =
                |l: usize, e: usize| l <= e && e - l < (lanes.ends[l] - lanes.next[l]) as usize;
            let mask = |e: usize| (0..LANES).fold(0, |mask, l| mask | u8::from(has(l, e)) << l);
            let masks: Vec<u8> = (0..width + LANES).map(mask).collect();
            let places = width + masks.len();
            let value = |l: usize, e: usize| {
                let at = lanes.next[l] as usize + e;
                if at < lanes.ends[l] as usize { values[at] } else { T::ZERO }
            };
            let expected: Vec<T> = (0..width)
                .flat_map(|e| (0..LANES).map(move |l| (l, e, true)))
                .chain((0..masks.len()).flat_map(|e| (0..LANES).map(move |l| (l, e, false))))
                .map(|(l, e, each)| match each {
                    true => value(l, e),
                    false if has(l, e) => value(l, e - l),
                    false => T::ZERO,
                })
                .collect();
            for machine in [
                Machine::gathering(values.len()),
                Machine::without_gathers(),
                Machine::gathering(usize::MAX),
            ] {
                for (stores, first) in [Stores::PAST_CACHES, Stores::THROUGH_CACHES]
                    .into_iter()
                    .flat_map(|stores| (0..LANES).map(move |first| (stores, first)))
                {
                    let mut all = vec![T::ONE; LANES * (places + 2)];
                    let (to, _) = all[first..].as_chunks_mut();
                    let (values, masks, to) = (&*values, &*masks, &mut to[..places]);
                    machine.run(Put { lanes, values, width, masks, stores, to });
                    let (before, rest) = all.split_at(first);
                    let (found, behind) = rest.split_at(expected.len());
                    assert_eq!(found, expected, "{lengths:?}");
                    assert!(before.iter().chain(behind).all(|&other| other == T::ONE));
                }
            }
        }
    }

    #[test]
    fn vectors_have_the_entries_of_their_lanes() {
        check::<f32>();
        check::<f64>();
        check::<Complex<f32>>();
        check::<Complex<f64>>();
    }
}
