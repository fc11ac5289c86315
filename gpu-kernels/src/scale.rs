//! y = beta z, where a product has nothing to add.

use crate::device::{DevicePtr, Output, thread};
use crate::kernel::kernel;

kernel! {
    /// y = beta z in all `elements` elements. Grid: any, one-dimensional.
    pub fn scale<T: Number>(elements: u64, y: Output<T>) {
        let threads = u64::from(thread::grid_dim_x()) * u64::from(thread::block_dim_x());
        let mut element = u64::from(thread::index_1d());
        while element < elements {
            y.scale(element);
            element += threads;
        }
    }
    as Scale
}

kernel! {
    /// y = beta z in the rows of a CSR matrix that have no entries, for the `k` columns of a
    /// column-major y. Grid: at least one thread per row, one-dimensional.
    pub fn scale_empty_rows<T: Number>(rows: u32, k: u32, row_ptr: DevicePtr<u32>, y: Output<T>) {
        let row = thread::index_1d();
        if row < rows && row_ptr.load(row) == row_ptr.load(row + 1) {
            for column in 0..k {
                y.scale(u64::from(column) * u64::from(rows) + u64::from(row));
            }
        }
    }
    as ScaleEmptyRows
}
