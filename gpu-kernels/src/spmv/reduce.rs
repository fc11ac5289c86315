//! Sums over the lanes of a warp and the threads of a block, in an order that depends on nothing
//! but their number: bitwise the same from run to run.

use crate::device::shared::SharedArray;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{Real, thread, warp};

/// The sum over each segment of `width` lanes (a power of two), on every lane of it: the butterfly
/// adds the same pairs on all lanes.
#[inline(always)]
pub(crate) fn warp_sum<T: Real>(mask: u32, value: T, width: u32) -> T {
    let mut sum = value;
    let mut distance = width / 2;
    while distance > 0 {
        sum += warp::shuffle_xor(mask, sum, distance, width);
        distance /= 2;
    }
    sum
}

/// The sum over a one-dimensional block of a multiple of 32 threads, on the threads of warp 0.
/// `sums` has at least one element per warp; nobody else uses it until the next barrier.
#[inline(always)]
pub(crate) fn block_sum<T: Real>(sums: SharedArray<T>, value: T) -> T {
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
