//! CSR, one warp per row, blocks of 32 x R threads (R1 2.2, CUDA CSR 1).
//!
//! Lane l sums the entries l, l + 32, ... of its row; the 32 sums are folded in registers:
//! s[l] += s[l ^ 16], s[l ^ 8], ..., s[l ^ 1].

use crate::collective::warp_sum;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, Output, thread};
use crate::kernel::kernel;

kernel! {
    /// `csr-warp-per-row`. Block: 32 x R; grid: at least rows / R blocks in x.
    pub fn spmv_csr_warp_per_row<T: Real>(
        rows: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let lane = thread::thread_idx_x();
        let row = thread::block_idx_x() * thread::block_dim_y() + thread::thread_idx_y();
        if row < rows {
            let end = row_ptr.load(row + 1);
            let mut sum = T::ZERO;
            let mut k = row_ptr.load(row) + lane;
            while k < end {
                sum = values.load(k).mul_add(x.load(col_ind.load(k)), sum);
                k += WARP_SIZE;
            }
            let sum = warp_sum(FULL_MASK, sum, WARP_SIZE);
            if lane == 0 {
                y.store(row, sum);
            }
        }
    }
    as CsrWarpPerRow
}
