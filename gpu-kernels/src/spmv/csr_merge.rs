//! CSR SpMV by merge path: every thread gets the same number of steps, where a step is an entry or
//! the end of a row (own; after Merrill and Garland, "Merge-based parallel sparse matrix-vector
//! multiplication", SC'16).
//!
//! The path through the matrix consumes the end of row i as soon as all entries before it are
//! consumed. Tile t of a block has [`MERGE_ITEMS`] steps per thread and starts at the point
//! `tile_starts[t]` = (row, entry), which [`merge_tiles`] finds. A thread that ends rows stores
//! all of them but the first, to which it adds what the threads before it summed of that row (a
//! segmented scan over the block); what a tile has summed of the row that it leaves open goes to
//! `carries`, and a second kernel adds the carries to their rows. The same bits every time.

use super::entries::{Entries, Equal, Stored, products_to_shared};
use crate::collective::{warp_segmented_scan, warp_sum};
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, Output, Real, thread};
use crate::kernel::kernel;
use crate::search::partition_point;

/// Steps of a thread. Odd, so that threads that read at this distance use different banks.
pub const MERGE_ITEMS: u32 = 7;

/// The rows that the path has ended after `diagonal` steps, where `row_end(i)` is the number of
/// entries up to the end of row i.
#[inline(always)]
fn merge_search(diagonal: u32, rows: u32, entries: u32, row_end: impl Fn(u32) -> u32) -> u32 {
    let rows = diagonal.saturating_sub(entries)..diagonal.min(rows);
    partition_point(rows, |row| row_end(row) < diagonal - row)
}

/// The points (row, entry) where the tiles of blocks of `block` threads start, and the end:
/// tiles + 1 points.
///
/// # Panics
/// When rows + entries is not below 2^32.
#[cfg(not(target_arch = "nvptx64"))]
pub fn merge_tiles(row_ptr: &[u32], block: u32) -> Vec<[u32; 2]> {
    let rows = row_ptr.len().saturating_sub(1) as u32;
    let entries = row_ptr.last().copied().unwrap_or(0);
    let steps = rows.checked_add(entries).expect("rows + entries below 2^32");
    let tile = block * MERGE_ITEMS;
    (0..=steps.div_ceil(tile))
        .map(|t| {
            let diagonal = t.saturating_mul(tile).min(steps);
            let row = merge_search(diagonal, rows, entries, |i| row_ptr[i as usize + 1]);
            [row, diagonal - row]
        })
        .collect()
}

/// The arrays of a block in shared memory.
#[derive(Clone, Copy)]
struct Shared<T> {
    products: SharedArray<T>,
    row_ends: SharedArray<u32>,
    /// Of the warps: sums and whether they end a row.
    sums: SharedArray<T>,
    ends: SharedArray<u32>,
}

impl<T: Real> Shared<T> {
    #[inline(always)]
    fn cut(pool: &mut Pool, block: u32) -> Self {
        Self {
            products: pool.array(block * MERGE_ITEMS),
            row_ends: pool.array(block * MERGE_ITEMS),
            sums: pool.array(block / WARP_SIZE),
            ends: pool.array(block / WARP_SIZE),
        }
    }
}

/// Bytes of dynamic shared memory of [`CsrMerge`] and [`CsrMergeEqual`].
#[cfg(not(target_arch = "nvptx64"))]
pub fn csr_merge_shared_bytes<T: Real>(block: u32) -> u32 {
    let mut pool = Pool::new();
    Shared::<T>::cut(&mut pool, block);
    pool.bytes()
}

/// What the threads of the block before this one, back to the last that ended a row, summed after
/// it; and the same including this one.
#[inline(always)]
fn block_segmented_scan<T: Real>(shared: Shared<T>, sum: T, ended: bool) -> (T, T) {
    let me = thread::thread_idx_x();
    let (warp_in_block, lane) = (me / WARP_SIZE, me % WARP_SIZE);
    let ((mut exclusive, ended_before), (inclusive, any_end)) =
        warp_segmented_scan(sum, ended, lane);
    if lane == WARP_SIZE - 1 {
        shared.sums.store(warp_in_block, inclusive);
        shared.ends.store(warp_in_block, any_end.into());
    }
    thread::sync_threads();
    let mut carry = T::ZERO;
    for earlier in 0..warp_in_block {
        let sum = shared.sums.load(earlier);
        carry = if shared.ends.load(earlier) == 0 { carry + sum } else { sum };
    }
    if !ended_before {
        exclusive = carry + exclusive;
    }
    let inclusive = if ended { sum } else { exclusive + sum };
    (exclusive, inclusive)
}

