//! Merge sort in two procedures: sorting of segments, and merging of neighbouring segments.

use std::ops::Range;

use spm_formats::kernel::Schedule;
use spm_formats::partition;

use crate::Threads;
use crate::disjoint::Disjoint;

/// Segmented sort (R3 IV-B): sorts each segment of `segment` keys; the last one may be shorter.
///
/// Whole keys are compared, so keys with their position in the low bits are sorted stably.
///
/// # Panics
/// When `segment` is 0.
pub fn segmented_sort(threads: &Threads, keys: &mut [u64], segment: usize) {
    let total = keys.len();
    let keys = Disjoint::new(keys);
    threads.for_each_chunk(total.div_ceil(segment), Schedule::Dynamic, 1, |segments| {
        for start in segments.map(|index| index * segment) {
            // SAFETY: segments do not overlap.
            unsafe { keys.range(start..total.min(start + segment)) }.sort_unstable();
        }
    });
}

/// Merges pairs of neighbouring sorted segments of `segment` keys of `from` into sorted segments of
/// twice that length in `to` (R3 IV-C). A segment without a neighbour is copied.
///
/// Every thread writes an equal partition of `to`, for any number of pairs. It finds the start of
/// its partition in the two segments of a pair by binary search, as the splitters of R3 IV-E do.
///
/// # Panics
/// When the slices differ in length or `segment` is 0.
pub fn merge(threads: &Threads, from: &[u64], to: &mut [u64], segment: usize) {
    assert_eq!(from.len(), to.len(), "merging moves all keys");
    assert!(segment > 0, "segments have keys");
    let (total, pair) = (from.len(), segment.saturating_mul(2));
    let to = Disjoint::new(to);
    threads.run(|part| {
        let piece = partition::even(total, threads.count(), part);
        let mut start = piece.start;
        while start < piece.end {
            let first = start / pair * pair;
            let middle = total.min(first.saturating_add(segment));
            let last = total.min(first.saturating_add(pair));
            let end = last.min(piece.end);
            // SAFETY: even parts do not overlap.
            let to = unsafe { to.range(start..end) };
            merge_piece(&from[first..middle], &from[middle..last], start - first..end - first, to);
            start = end;
        }
    });
}

/// Writes the elements `piece` of the merge of `a` and `b`.
fn merge_piece(a: &[u64], b: &[u64], piece: Range<usize>, to: &mut [u64]) {
    let (mut i, end_i) = (taken(a, b, piece.start), taken(a, b, piece.end));
    let (mut j, end_j) = (piece.start - i, piece.end - end_i);
    for slot in to {
        let from_a = j == end_j || (i < end_i && a[i] <= b[j]);
        *slot = if from_a { a[i] } else { b[j] };
        i += usize::from(from_a);
        j += usize::from(!from_a);
    }
}

/// The number of elements of `a` among the first `count` elements of the merge of `a` and `b`.
fn taken(a: &[u64], b: &[u64], count: usize) -> usize {
    let (mut low, mut high) = (count.saturating_sub(b.len()), count.min(a.len()));
    while low < high {
        let middle = low.midpoint(high);
        if a[middle] <= b[count - middle - 1] { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: usize) -> Vec<u64> {
        (0..count as u64).map(|i| (((i * 7919 + 13) % 101) << 32) | i).collect()
    }

    #[test]
    fn segments_are_sorted_alone() {
        let mut keys = [5, 1, 3, 2, 9, 0, 4];
        segmented_sort(&Threads::new(2), &mut keys, 3);
        assert_eq!(keys, [1, 3, 5, 0, 2, 9, 4]);
        segmented_sort(&Threads::new(2), &mut [], 3);
    }

    #[test]
    fn merge_by_hand() {
        for count in [1, 2, 5] {
            let mut merged = [0; 7];
            merge(&Threads::new(count), &[1, 3, 5, 0, 2, 9, 4], &mut merged, 3);
            assert_eq!(merged, [0, 1, 2, 3, 5, 9, 4]);
        }
    }

    #[test]
    fn sort_and_merges_make_a_sort() {
        for total in [0, 1, 2, 1000, 1025] {
            for count in [1, 2, 5] {
                let threads = Threads::new(count);
                let (mut from, mut to) = (keys(total), keys(total));
                let mut expected = from.clone();
                expected.sort_unstable();
                let mut segment = 7;
                segmented_sort(&threads, &mut from, segment);
                while segment < total {
                    merge(&threads, &from, &mut to, segment);
                    std::mem::swap(&mut from, &mut to);
                    segment *= 2;
                }
                assert_eq!(from, expected);
            }
        }
    }

    #[test]
    fn equal_keys_come_from_the_left_first() {
        assert_eq!(taken(&[1, 2, 2], &[2, 2, 3], 3), 3);
        assert_eq!(taken(&[1, 2, 2], &[0, 2, 3], 2), 1);
    }
}
