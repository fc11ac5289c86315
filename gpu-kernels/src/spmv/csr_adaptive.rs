//! CSR-Adaptive SpMV: blocks with about the same number of entries (own; after Greathouse and Daga,
//! "Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format", SC'14,
//! with a deterministic split of long rows).
//!
//! The host divides the rows into tiles ([`AdaptiveTiles`]), one per block:
//! - several rows, at most [`ADAPTIVE_TILE_ENTRIES`] entries (stream): all threads put products into
//!   shared memory, in order and coalesced, then each row is summed from there by as many lanes as the
//!   number of rows leaves for it;
//! - one longer row (vector): the whole block sums it;
//! - a part of a very long row: as before, but the sum goes to `partials`, and a second kernel adds
//!   the parts of each such row. No floating-point atomics: the same bits every time.

use super::csr_subwarp_per_row::strided_sum;
use super::entries::{Entries, Equal, Stored, products_to_shared};
use crate::collective::{block_sum, warp_sum};
use crate::device::shared::Pool;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, Output, Real, thread};
use crate::kernel::kernel;

/// Entries that a stream tile holds at most: the elements of shared memory.
pub const ADAPTIVE_TILE_ENTRIES: u32 = 2048;

/// How the rows are cut.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdaptiveTiles {
    /// One per block: first row, rows, first entry, entries. With 0 rows it is a part of a long
    /// row and the first number is its place among the partial sums.
    pub tiles: Vec<[u32; 4]>,
    /// One per long row: row, first partial sum, number of them, 0.
    pub long_rows: Vec<[u32; 4]>,
    /// Number of partial sums.
    pub partials: u32,
}

#[cfg(not(target_arch = "nvptx64"))]
impl AdaptiveTiles {
    /// Rows of a stream tile at most, so that rows without entries do not pile up in one block.
    const TILE_ROWS: u32 = 1024;
    /// Longer rows are shared by several blocks, each of which gets this many entries.
    const PART_ENTRIES: u32 = 8192;

    /// Cuts the rows that `row_ptr` (rows + 1, ascending from 0) describe, in O(rows).
    pub fn of(row_ptr: &[u32]) -> Self {
        let mut cut = Self::default();
        let rows = row_ptr.len().saturating_sub(1) as u32;
        let at = |row: u32| row_ptr[row as usize];
        let mut row = 0;
        while row < rows {
            let (first, length) = (at(row), at(row + 1) - at(row));
            if length > Self::PART_ENTRIES {
                let parts = length.div_ceil(Self::PART_ENTRIES);
                cut.long_rows.push([row, cut.partials, parts, 0]);
                for part in 0..parts {
                    let skipped = part * Self::PART_ENTRIES;
                    let entries = (length - skipped).min(Self::PART_ENTRIES);
                    cut.tiles.push([cut.partials + part, 0, first + skipped, entries]);
                }
                cut.partials += parts;
                row += 1;
                continue;
            }
            let mut end = row + 1;
            while end < rows
                && end - row < Self::TILE_ROWS
                && at(end + 1) - first <= ADAPTIVE_TILE_ENTRIES
            {
                end += 1;
            }
            cut.tiles.push([row, end - row, first, at(end) - first]);
            row = end;
        }
        cut
    }
}

/// Bytes of dynamic shared memory of [`CsrAdaptive`] and [`CsrAdaptiveEqual`].
#[cfg(not(target_arch = "nvptx64"))]
pub fn csr_adaptive_shared_bytes<T: Real>() -> u32 {
    let mut pool = Pool::new();
    pool.array::<T>(ADAPTIVE_TILE_ENTRIES);
    pool.bytes()
}

