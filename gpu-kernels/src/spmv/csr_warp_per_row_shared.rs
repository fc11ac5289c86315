//! CSR, one warp per row, reduced in shared memory (R0 3.3.1).
//!
//! Lane l sums the entries l, l + 32, ... of a row; then s[l] += s[l + 16], s[l + 8], ..., s[l + 1]
//! in shared memory, and lane 0 stores. The warps of the grid take the rows in turns.
//!
//! The report holds the warp together with a barrier of the block and `volatile`; here it is
//! `sync_warp`, because the warps of a block need not have the same number of rows.

use crate::device::shared::Pool;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, Output, Real, thread, warp};
use crate::kernel::kernel;

/// Bytes of dynamic shared memory for blocks of `block` threads.
#[cfg(not(target_arch = "nvptx64"))]
pub fn csr_warp_per_row_shared_bytes<T: Real>(block: u32) -> u32 {
    let mut pool = Pool::new();
    cut::<T>(&mut pool, block);
    pool.bytes()
}

/// The sums, one per thread, and the row bounds, two per warp.
#[inline(always)]
fn cut<T: Real>(
    pool: &mut Pool,
    block: u32,
) -> (crate::device::shared::SharedArray<T>, crate::device::shared::SharedArray<u32>) {
    (pool.array(block), pool.array(2 * (block / WARP_SIZE)))
}

kernel! {
    /// `csr-warp-per-row-shared`. Block: a multiple of 32; any one-dimensional grid (the report
    /// launches as many threads as rows); shared memory: [`csr_warp_per_row_shared_bytes`].
    pub fn spmv_csr_warp_per_row_shared<T: Real>(
        rows: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let (sums, bounds) = cut::<T>(&mut Pool::new(), thread::block_dim_x());
        let me = thread::thread_idx_x();
        let lane = me % WARP_SIZE;
        let warp_in_block = me / WARP_SIZE;
        let warps = thread::grid_dim_x() * (thread::block_dim_x() / WARP_SIZE);
        let mut row = thread::index_1d() / WARP_SIZE;
        while row < rows {
            if lane < 2 {
                bounds.store(2 * warp_in_block + lane, row_ptr.load(row + lane));
            }
            warp::sync_warp(FULL_MASK);
            let end = bounds.load(2 * warp_in_block + 1);
            let mut k = bounds.load(2 * warp_in_block) + lane;
            let mut sum = T::ZERO;
            while k < end {
                sum = values.load(k).mul_add(x.load(col_ind.load(k)), sum);
                k += WARP_SIZE;
            }
            sums.store(me, sum);
            let mut distance = WARP_SIZE / 2;
            while distance > 0 {
                warp::sync_warp(FULL_MASK);
                if lane < distance {
                    sum += sums.load(me + distance);
                    sums.store(me, sum);
                }
                distance /= 2;
            }
            if lane == 0 {
                y.store(row, sum);
            }
            // The next row overwrites what a slower lane may still read.
            warp::sync_warp(FULL_MASK);
            row += warps;
        }
    }
    as CsrWarpPerRowShared
}
