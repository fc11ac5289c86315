//! CSR, one warp per element of Y, reduced in shared memory (R4 3.3, after CSR-vector).

use super::csr_subwarp_per_element::product;
use super::strides::Strides;
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, Output};
use crate::kernel::kernel;

kernel! {
    /// `csr-warp-per-element`. Block: a multiple of 32; grid: at least rows x k warps,
    /// one-dimensional; shared memory: [`super::shared_sum_bytes`].
    pub fn spmm_csr_warp_per_element<T: Real>(
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
        let a = (row_ptr, col_ind, values);
        product(rows, k, WARP_SIZE, a, (x, x_strides), (y, y_strides));
    }
    as CsrWarpPerElement
}
