//! Conversion of CSR to the column blocks of `csr-column-blocks` ([`crate::spmv`]), one warp per
//! row.
//!
//! The columns of a row may be in any order; inside a block the entries of a row keep their order.
//! Quads, parts and padding are drawn in the file of the product.

use crate::collective::warp_fold;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, thread, warp};
use crate::kernel::kernel;
use crate::spmv::COLUMN_BLOCK_QUAD;

/// Entries of a lane whose columns are loaded at once: a long row is one warp's.
const IN_FLIGHT: u32 = 4;

/// Calls `visit(column block, (entry, its column in the block), mask of the lanes with one)` for the
/// entries of a row, 32 at a time and column block by column block; the pair is `None` on lanes
/// without an entry there. Blocks before the first of these entries' and behind their last are left out.
#[inline(always)]
fn for_entries(
    (start, end): (u32, u32),
    block_cols: u32,
    col_ind: DevicePtr<u32>,
    mut visit: impl FnMut(u32, Option<(u32, u32)>, u32),
) {
    let lane = thread::thread_idx_x() % WARP_SIZE;
    let mut first = start;
    while first < end {
        // Behind the end the last one again.
        let left = end - first;
        let columns =
            [0, 1, 2, 3].map(|i| col_ind.load(first + (i * WARP_SIZE + lane).min(left - 1)));
        for (i, column) in (0..).zip(columns) {
            let entry = i * WARP_SIZE + lane;
            if i * WARP_SIZE < left {
                let block = column / block_cols.max(1);
                let of_entry = (first + entry, column - block * block_cols);
                let last = warp_fold(block, u32::max);
                let mut col_block = warp_fold(block, u32::min);
                while col_block <= last {
                    let inside = entry < left && block == col_block;
                    let mask = warp::ballot(FULL_MASK, inside);
                    visit(col_block, inside.then_some(of_entry), mask);
                    col_block += 1;
                }
            }
        }
        if left <= IN_FLIGHT * WARP_SIZE {
            break;
        }
        first += IN_FLIGHT * WARP_SIZE;
    }
}

kernel! {
    /// The quads ([`COLUMN_BLOCK_QUAD`] entries) of each row in each column block, one at least: `counts[c * rows + row]`. At
    /// most 32 column blocks. Block: a multiple of 32; grid: at least one warp per row.
    pub fn convert_column_block_counts(
        rows: u32,
        block_cols: u32,
        col_blocks: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        counts: DevicePtrMut<u32>,
    ) {
        let (row, lane) = (thread::index_1d() / WARP_SIZE, thread::index_1d() % WARP_SIZE);
        if row >= rows {
            return;
        }
        let bounds = (row_ptr.load(row), row_ptr.load(row + 1));
        // Lane c counts for column block c.
        let mut count = 0;
        for_entries(bounds, block_cols, col_ind, |col_block, _, mask| {
            if lane == col_block {
                count += mask.count_ones();
            }
        });
        if lane < col_blocks {
            let quads = count.div_ceil(COLUMN_BLOCK_QUAD).max(1);
            counts.store(u64::from(lane) * u64::from(rows) + u64::from(row), quads);
        }
    }
    as ColumnBlockCounts
}

/// `store(k, None)` is called for padding, `store(k, Some(entry))` for the others.
#[inline(always)]
fn entries(
    (rows, block_cols, col_blocks): (u32, u32, u32),
    row_ptr: DevicePtr<u32>,
    col_ind: DevicePtr<u32>,
    starts: DevicePtr<u32>,
    col_offsets: DevicePtrMut<u16>,
    store: impl Fn(u32, Option<u32>),
) {
    let (row, lane) = (thread::index_1d() / WARP_SIZE, thread::index_1d() % WARP_SIZE);
    if row >= rows {
        return;
    }
    let bounds = (row_ptr.load(row), row_ptr.load(row + 1));
    let mut next = 0;
    if lane < col_blocks {
        let start = starts.load(u64::from(lane) * u64::from(rows) + u64::from(row));
        next = COLUMN_BLOCK_QUAD * start;
    }
    let start = next;
    for_entries(bounds, block_cols, col_ind, |col_block, entry, mask| {
        let first = warp::shuffle_idx(FULL_MASK, next, col_block, WARP_SIZE);
        if let Some((k, column)) = entry {
            let to = first + (mask & ((1 << lane) - 1)).count_ones();
            col_offsets.store(to, column as u16);
            store(to, Some(k));
        }
        if lane == col_block {
            next += mask.count_ones();
        }
    });
    if lane < col_blocks {
        let end = next.next_multiple_of(COLUMN_BLOCK_QUAD).max(start + COLUMN_BLOCK_QUAD);
        for padding in next..end {
            col_offsets.store(padding, block_cols as u16);
            store(padding, None);
        }
    }
}

kernel! {
    /// Columns inside their block, and values, by column block, with the padding of [`crate::spmv`]; `starts` is the exclusive
    /// sum of what [`ColumnBlockCounts`] wrote. A column block has less than 2^16 columns, and there are less than 2^32
    /// entries with padding. Launch: as there.
    pub fn convert_column_block_entries<T: Real>(
        rows: u32,
        block_cols: u32,
        col_blocks: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        starts: DevicePtr<u32>,
        col_offsets: DevicePtrMut<u16>,
        to_values: DevicePtrMut<T>,
    ) {
        let shape = (rows, block_cols, col_blocks);
        entries(shape, row_ptr, col_ind, starts, col_offsets, |to, from| {
            to_values.store(to, from.map_or(T::ZERO, |k| values.load(k)));
        });
    }
    as ColumnBlockEntries
}

kernel! {
    /// [`ColumnBlockEntries`] with values in single precision, which is to hold them exactly.
    pub fn convert_column_block_entries_single<T: Real>(
        rows: u32,
        block_cols: u32,
        col_blocks: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        starts: DevicePtr<u32>,
        col_offsets: DevicePtrMut<u16>,
        to_values: DevicePtrMut<f32>,
    ) {
        let shape = (rows, block_cols, col_blocks);
        entries(shape, row_ptr, col_ind, starts, col_offsets, |to, from| {
            to_values.store(to, from.map_or(0.0, |k| values.load(k).single()));
        });
    }
    as ColumnBlockEntriesSingle
}

kernel! {
    /// [`ColumnBlockEntries`] without values.
    pub fn convert_column_block_columns(
        rows: u32,
        block_cols: u32,
        col_blocks: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        col_offsets: DevicePtrMut<u16>,
    ) {
        let shape = (rows, block_cols, col_blocks);
        entries(shape, row_ptr, col_ind, starts, col_offsets, |_, _| ());
    }
    as ColumnBlockColumns
}

kernel! {
    /// Where parts end: of the part of each of `parts` rows in a column block, whose quads begin at `starts`, with the end
    /// of the last behind them, bit q % 32 of `ends[q / 32]` for its last quad q, which was 0, and its number in `firsts` for each
    /// group of 32 quads whose first quad it has. Grid: at least one thread for each part.
    pub fn convert_column_block_ends(
        parts: u32,
        starts: DevicePtr<u32>,
        ends: DevicePtrMut<u32>,
        firsts: DevicePtrMut<u32>,
    ) {
        let part = thread::index_1d();
        if part >= parts {
            return;
        }
        let (start, end) = (starts.load(part), starts.load(part + 1));
        ends.atomic_add((end - 1) / WARP_SIZE, 1 << ((end - 1) % WARP_SIZE));
        for group in start.div_ceil(WARP_SIZE)..end.div_ceil(WARP_SIZE) {
            firsts.store(group, part);
        }
    }
    as ColumnBlockEnds
}
