//! New values for a pattern: how plans copy them, on their own threads.

use std::ops::Range;

use spm_formats::kernel::PlanError;
use spm_formats::{Bsr, CsrSource, CsrView, NewValues, Scalar, partition};

use crate::Threads;
use crate::disjoint::Disjoint;
use crate::machine::{Rates, RatesFile, last_level_cache};
use crate::simd::LANES;

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

    /// For `bytes` bytes that `threads` read and write: by the rates of the machine, if they are known.
    pub(crate) fn for_bytes(bytes: usize, threads: &Threads) -> Self {
        // The file of rates may have to be read, which takes longer than to store fewer bytes.
        let rates = (bytes > SMALL).then(|| Rates::known(&RatesFile::default())).flatten();
        Self::by(rates.as_ref(), bytes, threads.count())
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

    /// Overwrites `to` with a vector.
    #[inline(always)]
    pub(crate) fn put<T: Scalar>(self, vector: [T; LANES], to: &mut [T; LANES]) {
        if self.past_caches { stream::put(vector, to) } else { *to = vector }
    }

    /// Overwrites element l of each vector e of `to` with element e of row l.
    pub(crate) fn transpose<T: Scalar>(self, rows: [&[T]; LANES], to: &mut [[T; LANES]]) {
        let rows = rows.map(|row| &row[..to.len()]);
        if self.past_caches {
            stream::transpose::<T, true>(rows, to);
        } else {
            stream::transpose::<T, false>(rows, to);
        }
    }
}

/// The vectors of a chunk whose chunk columns begin at `firsts`: element l of vector e is what `of` makes of
/// the entry of lane l in column `firsts[e]` + l, or `padding`. `lanes` are the entries of the lanes, each of
/// which has its place.
#[inline(always)]
pub(crate) fn shifted<'m, T: Scalar, V: Copy>(
    a: &'m CsrView<'_, T>,
    lanes: &[Range<usize>; LANES],
    firsts: &'m [u32],
    padding: V,
    of: impl Fn(T) -> V,
) -> impl Iterator<Item = [V; LANES]> {
    let mut next = lanes.clone().map(|lane| lane.start);
    let ends = lanes.clone().map(|lane| lane.end);
    let last = a.nnz().saturating_sub(1);
    // Each lane goes on by a comparison, not by a branch.
    firsts.iter().map(move |&first| {
        std::array::from_fn(|lane| {
            let at = next[lane].min(last);
            let is_here = next[lane] < ends[lane] && a.col_ind()[at] == first + lane as u32;
            next[lane] += usize::from(is_here);
            if is_here { of(a.values()[at]) } else { padding }
        })
    })
}

/// Copies an array as long as the other, each part by one thread.
fn copy<T: Scalar>(threads: &Threads, from: &[T], to: &mut [T]) {
    assert_eq!(from.len(), to.len(), "arrays of one length");
    let stores = Stores::for_bytes(2 * size_of_val(from), threads);
    let to = Disjoint::new(to);
    stores.run(threads, |part| {
        let range = partition::even(from.len(), threads.count(), part);
        // SAFETY: the parts do not overlap.
        stores.copy(&from[range.clone()], unsafe { to.range(range) });
    });
}

/// Gives a matrix that is multiplied straight from CSR new values, on the threads of its plan.
pub(crate) fn set<T: Scalar>(
    a: &mut CsrSource<'_, T>,
    new: NewValues<'_, T>,
    threads: Option<&Threads>,
) -> Result<(), PlanError> {
    a.set_values(new, |view, own| match (own, threads) {
        (Some(own), Some(threads)) => copy(threads, view.values(), own),
        (Some(own), None) => own.copy_from_slice(view.values()),
        (None, _) => {}
    })
}

/// Pieces of the block rows of a thread, so that the values of one stay in a cache.
const PIECES: usize = 16;

/// Gives a matrix and its dense blocks new values, on the threads of their plan; the block rows of thread t are
/// `bounds[t]..bounds[t + 1]`.
pub(crate) fn set_blocks<T: Scalar>(
    a: &mut CsrSource<'_, T>,
    bsr: &mut Bsr<T>,
    new: NewValues<'_, T>,
    threads: &Threads,
    bounds: &[usize],
) -> Result<(), PlanError> {
    let of_thread = |ends: &[usize]| {
        let (first, count) = (ends[0], ends[1] - ends[0]);
        (0..PIECES).map(move |piece| first + partition::even(count, PIECES, piece).start)
    };
    let bytes = 2 * size_of_val(a.view().values()) + size_of_val(bsr.values());
    let stores = Stores::for_bytes(bytes, threads);
    a.set_values(new, |a, own| {
        let mut ends: Vec<usize> = bounds.windows(2).flat_map(of_thread).collect();
        ends.extend(bounds.last());
        let mut pieces = bsr.parts_mut(&ends);
        let (pieces, own) = (Disjoint::new(&mut pieces), own.map(Disjoint::new));
        stores.run(threads, |part| {
            // SAFETY: each part has its own pieces.
            for piece in unsafe { pieces.range(part * PIECES..(part + 1) * PIECES) } {
                piece.set_values(a.values());
                if let Some(own) = own {
                    // SAFETY: the rows of pieces do not overlap.
                    unsafe { stores.copy_rows(&a, piece.rows(), own) };
                }
            }
        });
    })
}

