//! Prefix sums over the threads of a block.

use crate::device::shared::SharedArray;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{thread, warp};

/// Words of shared memory that [`block_scan`] needs: one for each warp that a block may have.
pub(crate) const BLOCK_SCAN_WORDS: u32 = 32;

/// The sum of `value` over the lanes up to this one.
#[inline(always)]
pub(crate) fn warp_inclusive_scan(value: u32) -> u32 {
    let lane = warp::lane_id();
    let mut sum = value;
    let mut distance = 1;
    while distance < WARP_SIZE {
        let other = warp::shuffle_up(FULL_MASK, sum, distance, WARP_SIZE);
        if lane >= distance {
            sum += other;
        }
        distance *= 2;
    }
    sum
}

/// (the sum of `value` over the threads before this one, the sum over the block); the block is
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
    let before = warp::shuffle_idx(FULL_MASK, of_warps - of_lane, my_warp, WARP_SIZE);
    let total = warp::shuffle_idx(FULL_MASK, of_warps, WARP_SIZE - 1, WARP_SIZE);
    (before + inclusive - value, total)
}
