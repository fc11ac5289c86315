//! Conversion of CSR to the column blocks of `csr-column-blocks` ([`crate::spmv`]).
//!
//! The columns of a row ascend, so that a part, the entries of a row in a column block, is found by binary search. Quads,
//! parts and padding are drawn in the file of the product.

use crate::device::warp::{WARP_SIZE, lane_id};
use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;
use crate::search::partition_point;
use crate::spmv::COLUMN_BLOCK_QUAD;

/// Entries of a lane whose columns are loaded at once: a warp may have many of one row.
const IN_FLIGHT: u32 = 4;

kernel! {
    /// Of the part of each row in each column block c, at `c * rows + row`: its first entry, or the one behind it where it has
    /// none, in `first_entries`, and its quads ([`COLUMN_BLOCK_QUAD`] entries), one at least, in `counts`. Block: a
    /// multiple of 32; grid: at least one warp per row.
    pub fn convert_column_block_counts(
        rows: u32,
        block_cols: u32,
        col_blocks: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        first_entries: DevicePtrMut<u32>,
        counts: DevicePtrMut<u32>,
    ) {
        let row = thread::index_1d() / WARP_SIZE;
        if row >= rows {
            return;
        }
        let (start, end) = (row_ptr.load(row), row_ptr.load(row + 1));
        let mut col_block = lane_id();
        while col_block < col_blocks {
            let cols = col_block * block_cols..(col_block + 1) * block_cols;
            let first = partition_point(start..end, |entry| col_ind.load(entry) < cols.start);
            let behind = partition_point(first..end, |entry| col_ind.load(entry) < cols.end);
            let part = u64::from(col_block) * u64::from(rows) + u64::from(row);
            first_entries.store(part, first);
            counts.store(part, (behind - first).div_ceil(COLUMN_BLOCK_QUAD).max(1));
            col_block += WARP_SIZE;
        }
    }
    as ColumnBlockCounts
}

/// A matrix, its column blocks, and where parts begin.
#[derive(Clone, Copy)]
struct Parts {
    rows: u32,
    block_cols: u32,
    col_blocks: u32,
    row_ptr: DevicePtr<u32>,
    col_ind: DevicePtr<u32>,
    first_entries: DevicePtr<u32>,
    starts: DevicePtr<u32>,
}

impl Parts {
    /// Stores the columns of this warp's share of a row, and calls `store(k, entry)` for each place k; `None` is padding.
    #[inline(always)]
    fn fill(self, col_offsets: DevicePtrMut<u16>, store: impl Fn(u32, Option<u32>)) {
        let Self { rows, block_cols, col_blocks, row_ptr, col_ind, first_entries, starts } = self;
        let row = thread::index_1d() / WARP_SIZE;
        if row >= rows {
            return;
        }
        let (start, end) = (row_ptr.load(row), row_ptr.load(row + 1));
        let part = |col_block| u64::from(col_block) * u64::from(rows) + u64::from(row);
        let lanes = thread::grid_dim_y() * WARP_SIZE;
        let lane = thread::block_idx_y() * WARP_SIZE + lane_id();
        let mut first = lane;
        while first < end - start {
            // Behind the end the last one again.
            let left = end - start - first;
            let columns =
                [0, 1, 2, 3].map(|i| col_ind.load(start + first + (i * lanes).min(left - 1)));
            for (i, column) in (0..).zip(columns) {
                if i * lanes < left {
                    let entry = start + first + i * lanes;
                    let col_block = column / block_cols.max(1);
                    let part = part(col_block);
                    let before = entry - first_entries.load(part);
                    let to = COLUMN_BLOCK_QUAD * starts.load(part) + before;
                    col_offsets.store(to, (column - col_block * block_cols) as u16);
                    store(to, Some(entry));
                }
            }
            if left <= IN_FLIGHT * lanes {
                break;
            }
            first += IN_FLIGHT * lanes;
        }
        let mut col_block = lane;
        while col_block < col_blocks {
            let next = col_block + 1;
            let behind = if next < col_blocks { first_entries.load(part(next)) } else { end };
            let count = behind - first_entries.load(part(col_block));
            let place = COLUMN_BLOCK_QUAD * starts.load(part(col_block));
            let padded = count.next_multiple_of(COLUMN_BLOCK_QUAD).max(COLUMN_BLOCK_QUAD);
            for to in place + count..place + padded {
                col_offsets.store(to, block_cols as u16);
                store(to, None);
            }
            col_block += lanes;
        }
    }
}

kernel! {
    /// Columns inside their block, and values, by column block, with the padding of [`crate::spmv`]; `starts` is the exclusive
    /// sum of the counts of [`ColumnBlockCounts`]. A column block has less than 2^16 columns, and there are less than 2^32
    /// entries with padding. Block: a multiple of 32; grid: at least one warp per row in x, any number of warps for it in y.
    pub fn convert_column_block_entries<T: Real>(
        rows: u32,
        block_cols: u32,
        col_blocks: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        first_entries: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        col_offsets: DevicePtrMut<u16>,
        to_values: DevicePtrMut<T>,
    ) {
        let parts = Parts { rows, block_cols, col_blocks, row_ptr, col_ind, first_entries, starts };
        parts.fill(col_offsets, |to, from| {
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
        first_entries: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        col_offsets: DevicePtrMut<u16>,
        to_values: DevicePtrMut<f32>,
    ) {
        let parts = Parts { rows, block_cols, col_blocks, row_ptr, col_ind, first_entries, starts };
        parts.fill(col_offsets, |to, from| {
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
        first_entries: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        col_offsets: DevicePtrMut<u16>,
    ) {
        let parts = Parts { rows, block_cols, col_blocks, row_ptr, col_ind, first_entries, starts };
        parts.fill(col_offsets, |_, _| ());
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
