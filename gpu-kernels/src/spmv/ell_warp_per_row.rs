//! ELLPACK, row-major, one warp per row, blocks of 32 x R threads (R1 2.2, CUDA ELL 2).
//!
//! Lane l sums the stored elements l, l + 32, ... of its row; the 32 sums are folded in registers.

use super::padded::element_sum;
use crate::collective::warp_sum;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, Output, Real, thread};
use crate::kernel::kernel;

/// The sum over the first `elements` stored elements of the row that starts at `first`, on every lane.
#[inline(always)]
fn row_sum<T: Real>(
    col_ind: DevicePtr<u32>,
    values: DevicePtr<T>,
    x: DevicePtr<T>,
    first: u64,
    elements: u32,
) -> T {
    let lane = thread::thread_idx_x();
    let of_this_lane = (elements + WARP_SIZE - 1 - lane) / WARP_SIZE;
    let (first, stride) = (first + u64::from(lane), u64::from(WARP_SIZE));
    let sum = element_sum(col_ind, values, x, first, stride, of_this_lane);
    warp_sum(FULL_MASK, sum, WARP_SIZE)
}

kernel! {
    /// `ell-warp-per-row[row-lengths=on]`. Block: 32 x R; grid: at least rows / R blocks in x.
    pub fn spmv_ell_warp_per_row<T: Real>(
        rows: u32,
        pitch: u64,
        row_lengths: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let row = thread::block_idx_x() * thread::block_dim_y() + thread::thread_idx_y();
        if row < rows {
            let length = row_lengths.load(row);
            let sum = row_sum(col_ind, values, x, u64::from(row) * pitch, length);
            if thread::thread_idx_x() == 0 {
                y.store(row, sum);
            }
        }
    }
    as EllWarpPerRow
}

kernel! {
    /// `ell-warp-per-row[row-lengths=off]`. Block: 32 x R; grid: at least rows / R blocks in x.
    /// The row lengths are read for a sum that is not finite only.
    pub fn spmv_ell_warp_per_row_padded<T: Real>(
        rows: u32,
        width: u32,
        pitch: u64,
        row_lengths: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let row = thread::block_idx_x() * thread::block_dim_y() + thread::thread_idx_y();
        if row < rows {
            let first = u64::from(row) * pitch;
            let mut sum = row_sum(col_ind, values, x, first, width);
            // All lanes hold the same sum, so all of them take the branch or none.
            if !sum.is_finite() {
                sum = row_sum(col_ind, values, x, first, row_lengths.load(row));
            }
            if thread::thread_idx_x() == 0 {
                y.store(row, sum);
            }
        }
    }
    as EllWarpPerRowPadded
}
