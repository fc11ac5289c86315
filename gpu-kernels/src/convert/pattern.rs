//! A sample of the pattern: its diagonals, and whether rows that are near each other read x near each other.

use super::diagonals::{DIAGONAL_TABLE, NO_DIAGONAL, fit};
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, DevicePtrMut, thread};

/// Rows of a sample of the pattern, at most.
pub const SAMPLED_ROWS: u32 = 256;

/// Columns between entries of x from which on they count as far from each other: many times what the rows of a warp read.
pub const FAR_COLUMNS: u32 = 512;

/// Pairs of words of a table and what is behind it.
pub const PATTERN_PAIRS: u32 = DIAGONAL_TABLE / 2 + 1;

/// Table of [`sample_pattern`], with the words behind it, and the memory that it takes.
#[inline(always)]
fn sample_table() -> (SharedArray<u32>, Pool) {
    let mut pool = Pool::new();
    (pool.array(2 * PATTERN_PAIRS), pool)
}

/// Shared memory of [`sample_pattern`].
pub(super) fn pattern_shared_bytes() -> u32 {
    sample_table().1.bytes()
}

/// Whether the middle entry of a row and that of the row a warp further are far from each other.
#[inline(always)]
fn is_far(row: u32, rows: u32, row_ptr: DevicePtr<u32>, col_ind: DevicePtr<u32>) -> bool {
    if rows - row <= WARP_SIZE {
        return false;
    }
    let middle = |row: u32| {
        let (start, end) = (row_ptr.load(row), row_ptr.load(row + 1));
        (start < end).then(|| col_ind.load(start + (end - start) / 2))
    };
    match [middle(row), middle(row + WARP_SIZE)] {
        [Some(here), Some(there)] => here.abs_diff(there) > FAR_COLUMNS,
        _ => false,
    }
}

/// The pattern of [`SAMPLED_ROWS`] rows at most, one in each of as many parts: their diagonals as [`FindDiagonals`] writes them, a table
/// and the word behind it, and how many of them are far from the row a warp further; in pairs. Rows and columns are less than 2^31.
/// The whole block calls, of at least as many threads.
#[inline(always)]
pub(super) fn sample_pattern(
    rows: u32,
    row_ptr: DevicePtr<u32>,
    col_ind: DevicePtr<u32>,
    seen: DevicePtrMut<[u32; 2]>,
) {
    let (table, _) = sample_table();
    let thread = thread::thread_idx_x();
    if thread < 2 * PATTERN_PAIRS {
        table.store(thread, if thread < DIAGONAL_TABLE { NO_DIAGONAL } else { 0 });
    }
    thread::sync_threads();
    // Not all at one distance: that may be a multiple of the unknowns of a node, whose first rows are alike.
    let part = (rows / SAMPLED_ROWS).max(1);
    let row = u64::from(thread * part) + u64::from((thread.wrapping_mul(0x9e37_79b9) >> 8) % part);
    let claim = |place, distance| table.atomic_compare_exchange(place, NO_DIAGONAL, distance);
    if thread < SAMPLED_ROWS && row < u64::from(rows) {
        let row = row as u32;
        if is_far(row, rows, row_ptr, col_ind) {
            table.atomic_add(DIAGONAL_TABLE + 1, 1);
        }
        if !fit(row, row_ptr, col_ind, claim) {
            table.atomic_exchange(DIAGONAL_TABLE, 1);
        }
    }
    thread::sync_threads();
    if thread < PATTERN_PAIRS {
        seen.store(thread, [table.load(2 * thread), table.load(2 * thread + 1)]);
    }
}
