//! CSR, one thread per row, x through the texture cache (R2 Algorithm 6).
//!
//! y[i] = sum over k in row_ptr[i] .. row_ptr[i + 1] of values[k] tex1Dfetch(x, col_ind[k])

use crate::device::{DevicePtr, Output, Texture, thread};
use crate::kernel::kernel;

kernel! {
    /// `csr-thread-per-row-texture`. Grid: at least one thread per row, one-dimensional.
    pub fn spmv_csr_thread_per_row_texture<T: Real>(
        rows: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: Texture<T>,
        y: Output<T>,
    ) {
        let row = thread::index_1d();
        if row < rows {
            let mut sum = T::ZERO;
            for k in row_ptr.load(row)..row_ptr.load(row + 1) {
                sum = values.load(k).mul_add(x.fetch(col_ind.load(k)), sum);
            }
            y.store(row, sum);
        }
    }
    as CsrThreadPerRowTexture
}
