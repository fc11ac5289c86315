//! Row-major to column-major order and back, in tiles through shared memory.
//!
//! A tile has at most 32 columns and as many rows as make 2048 elements: both sides are read and
//! written in whole lines, also for few columns, whose rows lie next to each other.

use super::strides::Strides;
use crate::device::shared::Pool;
use crate::device::{DevicePtr, Number, Output, divide, thread};
use crate::kernel::kernel;

/// Columns of a tile at most.
pub const TILE_COLUMNS: u32 = 32;
/// Elements of a tile whose columns are a power of two.
const TILE_ELEMENTS: u32 = 2048;
/// Elements that a thread loads at once.
const AT_ONCE: usize = 4;

/// Rows of a tile of a matrix with k columns, a power of two.
#[cfg(not(target_arch = "nvptx64"))]
pub fn rearrange_tile_rows(k: u32) -> u32 {
    TILE_ELEMENTS / k.clamp(1, TILE_COLUMNS).next_power_of_two()
}

/// Bytes of dynamic shared memory of a block.
#[cfg(not(target_arch = "nvptx64"))]
pub fn rearrange_bytes<T: Number>(k: u32) -> u32 {
    let mut pool = Pool::new();
    pool.array::<T>(k.min(TILE_COLUMNS) * pitch(rearrange_tile_rows(k)));
    pool.bytes()
}

/// From a column of a tile to the next: one more than rows, against bank conflicts.
#[inline(always)]
fn pitch(tile_rows: u32) -> u32 {
    tile_rows + 1
}

kernel! {
    /// Copies a rows x k matrix from column-major to row-major order, or back where
    /// `from_row_major` is not 0; the elements are the sums of `target`. `tile_rows` is [`rearrange_tile_rows`]. Block: any,
    /// one-dimensional; grid: tiles over the rows x tiles over the columns; shared memory:
    /// [`rearrange_bytes`].
    pub fn spmm_rearrange<T: Number>(
        rows: u32,
        k: u32,
        tile_rows: u32,
        from_row_major: u32,
        source: DevicePtr<T>,
        target: Output<T>,
    ) {
        let tile = Pool::new().array::<T>(k.min(TILE_COLUMNS) * pitch(tile_rows));
        let (me, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        let first_row = thread::block_idx_x() * tile_rows;
        let first_column = thread::block_idx_y() * TILE_COLUMNS;
        let height = (rows - first_row).min(tile_rows);
        let width = (k - first_column).min(TILE_COLUMNS);
        let shift = tile_rows.trailing_zeros();
        let elements = width << shift;
        // The n-th place in row-major or in column-major order.
        let place = |n: u32, row_major: bool| {
            if !row_major {
                (n & (tile_rows - 1), n >> shift)
            } else if width.is_power_of_two() {
                (n >> width.trailing_zeros(), n & (width - 1))
            } else {
                let i = divide(n, width);
                (i, n - i * width)
            }
        };
        let at = |(i, j): (u32, u32), row_major: bool| {
            let strides = if row_major {
                Strides { row: u64::from(k), column: 1 }
            } else {
                Strides { row: 1, column: u64::from(rows) }
            };
            strides.index(first_row + i, first_column + j)
        };
        let from = from_row_major != 0;
        let mut first = me;
        while first < elements {
            // All loads before the first store.
            let loaded: [T; AT_ONCE] = core::array::from_fn(|u| {
                let n = first + u as u32 * threads;
                let (i, j) = place(n, from);
                if n < elements && i < height { source.load(at((i, j), from)) } else { T::ZERO }
            });
            for (u, &element) in loaded.iter().enumerate() {
                let n = first + u as u32 * threads;
                let (i, j) = place(n, from);
                if n < elements {
                    tile.store(j * pitch(tile_rows) + i, element);
                }
            }
            first += AT_ONCE as u32 * threads;
        }
        thread::sync_threads();
        let mut n = me;
        while n < elements {
            let (i, j) = place(n, !from);
            if i < height {
                target.store(at((i, j), !from), tile.load(j * pitch(tile_rows) + i));
            }
            n += threads;
        }
    }
    as Rearrange
}