#[inline(always)]
fn tile_product<T: Real>(
    [first_row, rows, first, entries]: [u32; 4],
    row_ptr: DevicePtr<u32>,
    matrix: impl Entries<T>,
    x: DevicePtr<T>,
    partials: DevicePtrMut<T>,
    y: Output<T>,
) {
    let shared = Pool::new().array::<T>(ADAPTIVE_TILE_ENTRIES);
    let (me, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    if rows == 0 || entries > ADAPTIVE_TILE_ENTRIES {
        let sum = strided_sum(matrix, x, first + me, first + entries, threads);
        let sum = block_sum(shared, sum);
        if me == 0 {
            let target = if rows == 0 { partials.into() } else { y };
            target.store(first_row, sum);
        }
        return;
    }
    products_to_shared(shared, matrix, x, first, entries);
    thread::sync_threads();
    // The largest power of two, up to a warp, of which every row can have as many lanes.
    let mut log_lanes = 0;
    while log_lanes < 5 && rows << (log_lanes + 1) <= threads {
        log_lanes += 1;
    }
    let lanes = 1 << log_lanes;
    let lane = me & (lanes - 1);
    let groups = threads >> log_lanes;
    let mut base = 0;
    // The same number of turns for all threads: the lanes of a row meet in the shuffle.
    while base < rows {
        let row = base + (me >> log_lanes);
        let mut sum = T::ZERO;
        if row < rows {
            let end = row_ptr.load(first_row + row + 1) - first;
            let mut i = row_ptr.load(first_row + row) - first + lane;
            while i < end {
                sum += shared.load(i);
                i += lanes;
            }
        }
        sum = warp_sum(FULL_MASK, sum, lanes);
        if row < rows && lane == 0 {
            y.store(first_row + row, sum);
        }
        base += groups;
    }
}

kernel! {
    /// `csr-adaptive`, first pass. Block: a multiple of 32, one-dimensional; grid: one block per
    /// tile; shared memory: [`csr_adaptive_shared_bytes`].
    pub fn spmv_csr_adaptive<T: Real>(
        tiles: DevicePtr<[u32; 4]>,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        partials: DevicePtrMut<T>,
        y: Output<T>,
    ) {
        let tile = tiles.load(thread::block_idx_x());
        tile_product(tile, row_ptr, Stored { col_ind, values }, x, partials, y);
    }
    as CsrAdaptive
}

kernel! {
    /// [`CsrAdaptive`] of a matrix whose entries all have the value `value`.
    pub fn spmv_csr_adaptive_equal<T: Real>(
        tiles: DevicePtr<[u32; 4]>,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        value: T,
        x: DevicePtr<T>,
        partials: DevicePtrMut<T>,
        y: Output<T>,
    ) {
        let tile = tiles.load(thread::block_idx_x());
        tile_product(tile, row_ptr, Equal { col_ind, value }, x, partials, y);
    }
    as CsrAdaptiveEqual
}

kernel! {
    /// `csr-adaptive`, second pass, where there are long rows: adds the partial sums of each.
    /// One warp per long row; block: a multiple of 32.
    pub fn spmv_csr_adaptive_combine<T: Real>(
        count: u32,
        long_rows: DevicePtr<[u32; 4]>,
        partials: DevicePtr<T>,
        y: Output<T>,
    ) {
        let warp = thread::index_1d() / WARP_SIZE;
        let lane = thread::index_1d() % WARP_SIZE;
        if warp < count {
            let [row, first, parts, _] = long_rows.load(warp);
            let mut sum = T::ZERO;
            let mut part = lane;
            while part < parts {
                sum += partials.load(first + part);
                part += WARP_SIZE;
            }
            let sum = warp_sum(FULL_MASK, sum, WARP_SIZE);
            if lane == 0 {
                y.store(row, sum);
            }
        }
    }
    as CsrAdaptiveCombine
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_entry_once() {
        let lengths = [0, 3, 2048, 1, 2047, 2, 8193, 0, 30_000, 5000, 1, 0];
        let mut row_ptr = vec![0];
        for length in lengths {
            row_ptr.push(row_ptr[row_ptr.len() - 1] + length);
        }
        let cut = AdaptiveTiles::of(&row_ptr);
        let mut next = 0;
        for &[_, rows, first, entries] in &cut.tiles {
            assert_eq!(first, next);
            assert!(entries <= ADAPTIVE_TILE_ENTRIES || rows <= 1);
            next += entries;
        }
        assert_eq!(next, row_ptr[lengths.len()]);
        assert_eq!(cut.long_rows, [[6, 0, 2, 0], [8, 2, 4, 0]]);
        assert_eq!(cut.partials, 6);
        assert_eq!(AdaptiveTiles::of(&[0]), AdaptiveTiles::default());
        let empty = AdaptiveTiles::of(&[0; 3001]);
        assert_eq!(empty.tiles, [[0, 1024, 0, 0], [1024, 1024, 0, 0], [2048, 952, 0, 0]]);
    }
}
