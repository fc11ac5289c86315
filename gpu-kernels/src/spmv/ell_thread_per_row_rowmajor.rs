//! ELLPACK, row-major, one thread per row (R1 4.3.1, CUDA ELL 1).
//!
//! y[i] = sum over s of values[i pitch + s] x[col_ind[i pitch + s]]
//!
//! Neighbouring threads read elements that are a row apart. This is the layout for CPU cores; the
//! kernel measures the benefit of the column-major layout.

use super::padded::element_sum;
use crate::device::{DevicePtr, Output, thread};
use crate::kernel::kernel;

kernel! {
    /// `ell-thread-per-row-rowmajor[row-lengths=on]`. Grid: at least one thread per row.
    pub fn spmv_ell_thread_per_row_rowmajor<T: Real>(
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
            y.store(row, element_sum(col_ind, values, x, u64::from(row) * pitch, 1, length));
        }
    }
    as EllThreadPerRowRowmajor
}

kernel! {
    /// `ell-thread-per-row-rowmajor[row-lengths=off]`. Grid: at least one thread per row.
    /// The row lengths are read for a sum that is not finite only.
    pub fn spmv_ell_thread_per_row_rowmajor_padded<T: Real>(
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
            let first = u64::from(row) * pitch;
            let mut sum = element_sum(col_ind, values, x, first, 1, width);
            if !sum.is_finite() {
                sum = element_sum(col_ind, values, x, first, 1, row_lengths.load(row));
            }
            y.store(row, sum);
        }
    }
    as EllThreadPerRowRowmajorPadded
}
