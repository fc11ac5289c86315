//! CSR, one thread per row (R1 2.1.1, CUDA CSR 0; R2 Algorithm 6 reads x through a texture).
//!
//! y[i] = sum over k in row_ptr[i] .. row_ptr[i + 1] of values[k] x[col_ind[k]]
//!
//! Neighbouring threads read entries that lie a row apart, so only short rows coalesce.

use crate::device::{DevicePtr, Output, thread};
use crate::kernel::kernel;

kernel! {
    /// `csr-thread-per-row`. Grid: at least one thread per row, one-dimensional.
    pub fn spmv_csr_thread_per_row<T: Real>(
        rows: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let row = thread::index_1d();
        if row < rows {
            let mut sum = T::ZERO;
            for k in row_ptr.load(row)..row_ptr.load(row + 1) {
                sum = values.load(k).mul_add(x.load(col_ind.load(k)), sum);
            }
            y.store(row, sum);
        }
    }
    as CsrThreadPerRow
}
