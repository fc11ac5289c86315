//! Pointers to index (R3 IV-G): the row of each entry from the row pointers.

use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

kernel! {
    /// A block writes the number of its row to each of the row's entries. Any grid and block.
    pub fn transpose_pointers_to_index(
        rows: u32,
        row_ptr: DevicePtr<u32>,
        indices: DevicePtrMut<u32>,
    ) {
        let mut row = thread::block_idx_x();
        while row < rows {
            let (start, end) = (row_ptr.load(row), row_ptr.load(row + 1));
            let mut k = thread::thread_idx_x();
            while k < end - start {
                indices.store(start + k, row);
                k += thread::block_dim_x();
            }
            if rows - row <= thread::grid_dim_x() {
                break;
            }
            row += thread::grid_dim_x();
        }
    }
    as PointersToIndex
}
