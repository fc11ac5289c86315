//! Merge of pairs of sorted segments (R3 IV-C), in shared memory if a pair fits (IV-D), otherwise
//! in pieces between splitters (IV-E). Of equal keys those of the left segment come first.

use crate::device::shared::{Pool, SharedArray};
use crate::device::{DevicePtr, DevicePtrMut, divide, thread};
use crate::kernel::kernel;
use crate::search::partition_point;

/// Shared memory of [`MergeSmall`] for segments of `block` keys, and of [`MergePieces`] for
/// splitters at a distance of `block`, in bytes.
pub fn merge_bytes(block: u32) -> u32 {
    2 * block * size_of::<u64>() as u32
}

/// `dividend / divisor`, rounded up; see [`divide`].
#[inline(always)]
fn ceiling(dividend: u32, divisor: u32) -> u32 {
    let quotient = divide(dividend, divisor);
    quotient + u32::from(quotient * divisor != dividend)
}

/// How many of `length` keys are below `key`, or not above it.
#[inline(always)]
fn count_below(load: impl Fn(u32) -> u64, length: u32, key: u64, or_equal: bool) -> u32 {
    partition_point(0..length, |place| {
        let value = load(place);
        value < key || (or_equal && value == key)
    })
}

/// Merges `left` and `right`, up to block keys each, through shared memory; thread i finds the
/// places of key i of both by binary search in the other one.
#[inline(always)]
fn merge_shared(
    keys: DevicePtr<u64>,
    (left, left_length): (u32, u32),
    (right, right_length): (u32, u32),
    sorted: DevicePtrMut<u64>,
    target: u32,
) {
    let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
    let mut pool = Pool::new();
    let (lefts, rights): (SharedArray<u64>, SharedArray<u64>) =
        (pool.array(block), pool.array(block));
    if me < left_length {
        lefts.store(me, keys.load(left + me));
    }
    if me < right_length {
        rights.store(me, keys.load(right + me));
    }
    thread::sync_threads();
    if me < left_length {
        let key = lefts.load(me);
        let place = me + count_below(|i| rights.load(i), right_length, key, false);
        sorted.store(target + place, key);
    }
    if me < right_length {
        let key = rights.load(me);
        let place = me + count_below(|i| lefts.load(i), left_length, key, true);
        sorted.store(target + place, key);
    }
}

kernel! {
    /// Merge small: merges each pair of neighbouring segments of `segment` keys, at most as many as
    /// the block has threads. A last segment without a partner is copied.
    ///
    /// Grid: pairs; shared memory: [`merge_bytes`] of the block.
    pub fn transpose_merge_small(
        length: u32,
        segment: u32,
        keys: DevicePtr<u64>,
        sorted: DevicePtrMut<u64>,
    ) {
        let left = thread::block_idx_x() * 2 * segment;
        let left_length = segment.min(length - left);
        let right = left + left_length;
        let right_length = segment.min(length - right);
        merge_shared(keys, (left, left_length), (right, right_length), sorted, left);
    }
    as MergeSmall
}

kernel! {
    /// Merge big, first step: a splitter is every `distance`-th key. Writes for each splitter, in
    /// the order in which the merged segments hold them, where it cuts the left and the right
    /// segment of its pair (keys before it in either).
    ///
    /// The report merges the splitters by the same procedure, recursively, to find that order; it
    /// follows from the cuts at once: a splitter comes after those splitters of the other segment
    /// that its cut there leaves behind.
    ///
    /// `segment` is a multiple of `distance`. Grid: at least one thread for each splitter.
    pub fn transpose_merge_splitters(
        length: u32,
        segment: u32,
        distance: u32,
        keys: DevicePtr<u64>,
        cuts: DevicePtrMut<u32>,
    ) {
        let splitter = thread::index_1d();
        if splitter < ceiling(length, distance) {
            let position = splitter * distance;
            let pair = divide(position, segment) / 2;
            let left = pair * 2 * segment;
            let left_length = segment.min(length - left);
            let right = left + left_length;
            let right_length = segment.min(length - right);
            let key = keys.load(position);
            let (mut left_cut, mut right_cut) = (position - left, position.wrapping_sub(right));
            let before;
            if position < right {
                right_cut = count_below(|i| keys.load(right + i), right_length, key, false);
                before = divide(left_cut, distance) + ceiling(right_cut, distance);
            } else {
                left_cut = count_below(|i| keys.load(left + i), left_length, key, true);
                before = divide(right_cut, distance) + ceiling(left_cut, distance);
            }
            let slot = u64::from(divide(left, distance) + before);
            cuts.store_vector(2 * slot, [left_cut, right_cut]);
        }
    }
    as MergeSplitters
}

kernel! {
    /// Merge big, second step: each block merges what lies between a splitter and the next one of
    /// its pair: at most `distance` keys of either segment.
    ///
    /// Grid: splitters; block: `distance` threads; shared memory: [`merge_bytes`] of `distance`.
    pub fn transpose_merge_pieces(
        length: u32,
        segment: u32,
        distance: u32,
        cuts: DevicePtr<u32>,
        keys: DevicePtr<u64>,
        sorted: DevicePtrMut<u64>,
    ) {
        let piece = thread::block_idx_x();
        let pair = divide(piece * distance, segment) / 2;
        let left = pair * 2 * segment;
        let left_length = segment.min(length - left);
        let right = left + left_length;
        let right_length = segment.min(length - right);
        let [left_cut, right_cut] = cuts.load_vector(2 * u64::from(piece));
        let next = piece + 1;
        let (mut left_end, mut right_end) = (left_length, right_length);
        // The splitters of the next pair start where this one ends.
        if u64::from(next) * u64::from(distance) < u64::from(right + right_length) {
            [left_end, right_end] = cuts.load_vector(2 * u64::from(next));
        }
        merge_shared(
            keys,
            (left + left_cut, left_end - left_cut),
            (right + right_cut, right_end - right_cut),
            sorted,
            left + left_cut + right_cut,
        );
    }
    as MergePieces
}
