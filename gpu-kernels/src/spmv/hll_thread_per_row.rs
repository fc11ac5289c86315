//! HLL, one thread per row, each as far as its own length (own; layout of R2 VI-B).
//!
//! Row i is row j = i mod hack of block b = i / hack, which has h rows:
//! y[i] = sum over s < length[i] of values[offset(b) + s h + j] x[col_ind[offset(b) + s h + j]]

use super::padded::element_sum;
use crate::device::{DevicePtr, Output, divide, thread};
use crate::kernel::kernel;

kernel! {
    /// `hll-thread-per-row`. Grid: at least one thread per row, one-dimensional.
    pub fn spmv_hll_thread_per_row<T: Real>(
        rows: u32,
        hack_size: u32,
        block_offsets: DevicePtr<u64>,
        row_lengths: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let row = thread::index_1d();
        if row < rows {
            let block = divide(row, hack_size);
            let first_row = block * hack_size;
            let height = hack_size.min(rows - first_row);
            let first = block_offsets.load(block) + u64::from(row - first_row);
            let length = row_lengths.load(row);
            y.store(row, element_sum(col_ind, values, x, first, u64::from(height), length));
        }
    }
    as HllThreadPerRow
}
