//! Row-major to column-major order and back, in tiles through shared memory.
//!
//! A tile is 64 rows of at most 32 columns: both sides are read and written in whole lines, also
//! for few columns, whose rows lie next to each other.

use super::strides::Strides;
use crate::device::shared::Pool;
use crate::device::{DevicePtr, DevicePtrMut, Real, divide, thread};
use crate::kernel::kernel;

/// Rows of a tile.
pub const TILE_ROWS: u32 = 64;
/// Columns of a tile.
pub const TILE_COLUMNS: u32 = 32;
/// From a column of a tile to the next: one more than rows, against bank conflicts.
const PITCH: u32 = TILE_ROWS + 1;

/// Bytes of dynamic shared memory of a block.
#[cfg(not(target_arch = "nvptx64"))]
pub fn rearrange_bytes<T: Real>() -> u32 {
    let mut pool = Pool::new();
    pool.array::<T>(TILE_COLUMNS * PITCH);
    pool.bytes()
}

kernel! {
    /// Copies a rows x k matrix from column-major to row-major order, or back where
    /// `from_row_major` is not 0. Block: any, one-dimensional; grid: tiles over the rows x tiles
    /// over the columns; shared memory: [`rearrange_bytes`].
    pub fn spmm_rearrange<T: Real>(
        rows: u32,
        k: u32,
        from_row_major: u32,
        source: DevicePtr<T>,
        target: DevicePtrMut<T>,
    ) {
        let tile = Pool::new().array::<T>(TILE_COLUMNS * PITCH);
        let (me, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        let first_row = thread::block_idx_x() * TILE_ROWS;
        let first_column = thread::block_idx_y() * TILE_COLUMNS;
        let height = (rows - first_row).min(TILE_ROWS);
        let width = (k - first_column).min(TILE_COLUMNS);
        let row_major = Strides { row: u64::from(k), column: 1 };
        let column_major = Strides { row: 1, column: u64::from(rows) };
        // In the order of the row-major side, and in that of the column-major side.
        let by_rows = |n: u32| {
            let i = divide(n, width);
            (i, n - i * width)
        };
        let by_columns = |n: u32| (n % TILE_ROWS, n / TILE_ROWS);
        let mut n = me;
        while n < TILE_ROWS * width {
            let (i, j) = if from_row_major != 0 { by_rows(n) } else { by_columns(n) };
            if i < height {
                let side = if from_row_major != 0 { row_major } else { column_major };
                let at = side.index(first_row + i, first_column + j);
                tile.store(j * PITCH + i, source.load(at));
            }
            n += threads;
        }
        thread::sync_threads();
        let mut n = me;
        while n < TILE_ROWS * width {
            let (i, j) = if from_row_major != 0 { by_columns(n) } else { by_rows(n) };
            if i < height {
                let side = if from_row_major != 0 { column_major } else { row_major };
                let at = side.index(first_row + i, first_column + j);
                target.store(at, tile.load(j * PITCH + i));
            }
            n += threads;
        }
    }
    as Rearrange
}
