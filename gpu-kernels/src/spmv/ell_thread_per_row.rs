//! ELLPACK, column-major and pitched, one thread per row (R0 3.3.2; R1 2.1.2, CUDA ELL 0).
//!
//! y[i] = sum over s of values[s pitch + i] x[col_ind[s pitch + i]]
//!
//! Neighbouring threads read neighbouring stored elements. With row lengths s ends at the row's own
//! length, without them at the width of the matrix (R1 4.3.2 compares the two).

use super::padded::element_sum;
use crate::device::{DevicePtr, Output, thread};
use crate::kernel::kernel;

kernel! {
    /// `ell-thread-per-row[row-lengths=on]`. Grid: at least one thread per row, one-dimensional.
    pub fn spmv_ell_thread_per_row<T: Real>(
        rows: u32,
        pitch: u64,
        row_lengths: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let row = thread::index_1d();
        if row < rows {
            let length = row_lengths.load(row);
            y.store(row, element_sum(col_ind, values, x, u64::from(row), pitch, length));
        }
    }
    as EllThreadPerRow
}

kernel! {
    /// `ell-thread-per-row[row-lengths=off]`. Grid: at least one thread per row, one-dimensional.
    /// The row lengths are read for a sum that is not finite only.
    pub fn spmv_ell_thread_per_row_padded<T: Real>(
        rows: u32,
        width: u32,
        pitch: u64,
        row_lengths: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let row = thread::index_1d();
        if row < rows {
            let mut sum = element_sum(col_ind, values, x, u64::from(row), pitch, width);
            if !sum.is_finite() {
                let length = row_lengths.load(row);
                sum = element_sum(col_ind, values, x, u64::from(row), pitch, length);
            }
            y.store(row, sum);
        }
    }
    as EllThreadPerRowPadded
}
