//! Loops on the threads of rayon. Their bodies are trait objects, so that rayon's machinery, which is much of
//! the machine code of a short loop, is compiled once and not for every body and scalar type.
//!
//! The dynamic calls are few: one for each range that a thread takes, not one for each index.

use std::ops::Range;

use rayon::prelude::*;

use crate::disjoint::Disjoint;

/// Calls `body` with ranges that cover `0..count` once. They have `grain` indices or more, unless there are
/// fewer; how many depends on which threads are free.
pub fn for_each_range(count: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    ranges(count, grain).for_each(body);
}

/// Ranges that cover `0..count`, as in [`for_each_range`].
fn ranges(count: usize, grain: usize) -> impl ParallelIterator<Item = Range<usize>> {
    let grain = grain.max(1);
    let halves = move |range: Range<usize>| {
        let middle = range.start + range.len() / 2;
        if middle - range.start < grain {
            return (range, None);
        }
        (range.start..middle, Some(middle..range.end))
    };
    rayon::iter::split(0..count, halves).filter(|range| !range.is_empty())
}

/// Calls `body` with each index of `0..count`. A thread takes `grain` indices or more at a time.
#[inline]
pub fn for_each(count: usize, grain: usize, body: impl Fn(usize) + Sync) {
    for_each_range(count, grain, &|range| range.for_each(&body));
}

/// Calls `body` with parts that cover the slice, and the index at which each begins. A part has `grain`
/// elements or more.
#[inline]
pub fn for_each_part<P: Send>(
    slice: &mut [P],
    grain: usize,
    body: impl Fn(usize, &mut [P]) + Sync,
) {
    let (count, shared) = (slice.len(), Disjoint::new(slice));
    for_each_range(count, grain, &|range| {
        // SAFETY: the ranges do not overlap.
        body(range.start, unsafe { shared.range(range) });
    });
}

/// Calls `body` with each element and its index. A thread takes `grain` elements or more at a time.
#[inline]
pub fn for_each_mut<P: Send>(slice: &mut [P], grain: usize, body: impl Fn(usize, &mut P) + Sync) {
    for_each_part(slice, grain, |first, part| {
        part.iter_mut().enumerate().for_each(|(i, element)| body(first + i, element));
    });
}

/// What `body` returns for each index of `0..count`, in order. A thread takes `grain` indices or more at a
/// time.
#[inline]
pub fn map<R: Send>(count: usize, grain: usize, body: impl Fn(usize) -> R + Sync) -> Vec<R> {
    map_ranges(count, grain, |range| range.map(&body))
}

/// The items of `body` for ranges that cover `0..count`, in order. It yields one for each index of a range,
/// which has `grain` indices or more.
///
/// # Panics
/// When `body` yields fewer.
#[inline]
pub fn map_ranges<R: Send, I: Iterator<Item = R>>(
    count: usize,
    grain: usize,
    body: impl Fn(Range<usize>) -> I + Sync,
) -> Vec<R> {
    let mut results = Vec::with_capacity(count);
    for_each_part(&mut results.spare_capacity_mut()[..count], grain, |first, part| {
        let (end, mut written) = (first + part.len(), 0);
        for (to, result) in part.iter_mut().zip(body(first..end)) {
            to.write(result);
            written += 1;
        }
        assert_eq!(written, part.len(), "an item for each index");
    });
    // SAFETY: each part has been written.
    unsafe { results.set_len(count) };
    results
}

/// What `join` makes of `start` and of the results of `body` for ranges that cover `0..count`, each of `grain`
/// indices or more. `join` is associative, and `start` changes nothing.
pub fn reduce(
    count: usize,
    grain: usize,
    start: u64,
    body: &(dyn Fn(Range<usize>) -> u64 + Sync),
    join: fn(u64, u64) -> u64,
) -> u64 {
    ranges(count, grain).map(body).reduce(|| start, join)
}

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Calls `test` with numbers of indices and grains, on pools of one thread and of three.
    fn with_pools(test: impl Fn(usize, usize) + Sync) {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for count in [0, 1, 5, 64, 1000] {
                for grain in [0, 1, 7, 64, usize::MAX] {
                    pool.install(|| test(count, grain));
                }
            }
        }
    }

    #[test]
    fn ranges_cover_each_index_once_and_are_not_shorter_than_the_grain() {
        with_pools(|count, grain| {
            let all = Mutex::new(Vec::new());
            for_each_range(count, grain, &|range| all.lock().unwrap().push(range));
            let mut all = all.into_inner().unwrap();
            all.sort_by_key(|range| range.start);
            assert!(all.iter().all(|range| range.len() >= grain.clamp(1, count)), "{all:?}");
            assert!(all.iter().cloned().flatten().eq(0..count), "{all:?} of {count}");
        });
    }

    #[test]
    fn there_is_work_for_all_threads() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let ranges = AtomicUsize::new(0);
        let count = |_| {
            ranges.fetch_add(1, Ordering::Relaxed);
        };
        pool.install(|| for_each_range(300, 100, &count));
        assert_eq!(ranges.swap(0, Ordering::Relaxed), 2);
        pool.install(|| for_each_range(400, 100, &count));
        assert_eq!(ranges.swap(0, Ordering::Relaxed), 4);
    }

    #[test]
    fn each_index_is_visited_once() {
        with_pools(|count, grain| {
            let seen: Vec<_> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            for_each(count, grain, |index| {
                seen[index].fetch_add(1, Ordering::Relaxed);
            });
            assert!(seen.into_iter().all(|seen| seen.into_inner() == 1));
        });
    }

    #[test]
    fn parts_and_elements_come_with_their_index() {
        with_pools(|count, grain| {
            let mut slice = vec![0; count];
            for_each_part(&mut slice, grain, |first, part| {
                part.iter_mut().zip(first..).for_each(|(element, index)| *element += index);
            });
            assert!(slice.iter().copied().eq(0..count));
            for_each_mut(&mut slice, grain, |index, element| *element += 2 * index);
            assert!(slice.iter().copied().eq((0..count).map(|index| 3 * index)));
        });
    }

    #[test]
    fn results_are_in_order() {
        with_pools(|count, grain| {
            let text = |index: usize| index.to_string();
            let expected: Vec<_> = (0..count).map(text).collect();
            assert_eq!(map(count, grain, text), expected);
            assert_eq!(map_ranges(count, grain, |range| range.map(text)), expected);
        });
    }

    #[test]
    fn a_missing_item_is_noticed() {
        let missing = || map_ranges(10, 1, |range| range.filter(|&index| index != 4));
        assert!(panic::catch_unwind(AssertUnwindSafe(missing)).is_err());
    }

    #[test]
    fn a_reduction_takes_in_each_range() {
        with_pools(|count, grain| {
            let sum = |range: Range<usize>| range.map(|index| index as u64).sum();
            let expected = (count * count.saturating_sub(1) / 2) as u64;
            assert_eq!(reduce(count, grain, 0, &sum, |a, b| a + b), expected);
            let last = |range: Range<usize>| range.end as u64;
            assert_eq!(reduce(count, grain, 0, &last, u64::max), count as u64);
        });
    }
}
