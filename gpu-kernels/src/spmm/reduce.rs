//! Reductions in shared memory, as in R4.

use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::FULL_MASK;
use crate::device::{Number, thread, warp};

/// Bytes of dynamic shared memory for one sum per thread of a block of `block` threads.
#[cfg(not(target_arch = "nvptx64"))]
pub fn shared_sum_bytes<T: Number>(block: u32) -> u32 {
    let mut pool = Pool::new();
    pool.array::<T>(block);
    pool.bytes()
}

/// One sum per thread of the block.
#[inline(always)]
pub(crate) fn sums<T: Number>() -> SharedArray<T> {
    Pool::new().array(thread::block_dim_x())
}

/// The sum over each group of `width` lanes (a power of two up to 32), on its first lane: lane l
/// adds what lane l + width/2, ..., l + 1 holds. All lanes of the warp must come here.
#[inline(always)]
pub(crate) fn shared_sum<T: Number>(sums: SharedArray<T>, value: T, width: u32) -> T {
    let me = thread::thread_idx_x();
    let lane = me & (width - 1);
    let mut sum = value;
    sums.store(me, sum);
    let mut distance = width / 2;
    while distance > 0 {
        warp::sync_warp(FULL_MASK);
        if lane < distance {
            sum += sums.load(me + distance);
            sums.store(me, sum);
        }
        distance /= 2;
    }
    // What follows may overwrite what a slower lane still reads.
    warp::sync_warp(FULL_MASK);
    sum
}
