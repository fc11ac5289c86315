//! CSR, one warp per row of Y, 8 sub-warps of 4 lanes (R4 3.3, CSR_Vector_by_row).
//!
//! Sub-warp s computes Y[i, s], Y[i, s + 8], ...; its lane l sums the entries l, l + 4, ... of row
//! i, and the 4 sums are added in shared memory. X is column-major: the report transposes it.

use super::reduce::{shared_sum, sums};
use super::strides::Strides;
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, Output, thread};
use crate::kernel::kernel;

/// Lanes of a sub-warp.
const LANES: u32 = 4;
/// Sub-warps of a warp.
const SUBWARPS: u32 = WARP_SIZE / LANES;

kernel! {
    /// `csr-warp-per-row`. Block: a multiple of 32; grid: at least one warp per row,
    /// one-dimensional; shared memory: [`super::shared_sum_bytes`].
    pub fn spmm_csr_warp_per_row<T: Real>(
        rows: u32,
        k: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        x_strides: Strides,
        y: Output<T>,
        y_strides: Strides,
    ) {
        let me = thread::thread_idx_x();
        let warps = thread::block_dim_x() / WARP_SIZE;
        let row = thread::block_idx_x() * warps + me / WARP_SIZE;
        let lane = me % LANES;
        let subwarp = me % WARP_SIZE / LANES;
        let (start, end) =
            if row < rows { (row_ptr.load(row), row_ptr.load(row + 1)) } else { (0, 0) };
        let mut first = 0;
        while first < k {
            let column = first + subwarp;
            let mut sum = T::ZERO;
            if column < k {
                let mut e = start + lane;
                while e < end {
                    let x = x.load(x_strides.index(col_ind.load(e), column));
                    sum = values.load(e).mul_add(x, sum);
                    e += LANES;
                }
            }
            let sum = shared_sum(sums(), sum, LANES);
            if row < rows && column < k && lane == 0 {
                y.store(y_strides.index(row, column), sum);
            }
            first += SUBWARPS;
        }
    }
    as CsrWarpPerRow
}
