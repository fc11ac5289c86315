//! Sums and scans over the lanes of a warp and the threads of a block, in an order that depends
//! only on their number, so that results are reproducible bit by bit.

use crate::device::shared::SharedArray;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{Number, thread, warp};

/// The sum over each segment of `width` lanes (a power of two), on every lane of it: the butterfly
/// adds the same pairs on all lanes.
#[inline(always)]
pub(crate) fn warp_sum<T: Number>(mask: u32, value: T, width: u32) -> T {
    let mut sum = value;
    let mut distance = width / 2;
    while distance > 0 {
        sum += warp::shuffle_xor(mask, sum, distance, width);
        distance /= 2;
    }
    sum
}

/// A reduction (sum, minimum or maximum) over a warp, on every lane.
#[inline(always)]
pub(crate) fn warp_fold(value: u32, fold: impl Fn(u32, u32) -> u32) -> u32 {
    let mut folded = value;
    let mut distance = WARP_SIZE / 2;
    while distance > 0 {
        folded = fold(folded, warp::shuffle_xor(FULL_MASK, folded, distance, WARP_SIZE));
        distance /= 2;
    }
    folded
}

/// Four reductions over a warp at once, with 6 exchanges instead of 20: lane l has that of value l / 8.
#[inline(always)]
pub(crate) fn warp_fold_four(values: [u32; 4], fold: impl Fn(u32, u32) -> u32) -> u32 {
    let lane = warp::lane_id();
    let exchange = |value, distance| warp::shuffle_xor(FULL_MASK, value, distance, WARP_SIZE);
    // A lane folds the one of two values that its bit says, and gives the other one away.
    let halve = |[first, second]: [u32; 2], distance| {
        let [mine, other] = if lane & distance == 0 { [first, second] } else { [second, first] };
        fold(mine, exchange(other, distance))
    };
    let [a, b, c, d] = values;
    let mut folded = halve([halve([a, c], 16), halve([b, d], 16)], 8);
    for distance in [4, 2, 1] {
        folded = fold(folded, exchange(folded, distance));
    }
    folded
}

/// The sum of `value` over the lanes up to this one, modulo 2^32.
#[inline(always)]
pub(crate) fn warp_inclusive_scan(value: u32) -> u32 {
    let lane = warp::lane_id();
    let mut sum = value;
    let mut distance = 1;
    while distance < WARP_SIZE {
        let before = warp::shuffle_up(FULL_MASK, sum, distance, WARP_SIZE);
        if lane >= distance {
            sum = sum.wrapping_add(before);
        }
        distance *= 2;
    }
    sum
}

/// The sum of `value` over the lanes up to this one behind the last whose bit of `ends` is set: runs of lanes end there. The
/// steps are as many as the longest run needs.
#[inline(always)]
pub(crate) fn warp_inclusive_scan_of_runs<T: Number>(value: T, ends: u32, lane: u32) -> T {
    // Bit l: the `distance` lanes up to l are of one run, which goes on.
    let (mut going_on, mut distance, mut sum) = (!ends, 1, value);
    while going_on != 0 && distance < WARP_SIZE {
        let before = warp::shuffle_up(FULL_MASK, sum, distance, WARP_SIZE);
        if (going_on << 1) >> lane & 1 != 0 {
            sum = before + sum;
        }
        going_on &= going_on << distance;
        distance *= 2;
    }
    sum
}

/// A sum over lanes since the last end of a segment among them, and whether there is such an end.
pub(crate) type SegmentSum<T> = (T, bool);

/// Sums over segments that end anywhere: `ended` says that one ends in this lane, `tail` is what the
/// lane has summed since (all that it has, where none ends). Returns the sum over the lanes before
/// this one, and the one that includes it.
#[inline(always)]
pub(crate) fn warp_segmented_scan<T: Number>(
    tail: T,
    ended: bool,
    lane: u32,
) -> (SegmentSum<T>, SegmentSum<T>) {
    let (mut inclusive, mut any) = (tail, u32::from(ended));
    let mut distance = 1;
    while distance < WARP_SIZE {
        let before = warp::shuffle_up(FULL_MASK, inclusive, distance, WARP_SIZE);
        let any_before = warp::shuffle_up(FULL_MASK, any, distance, WARP_SIZE);
        if lane >= distance && any == 0 {
            inclusive = before + inclusive;
            any = any_before;
        }
        distance *= 2;
    }
    let mut exclusive = warp::shuffle_up(FULL_MASK, inclusive, 1, WARP_SIZE);
    let mut any_before = warp::shuffle_up(FULL_MASK, any, 1, WARP_SIZE);
    if lane == 0 {
        (exclusive, any_before) = (T::ZERO, 0);
    }
    ((exclusive, any_before != 0), (inclusive, any != 0))
}

/// The sum over a one-dimensional block of a multiple of 32 threads, on the threads of warp 0.
/// `sums` has at least one element per warp; nothing else uses it until the next barrier.
#[inline(always)]
pub(crate) fn block_sum<T: Number>(sums: SharedArray<T>, value: T) -> T {
    let me = thread::thread_idx_x();
    let (warp_in_block, lane) = (me / WARP_SIZE, me % WARP_SIZE);
    let of_warp = warp_sum(FULL_MASK, value, WARP_SIZE);
    if lane == 0 {
        sums.store(warp_in_block, of_warp);
    }
    thread::sync_threads();
    let mut sum = T::ZERO;
    if warp_in_block == 0 {
        if lane < thread::block_dim_x() / WARP_SIZE {
            sum = sums.load(lane);
        }
        sum = warp_sum(FULL_MASK, sum, WARP_SIZE);
    }
    sum
}

/// Words of shared memory that [`block_scan`] needs: one for each warp that a block may have.
pub(crate) const BLOCK_SCAN_WORDS: u32 = 32;

/// (the sum of `value` over the threads before this one, the sum over the block), modulo 2^32; the block is
/// one-dimensional, of whole warps, and all of it calls.
#[inline(always)]
pub(crate) fn block_scan(value: u32, sums: SharedArray<u32>) -> (u32, u32) {
    let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
    let (lane, my_warp) = (me % WARP_SIZE, me / WARP_SIZE);
    let inclusive = warp_inclusive_scan(value);
    // Nobody reads what an earlier call left any more.
    thread::sync_threads();
    if lane == WARP_SIZE - 1 {
        sums.store(my_warp, inclusive);
    }
    thread::sync_threads();
    let of_lane = if lane < block / WARP_SIZE { sums.load(lane) } else { 0 };
    let of_warps = warp_inclusive_scan(of_lane);
    let before = warp::shuffle_idx(FULL_MASK, of_warps.wrapping_sub(of_lane), my_warp, WARP_SIZE);
    let total = warp::shuffle_idx(FULL_MASK, of_warps, WARP_SIZE - 1, WARP_SIZE);
    (before.wrapping_add(inclusive).wrapping_sub(value), total)
}
