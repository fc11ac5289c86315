//! Conversion of CSR to the column blocks of `csr-column-blocks` ([`crate::spmv`]), one warp per
//! row.
//!
//! The columns of a row may be in any order; inside a block the entries of a row keep their order.
//! The padding is drawn in the file of the product.

use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, Real, thread, warp};
use crate::kernel::kernel;
use crate::spmv::COLUMN_BLOCK_QUAD;

/// Calls `visit(column block, (entry, its column in the block), mask of the lanes with one)` for the
/// entries of a row, 32 at a time and column block by column block; the pair is `None` on lanes
/// without an entry there.
#[inline(always)]
fn for_entries(
    (start, end): (u32, u32),
    (block_cols, col_blocks): (u32, u32),
    col_ind: DevicePtr<u32>,
    mut visit: impl FnMut(u32, Option<(u32, u32)>, u32),
) {
    let lane = thread::thread_idx_x() % WARP_SIZE;
    let mut first = start;
    while first < end {
        let has = end - first > lane;
        let column = if has { col_ind.load(first + lane) } else { 0 };
        let mut first_col = 0;
        for col_block in 0..col_blocks {
            let inside = has && column >= first_col && column - first_col < block_cols;
            let mask = warp::ballot(FULL_MASK, inside);
            visit(col_block, inside.then(|| (first + lane, column - first_col)), mask);
            first_col += block_cols;
        }
        if end - first <= WARP_SIZE {
            break;
        }
        first += WARP_SIZE;
    }
}

kernel! {
    /// The entries of each row in each column block, with padding: `counts[c * rows + row]`. At most
    /// 32 column blocks. Block: a multiple of 32; grid: at least one warp per row.
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
        for_entries(bounds, (block_cols, col_blocks), col_ind, |col_block, _, mask| {
            if lane == col_block {
                count += mask.count_ones();
            }
        });
        if lane < col_blocks {
            let padded = count.next_multiple_of(COLUMN_BLOCK_QUAD);
            counts.store(u64::from(lane) * u64::from(rows) + u64::from(row), padded);
        }
    }
    as ColumnBlockCounts
}

#[inline(always)]
fn entries<T: Real>(
    (rows, block_cols, col_blocks): (u32, u32, u32),
    row_ptr: DevicePtr<u32>,
    col_ind: DevicePtr<u32>,
    values: DevicePtr<T>,
    places: DevicePtrMut<u32>,
    col_offsets: DevicePtrMut<u16>,
    store: impl Fn(u32, T),
) {
    let (row, lane) = (thread::index_1d() / WARP_SIZE, thread::index_1d() % WARP_SIZE);
    if row >= rows {
        return;
    }
    let bounds = (row_ptr.load(row), row_ptr.load(row + 1));
    let mut next = 0;
    let place = u64::from(lane) * u64::from(rows) + u64::from(row);
    if lane < col_blocks {
        next = places.load(place);
    }
    for_entries(bounds, (block_cols, col_blocks), col_ind, |col_block, entry, mask| {
        let first = warp::shuffle_idx(FULL_MASK, next, col_block, WARP_SIZE);
        if let Some((k, column)) = entry {
            let to = first + (mask & ((1 << lane) - 1)).count_ones();
            col_offsets.store(to, column as u16);
            store(to, values.load(k));
        }
        if lane == col_block {
            next += mask.count_ones();
        }
    });
    if lane < col_blocks {
        places.store(place, next);
        for padding in next..next.next_multiple_of(COLUMN_BLOCK_QUAD) {
            col_offsets.store(padding, 0);
            store(padding, T::ZERO);
        }
    }
}

kernel! {
    /// Columns inside their block, and values, by column block; `places` is the exclusive sum of what
    /// [`ColumnBlockCounts`] wrote, and becomes the ends of the entries. A column block has at most
    /// 2^16 columns. Launch: as there.
    pub fn convert_column_block_entries<T: Real>(
        rows: u32,
        block_cols: u32,
        col_blocks: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        places: DevicePtrMut<u32>,
        col_offsets: DevicePtrMut<u16>,
        to_values: DevicePtrMut<T>,
    ) {
        let shape = (rows, block_cols, col_blocks);
        let store = |k: u32, value: T| to_values.store(k, value);
        entries(shape, row_ptr, col_ind, values, places, col_offsets, store);
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
        places: DevicePtrMut<u32>,
        col_offsets: DevicePtrMut<u16>,
        to_values: DevicePtrMut<f32>,
    ) {
        let shape = (rows, block_cols, col_blocks);
        let store = |k: u32, value: T| to_values.store(k, value.single());
        entries(shape, row_ptr, col_ind, values, places, col_offsets, store);
    }
    as ColumnBlockEntriesSingle
}