#[inline(always)]
fn tile_product<T: Real>(
    tile_starts: DevicePtr<[u32; 2]>,
    row_ptr: DevicePtr<u32>,
    matrix: impl Entries<T>,
    x: DevicePtr<T>,
    carries: DevicePtrMut<T>,
    y: Output<T>,
) {
    let (me, threads, tile) =
        (thread::thread_idx_x(), thread::block_dim_x(), thread::block_idx_x());
    let shared = Shared::<T>::cut(&mut Pool::new(), threads);
    let [first_row, first] = tile_starts.load(tile);
    let [end_row, end] = tile_starts.load(tile + 1);
    let (rows, entries) = (end_row - first_row, end - first);
    products_to_shared(shared.products, matrix, x, first, entries);
    let mut i = me;
    while i < rows {
        shared.row_ends.store(i, row_ptr.load(first_row + i + 1) - first);
        i += threads;
    }
    thread::sync_threads();

    let steps = rows + entries;
    let diagonal = (me * MERGE_ITEMS).min(steps);
    let mut row = merge_search(diagonal, rows, entries, |i| shared.row_ends.load(i));
    let mut entry = diagonal - row;
    let (mut sum, mut head, mut head_row) = (T::ZERO, T::ZERO, 0);
    let mut ended = false;
    for _ in 0..MERGE_ITEMS.min(steps - diagonal) {
        if row < rows && shared.row_ends.load(row) <= entry {
            if ended {
                y.store(first_row + row, sum);
            } else {
                (head, head_row, ended) = (sum, first_row + row, true);
            }
            sum = T::ZERO;
            row += 1;
        } else {
            sum += shared.products.load(entry);
            entry += 1;
        }
    }
    let (before, with_this) = block_segmented_scan(shared, sum, ended);
    if ended {
        y.store(head_row, before + head);
    }
    if me == threads - 1 {
        carries.store(tile, with_this);
    }
}

kernel! {
    /// `csr-merge`, first pass: y without the carries. Block: a multiple of 32, that of
    /// [`merge_tiles`]; grid: one block per tile; shared memory: [`csr_merge_shared_bytes`].
    pub fn spmv_csr_merge<T: Real>(
        tile_starts: DevicePtr<[u32; 2]>,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        carries: DevicePtrMut<T>,
        y: Output<T>,
    ) {
        tile_product(tile_starts, row_ptr, Stored { col_ind, values }, x, carries, y);
    }
    as CsrMerge
}

kernel! {
    /// [`CsrMerge`] of a matrix whose entries all have the value `value`.
    pub fn spmv_csr_merge_equal<T: Real>(
        tile_starts: DevicePtr<[u32; 2]>,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        value: T,
        x: DevicePtr<T>,
        carries: DevicePtrMut<T>,
        y: Output<T>,
    ) {
        tile_product(tile_starts, row_ptr, Equal { col_ind, value }, x, carries, y);
    }
    as CsrMergeEqual
}

kernel! {
    /// `csr-merge`, second pass: adds the carries. Block: a multiple of 32; grid: at least one
    /// warp per tile.
    ///
    /// The first tile that carries into a row adds all of the row's carries, with its warp.
    pub fn spmv_csr_merge_carry<T: Real>(
        tiles: u32,
        rows: u32,
        tile_starts: DevicePtr<[u32; 2]>,
        carries: DevicePtr<T>,
        y: Output<T>,
    ) {
        let tile = thread::index_1d() / WARP_SIZE;
        let lane = thread::index_1d() % WARP_SIZE;
        if tile >= tiles {
            return;
        }
        let [row, _] = tile_starts.load(tile + 1);
        let [row_before, _] = tile_starts.load(tile);
        if row >= rows || (tile > 0 && row_before == row) {
            return;
        }
        let mut sum = T::ZERO;
        let mut other = tile + lane;
        while other < tiles && tile_starts.load(other + 1)[0] == row {
            sum += carries.load(other);
            other += WARP_SIZE;
        }
        let sum = warp_sum(FULL_MASK, sum, WARP_SIZE);
        if lane == 0 {
            y.add(row, sum);
        }
    }
    as CsrMergeCarry
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    #[test]
    fn the_path_through_the_sample() {
        // Rows of 2, 1 and 2 entries: e e R e R e e R.
        let row_ptr = [0, 2, 3, 5];
        let rows_ended: Vec<u32> =
            (0..=8).map(|d| merge_search(d, 3, 5, |i| row_ptr[i as usize + 1])).collect();
        assert_eq!(rows_ended, [0, 0, 0, 1, 1, 2, 2, 2, 3]);
    }

    #[test]
    fn tiles_of_rows_without_entries() {
        assert_eq!(merge_tiles(&[0; 301], 32), [[0, 0], [224, 0], [300, 0]]);
        assert_eq!(merge_tiles(&[0], 32), [[0, 0]]);
        assert_eq!(merge_tiles(&[0, 300], 32), [[0, 0], [0, 224], [1, 300]]);
    }
}
