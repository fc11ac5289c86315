//! Stores of new values, through the caches or past them.

use std::ops::Range;

use spm_formats::{CsrView, NewValues, Scalar};

use crate::Threads;
use crate::aligned::ALIGNMENT;
use crate::disjoint::Disjoint;
use crate::machine::{Rates, RatesFile, last_level_cache};
use crate::simd::Isa;

/// Bytes that are always stored through the caches: a second-level one holds them.
const SMALL: usize = 1 << 19;

/// How new values are stored: through the caches, or past them where they would not stay there. A store
/// through a cache first reads the line that it overwrites.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stores {
    past_caches: bool,
}

impl Stores {
    pub(crate) const PAST_CACHES: Self = Self { past_caches: true };
    pub(crate) const THROUGH_CACHES: Self = Self { past_caches: false };

    /// For `bytes` bytes that `threads` read and write: by the rates of the machine, if they are known.
    pub(crate) fn for_bytes(bytes: usize, threads: &Threads) -> Self {
        // The file of rates may have to be read, which takes longer than to store fewer bytes.
        let rates = (bytes > SMALL).then(|| Rates::known(&RatesFile::default())).flatten();
        Self::by(rates.as_ref(), bytes, threads.count())
    }

    /// For new values of a plan's matrix, which are read, written into it where they are copied, and written into
    /// `stored` bytes of the plan.
    pub(crate) fn for_new<T>(new: &NewValues<'_, T>, stored: usize, threads: &Threads) -> Self {
        let bytes = size_of_val(new.get());
        Self::for_bytes(bytes * (1 + usize::from(new.are_copied())) + stored, threads)
    }

    fn by(rates: Option<&Rates>, bytes: usize, threads: usize) -> Self {
        // Half of a cache is left to what else is in it.
        let beyond_caches = bytes > last_level_cache() / 2;
        let past_caches =
            rates.map_or(beyond_caches, |rates| rates.write_past_caches(bytes as f64, threads));
        Self { past_caches }
    }

    /// Runs the parts of a job that stores: what a part has stored is seen by all threads afterwards.
    pub(crate) fn run(self, threads: &Threads, job: impl Fn(usize) + Sync) {
        threads.run(|part| {
            job(part);
            if self.past_caches {
                stream::fence();
            }
        });
    }

    /// Overwrites `to` with `from`, which is as long.
    pub(crate) fn copy<T: Scalar>(self, from: &[T], to: &mut [T]) {
        if self.past_caches { stream::copy(from, to) } else { to.copy_from_slice(from) }
    }

    /// Overwrites the values `own` of a matrix with those of `a` in some rows.
    ///
    /// # Safety
    /// Nothing else reads or writes the values of these rows in `own` at the same time.
    pub(crate) unsafe fn copy_rows<T: Scalar>(
        self,
        a: &CsrView<'_, T>,
        rows: Range<usize>,
        own: Disjoint<'_, T>,
    ) {
        let entries = a.row_ptr()[rows.start] as usize..a.row_ptr()[rows.end] as usize;
        // SAFETY: the caller's promise.
        self.copy(&a.values()[entries.clone()], unsafe { own.range(entries) });
    }

    /// Writes the elements of a vector from `to` on.
    ///
    /// # Safety
    /// There is room for the vector's elements; the processor has the instructions of `I`.
    #[inline(always)]
    pub(crate) unsafe fn put<T: Scalar, I: Isa<T>>(self, vector: I::Vector, to: *mut T) {
        // SAFETY: aligned where it must be; the caller's promise.
        unsafe {
            if self.past_caches && to.addr().is_multiple_of(ALIGNMENT) {
                I::stream(to, vector);
            } else {
                I::store(to, vector);
            }
        }
    }
}

/// Stores past the caches, which every x86-64 processor has.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod stream {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    use spm_formats::Scalar;

    use crate::simd::LANES;

    pub(super) fn fence() {
        // SAFETY: a part of the instruction set.
        unsafe { _mm_sfence() };
    }

    pub(super) fn copy<T: Scalar>(from: &[T], to: &mut [T]) {
        assert_eq!(from.len(), to.len(), "arrays of one length");
        // Elements before the first aligned vector; all of them where none is aligned.
        let head = to.as_ptr().align_offset(size_of::<__m128i>()).min(to.len());
        let (to_head, to) = to.split_at_mut(head);
        let (from_head, from) = from.split_at(head);
        to_head.copy_from_slice(from_head);
        let (to, to_rest) = to.as_chunks_mut::<LANES>();
        let (from, from_rest) = from.as_chunks::<LANES>();
        // SAFETY: `to` begins aligned, and its vectors are multiples of 16 bytes.
        to.iter_mut().zip(from).for_each(|(to, from)| unsafe { aligned(from, to) });
        to_rest.copy_from_slice(from_rest);
    }

    /// # Safety
    /// The address of `to` is a multiple of 16.
    #[inline(always)]
    unsafe fn aligned<T: Scalar>(from: &[T; LANES], to: &mut [T; LANES]) {
        let (from, to) = (from.as_ptr().cast::<__m128i>(), to.as_mut_ptr().cast::<__m128i>());
        for vector in 0..size_of::<[T; LANES]>() / size_of::<__m128i>() {
            // SAFETY: so many vectors are inside both, and scalars have no padding; aligned by the caller's
            // promise.
            unsafe { _mm_stream_si128(to.add(vector), _mm_loadu_si128(from.add(vector))) };
        }
    }
}

/// Without stores past the caches.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod stream {
    use spm_formats::Scalar;

    pub(super) fn fence() {}

    pub(super) fn copy<T: Scalar>(from: &[T], to: &mut [T]) {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::Complex;

    use super::*;

    fn check<T: Scalar>() {
        let from: Vec<T> = (1..100).map(|i| T::from_f64(f64::from(i))).collect();
        for past_caches in [false, true] {
            let stores = Stores { past_caches };
            for (first, length) in
                (0..10).flat_map(|first| (0..40).map(move |length| (first, length)))
            {
                let mut to = vec![T::ZERO; 60];
                stores.copy(&from[first..first + length], &mut to[first / 2..first / 2 + length]);
                let mut expected = vec![T::ZERO; 60];
                expected[first / 2..first / 2 + length]
                    .copy_from_slice(&from[first..first + length]);
                assert_eq!(to, expected, "{length} elements from {first} on");
            }
        }
    }

    #[test]
    fn stores_past_the_caches_store_the_same() {
        check::<f32>();
        check::<f64>();
        check::<Complex<f32>>();
        check::<Complex<f64>>();
    }

    /// As far as the machine says how large the caches are.
    #[test]
    fn without_rates_what_takes_more_than_half_a_cache_is_stored_past_them() {
        let half = last_level_cache() / 2;
        assert!(!Stores::by(None, half, 1).past_caches);
        assert!(Stores::by(None, half + 1, 1).past_caches);
    }

    #[test]
    fn rates_decide_where_they_are_known() {
        let rates = Rates::typical();
        for bytes in [SMALL, 1 << 22, 1 << 26] {
            let past = rates.write_past_caches(bytes as f64, 1);
            assert_eq!(Stores::by(Some(&rates), bytes, 1).past_caches, past);
        }
        assert!(Stores::by(Some(&rates), 1 << 26, 1).past_caches);
        assert!(!Stores::for_bytes(SMALL, &Threads::new(1)).past_caches);
    }
}
