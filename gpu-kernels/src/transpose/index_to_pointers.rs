//! Histogram of indices, from which their exclusive scan makes pointers (R3 IV-F).
//!
//! The indices are divided into parts, each with a row of partial counts. A vertical scan adds the
//! rows: by a thread for each column, or along the rows of the transposed matrix.

use crate::collective::{BLOCK_SCAN_WORDS, block_scan};
use crate::device::shared::{Pool, SharedArray};
use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

/// Rows and columns that a block of [`TransposeDense`] takes.
pub const DENSE_TILE: u32 = 32;

/// Shared memory of [`TransposeDense`], in bytes.
pub fn transpose_dense_bytes() -> u32 {
    // A column more than the tile has: its columns lie in different banks.
    DENSE_TILE * (DENSE_TILE + 1) * size_of::<u32>() as u32
}

/// Shared memory of [`VerticalScanRows`], in bytes.
pub fn vertical_scan_rows_bytes() -> u32 {
    BLOCK_SCAN_WORDS * size_of::<u32>() as u32
}

kernel! {
    /// Adds the counts of each part to its row of `counts` (parts x width words, zero before).
    ///
    /// Grid: parts of `part` indices, the last one shorter; any block.
    pub fn transpose_histogram(
        length: u32,
        part: u32,
        width: u32,
        indices: DevicePtr<u32>,
        counts: DevicePtrMut<u32>,
    ) {
        let first = thread::block_idx_x() * part;
        let here = part.min(length - first);
        let row = counts.offset(u64::from(thread::block_idx_x()) * u64::from(width));
        let mut i = thread::thread_idx_x();
        while i < here {
            row.atomic_add(indices.load(first + i), 1_u32);
            i += thread::block_dim_x();
        }
    }
    as Histogram
}

kernel! {
    /// Histogram of indices that are the high halves of `keys`; otherwise as [`Histogram`].
    pub fn transpose_histogram_of_keys(
        length: u32,
        part: u32,
        width: u32,
        keys: DevicePtr<u64>,
        counts: DevicePtrMut<u32>,
    ) {
        let first = thread::block_idx_x() * part;
        let here = part.min(length - first);
        let row = counts.offset(u64::from(thread::block_idx_x()) * u64::from(width));
        let mut i = thread::thread_idx_x();
        while i < here {
            row.atomic_add((keys.load(first + i) >> 32) as u32, 1_u32);
            i += thread::block_dim_x();
        }
    }
    as HistogramOfKeys
}

kernel! {
    /// Vertical scan by columns: thread j replaces column j of `matrix` (height x width) by its
    /// exclusive prefix sums and writes the column's total. Grid: at least width threads.
    pub fn transpose_vertical_scan_columns(
        height: u32,
        width: u32,
        matrix: DevicePtrMut<u32>,
        totals: DevicePtrMut<u32>,
    ) {
        let column = thread::index_1d();
        if column < width {
            let mut sum = 0;
            let mut row = 0;
            while row < height {
                let slot = u64::from(row) * u64::from(width) + u64::from(column);
                let value = matrix.load(slot);
                matrix.store(slot, sum);
                sum += value;
                row += 1;
            }
            totals.store(column, sum);
        }
    }
    as VerticalScanColumns
}

kernel! {
    /// Transposes a dense `height` x `width` matrix, tile by tile. Grid: tiles in (x, y); block:
    /// ([`DENSE_TILE`], any divisor of it); shared memory: [`transpose_dense_bytes`].
    pub fn transpose_dense(
        height: u32,
        width: u32,
        matrix: DevicePtr<u32>,
        transposed: DevicePtrMut<u32>,
    ) {
        let tile: SharedArray<u32> = Pool::new().array(DENSE_TILE * (DENSE_TILE + 1));
        let (x, y) = (thread::thread_idx_x(), thread::thread_idx_y());
        let (left, top) = (thread::block_idx_x() * DENSE_TILE, thread::block_idx_y() * DENSE_TILE);
        let mut line = y;
        while line < DENSE_TILE {
            if top + line < height && left + x < width {
                let slot = u64::from(top + line) * u64::from(width) + u64::from(left + x);
                tile.store(line * (DENSE_TILE + 1) + x, matrix.load(slot));
            }
            line += thread::block_dim_y();
        }
        thread::sync_threads();
        let mut line = y;
        while line < DENSE_TILE {
            if left + line < width && top + x < height {
                let slot = u64::from(left + line) * u64::from(height) + u64::from(top + x);
                transposed.store(slot, tile.load(x * (DENSE_TILE + 1) + line));
            }
            line += thread::block_dim_y();
        }
    }
    as TransposeDense
}

kernel! {
    /// Vertical scan: replaces row `block` of `matrix` (`width` words a row) by its exclusive prefix
    /// sums, and writes the row's total.
    ///
    /// Grid: rows of the matrix; block: a multiple of 32; shared memory:
    /// [`vertical_scan_rows_bytes`].
    pub fn transpose_vertical_scan_rows(
        width: u32,
        matrix: DevicePtrMut<u32>,
        totals: DevicePtrMut<u32>,
    ) {
        let sums: SharedArray<u32> = Pool::new().array(BLOCK_SCAN_WORDS);
        let me = thread::thread_idx_x();
        let row = matrix.offset(u64::from(thread::block_idx_x()) * u64::from(width));
        let mut before = 0;
        let mut start = 0;
        while start < width {
            // Four neighbours a thread: fewer rounds of the block.
            let first = start + 4 * me;
            let values = [0, 1, 2, 3].map(|j| {
                if first + j < width { row.load(first + j) } else { 0 }
            });
            let [a, b, c, d] = values;
            let (exclusive, total) = block_scan(a + b + c + d, sums);
            let sum = before + exclusive;
            let put = |j: u32, sum: u32| {
                if first + j < width {
                    row.store(first + j, sum);
                }
            };
            put(0, sum);
            put(1, sum + a);
            put(2, sum + a + b);
            put(3, sum + a + b + c);
            before += total;
            start += 4 * thread::block_dim_x();
        }
        if me == 0 {
            totals.store(thread::block_idx_x(), before);
        }
    }
    as VerticalScanRows
}