/// Stores past the caches, which every x86-64 processor has.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod stream {
    use std::arch::x86_64::{
        __m128i, _mm_loadl_epi64, _mm_loadu_si128, _mm_sfence, _mm_storeu_si128, _mm_stream_si128,
        _mm_unpackhi_epi64, _mm_unpacklo_epi64,
    };

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

    #[inline(always)]
    pub(super) fn put<T: Scalar>(vector: [T; LANES], to: &mut [T; LANES]) {
        if to.as_ptr().addr().is_multiple_of(size_of::<__m128i>()) {
            // SAFETY: just checked.
            unsafe { aligned(&vector, to) };
        } else {
            *to = vector;
        }
    }

    /// See [`super::Stores::transpose`]; the rows are as long as `to`.
    pub(super) fn transpose<T: Scalar, const PAST_CACHES: bool>(
        rows: [&[T]; LANES],
        to: &mut [[T; LANES]],
    ) {
        let past_caches = PAST_CACHES && to.as_ptr().addr().is_multiple_of(size_of::<__m128i>());
        let mut done = 0;
        if T::BYTES == size_of::<u64>() {
            assert!(rows.iter().all(|row| row.len() == to.len()), "rows of one length");
            let (pairs, last) = to.as_chunks_mut::<2>();
            done = 2 * pairs.len();
            for (pair, to) in pairs.iter_mut().enumerate() {
                let (even, odd) = to.split_at_mut(1);
                let (even, odd) =
                    (even.as_mut_ptr().cast::<__m128i>(), odd.as_mut_ptr().cast::<__m128i>());
                for lanes in 0..LANES / 2 {
                    // SAFETY: two elements of 8 bytes at `2 * pair` of each row, and at `2 * lanes` of both
                    // vectors, whose addresses are multiples of 16 as that of the first one if it is.
                    unsafe {
                        let load = |lane: usize| {
                            _mm_loadu_si128(rows.get_unchecked(lane).as_ptr().add(2 * pair).cast())
                        };
                        let (one, other) = (load(2 * lanes), load(2 * lanes + 1));
                        let low = _mm_unpacklo_epi64(one, other);
                        let high = _mm_unpackhi_epi64(one, other);
                        if past_caches {
                            _mm_stream_si128(even.add(lanes), low);
                            _mm_stream_si128(odd.add(lanes), high);
                        } else {
                            _mm_storeu_si128(even.add(lanes), low);
                            _mm_storeu_si128(odd.add(lanes), high);
                        }
                    }
                }
            }
            if let [last] = last {
                let to = last.as_mut_ptr().cast::<__m128i>();
                for lanes in 0..LANES / 2 {
                    // SAFETY: an element of 8 bytes at `done` of each row; the rest as above.
                    unsafe {
                        let load = |lane: usize| {
                            _mm_loadl_epi64(rows.get_unchecked(lane).as_ptr().add(done).cast())
                        };
                        let pair = _mm_unpacklo_epi64(load(2 * lanes), load(2 * lanes + 1));
                        if past_caches {
                            _mm_stream_si128(to.add(lanes), pair);
                        } else {
                            _mm_storeu_si128(to.add(lanes), pair);
                        }
                    }
                }
                return;
            }
        }
        for (element, to) in to.iter_mut().enumerate().skip(done) {
            let vector = rows.map(|row| row[element]);
            if past_caches { put(vector, to) } else { *to = vector }
        }
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

    use crate::simd::LANES;

    pub(super) fn fence() {}

    pub(super) fn copy<T: Scalar>(from: &[T], to: &mut [T]) {
        to.copy_from_slice(from);
    }

    pub(super) fn put<T: Scalar>(vector: [T; LANES], to: &mut [T; LANES]) {
        *to = vector;
    }

    pub(super) fn transpose<T: Scalar, const PAST_CACHES: bool>(
        rows: [&[T]; LANES],
        to: &mut [[T; LANES]],
    ) {
        for (element, to) in to.iter_mut().enumerate() {
            *to = rows.map(|row| row[element]);
        }
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
            for (length, first) in (0..9).flat_map(|length| [(length, 0), (length, 1)]) {
                let rows = std::array::from_fn(|lane| &from[10 * lane..]);
                let mut all = [T::ZERO; 10 * LANES + 1];
                let (to, _) = all[first..].as_chunks_mut();
                stores.transpose(rows, &mut to[..length]);
                for (element, vector) in to.iter().enumerate() {
                    for (lane, &found) in vector.iter().enumerate() {
                        let expected =
                            if element < length { from[10 * lane + element] } else { T::ZERO };
                        assert_eq!(found, expected, "lane {lane} of vector {element} of {length}");
                    }
                }
            }
            for first in 0..4 {
                let mut to = [T::ZERO; LANES + 4];
                let place = to[first..].first_chunk_mut().unwrap();
                stores.put(*from.first_chunk().unwrap(), place);
                assert_eq!(to[first..first + LANES], from[..LANES]);
                assert!(
                    to[..first].iter().chain(&to[first + LANES..]).all(|&other| other == T::ZERO)
                );
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
