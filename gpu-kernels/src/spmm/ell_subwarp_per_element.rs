//! ELLPACK, row-major, a part of a warp per element of Y, reduced in shared memory (R4 4.3,
//! ELLPACK_Sub_warp, 2 threads there).
//!
//! Lane l of w sums the stored elements l, l + w, ... of its row; padding as in
//! `ell_thread_per_element.rs`.

use super::ell_thread_per_element::element_sum;
use super::reduce::{shared_sum, sums};
use super::strides::Strides;
use crate::device::{DevicePtr, Output, divide, thread};
use crate::kernel::kernel;

kernel! {
    /// `ell-subwarp-per-element`: `lanes` (a power of two up to 32) per element. Walks the padding
    /// when `padded` is not 0. Block: a multiple of 32; grid: at least rows x k x lanes threads,
    /// one-dimensional; shared memory: [`super::shared_sum_bytes`].
    pub fn spmm_ell_subwarp_per_element<T: Real>(
        rows: u32,
        k: u32,
        lanes: u32,
        width: u32,
        pitch: u64,
        padded: u32,
        row_lengths: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        x_strides: Strides,
        y: Output<T>,
        y_strides: Strides,
    ) {
        let shift = lanes.trailing_zeros();
        let me = thread::thread_idx_x();
        let element = thread::block_idx_x() * (thread::block_dim_x() >> shift) + (me >> shift);
        let lane = me & (lanes - 1);
        let row = divide(element, k);
        let column = element - row * k;
        let (x, base) = ((x, x_strides, column), u64::from(row) * pitch);
        let mut sum = T::ZERO;
        if row < rows {
            let elements = if padded != 0 { width } else { row_lengths.load(row) };
            sum = element_sum(col_ind, values, x, base, (lane, elements, lanes));
            // A lane whose part is finite has met nothing infinite: only the others look again.
            if padded != 0 && !sum.is_finite() {
                sum = element_sum(col_ind, values, x, base, (lane, row_lengths.load(row), lanes));
            }
        }
        let sum = shared_sum(sums(), sum, lanes);
        if row < rows && lane == 0 {
            y.store(y_strides.index(row, column), sum);
        }
    }
    as EllSubwarpPerElement
}
