//! CSR, a part of a warp per element of Y, reduced in shared memory (R4 3.3,
//! CSR_Vector_Sub_warp, 2 threads there).
//!
//! Lane l of w sums values[e] X[col_ind[e], j] over the entries l, l + w, ... of row i; the w
//! sums are added in shared memory and the first lane stores Y[i, j].

use super::reduce::{shared_sum, sums};
use super::strides::Strides;
use crate::device::{DevicePtr, Output, Real, divide, thread};
use crate::kernel::kernel;

/// The computation of one thread, with `lanes` threads per element.
#[inline(always)]
pub(super) fn product<T: Real>(
    rows: u32,
    k: u32,
    lanes: u32,
    (row_ptr, col_ind, values): (DevicePtr<u32>, DevicePtr<u32>, DevicePtr<T>),
    (x, x_strides): (DevicePtr<T>, Strides),
    (y, y_strides): (Output<T>, Strides),
) {
    let shift = lanes.trailing_zeros();
    let me = thread::thread_idx_x();
    let element = thread::block_idx_x() * (thread::block_dim_x() >> shift) + (me >> shift);
    let lane = me & (lanes - 1);
    let row = divide(element, k);
    let column = element - row * k;
    let mut sum = T::ZERO;
    if row < rows {
        let end = row_ptr.load(row + 1);
        let mut e = row_ptr.load(row) + lane;
        while e < end {
            let x = x.load(x_strides.index(col_ind.load(e), column));
            sum = values.load(e).mul_add(x, sum);
            e += lanes;
        }
    }
    let sum = shared_sum(sums(), sum, lanes);
    if row < rows && lane == 0 {
        y.store(y_strides.index(row, column), sum);
    }
}

kernel! {
    /// `csr-subwarp-per-element`: `lanes` (a power of two up to 32) per element. Block: a multiple
    /// of 32; grid: at least rows x k x lanes threads, one-dimensional; shared memory:
    /// [`super::shared_sum_bytes`].
    pub fn spmm_csr_subwarp_per_element<T: Real>(
        rows: u32,
        k: u32,
        lanes: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        x_strides: Strides,
        y: Output<T>,
        y_strides: Strides,
    ) {
        let a = (row_ptr, col_ind, values);
        product(rows, k, lanes, a, (x, x_strides), (y, y_strides));
    }
    as CsrSubwarpPerElement
}
