//! HLL, flat arrays with block offsets, one thread per row, x through the texture cache
//! (R2 VI-B, Algorithm 7).
//!
//! Row i is row j = i mod hack of block b = i / hack, which has h rows and w stored elements per row:
//! y[i] = sum over s < w of values[offset(b) + s h + j] tex1Dfetch(x, col_ind[...])
//!
//! As in the report the thread walks the width of its block and skips zeros. A zero that the
//! matrix stores is not skipped, because 0 times an infinite x is not 0.

use crate::device::{DevicePtr, Output, Texture, divide, thread};
use crate::kernel::kernel;

kernel! {
    /// `hll-thread-per-row-texture`. Grid: at least one thread per row, one-dimensional.
    pub fn spmv_hll_thread_per_row_texture<T: Real>(
        rows: u32,
        hack_size: u32,
        block_offsets: DevicePtr<u64>,
        row_lengths: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: Texture<T>,
        y: Output<T>,
    ) {
        let row = thread::index_1d();
        if row < rows {
            let block = divide(row, hack_size);
            let first_row = block * hack_size;
            let height = hack_size.min(rows - first_row);
            let start = block_offsets.load(block);
            let elements = (block_offsets.load(block + 1) - start) as u32;
            let width = divide(elements, height);
            let length = row_lengths.load(row);
            let mut element = start + u64::from(row - first_row);
            let mut sum = T::ZERO;
            for s in 0..width {
                let value = values.load(element);
                if value != T::ZERO || s < length {
                    sum = value.mul_add(x.fetch(col_ind.load(element)), sum);
                }
                element += u64::from(height);
            }
            y.store(row, sum);
        }
    }
    as HllThreadPerRowTexture
}
