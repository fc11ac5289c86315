//! to[rows[i]] = from[i] + beta to[rows[i]], for rows of k elements

use super::row_in_grid;
use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

kernel! {
    /// Copies `count` rows of k elements each out of an array without gaps, or adds them (`beta` = 1); for
    /// beta = 0 `to` is not read. Rows are named once each. Grid and block: as
    /// [`VectorGather`](super::VectorGather).
    pub fn vector_scatter<T: Number>(
        count: u32,
        k: u64,
        rows: DevicePtr<u32>,
        from: DevicePtr<T>,
        beta: T,
        to: DevicePtrMut<T>,
    ) {
        let row = row_in_grid();
        if row < u64::from(count) {
            let target = u64::from(rows.load(row)) * k;
            let mut column = u64::from(thread::thread_idx_x());
            while column < k {
                let value = from.load(row * k + column);
                let value = if beta == T::ZERO {
                    value
                } else {
                    value.add_scaled(beta, to.load(target + column))
                };
                to.store(target + column, value);
                column += u64::from(thread::block_dim_x());
            }
        }
    }
    as VectorScatter
}
