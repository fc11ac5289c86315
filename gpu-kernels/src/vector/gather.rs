//! to[i] = from[rows[i]], for rows of k elements

use super::row_in_grid;
use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

kernel! {
    /// Copies `count` rows of k elements each into an array without gaps. Grid: one-dimensional; block:
    /// threads over the columns x rows, with at least `count` rows in the grid.
    pub fn vector_gather<T: Number>(
        count: u32,
        k: u64,
        rows: DevicePtr<u32>,
        from: DevicePtr<T>,
        to: DevicePtrMut<T>,
    ) {
        let row = row_in_grid();
        if row < u64::from(count) {
            let source = u64::from(rows.load(row)) * k;
            let mut column = u64::from(thread::thread_idx_x());
            while column < k {
                to.store(row * k + column, from.load(source + column));
                column += u64::from(thread::block_dim_x());
            }
        }
    }
    as VectorGather
}
