//! Conversion of CSR to the arrays of `csr-segmented-sum` ([`crate::spmv`]): row ends as bits, the
//! number of row ends before each warp, and entries in the order in which a warp reads them.

use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;
use crate::spmv::SEGMENT_THREADS;
use crate::spmv::csr_segmented_sum::{Cuts, GOES_ON, Ranks, STARTS_BEFORE};

/// Warps of a block.
const WARPS: u32 = SEGMENT_THREADS / WARP_SIZE;
const LOG_WARP: u32 = WARP_SIZE.trailing_zeros();

kernel! {
    /// 1 for each row that has entries, else 0.
    pub fn convert_segment_row_marks(
        rows: u32,
        row_ptr: DevicePtr<u32>,
        marks: DevicePtrMut<u32>,
    ) {
        let row = thread::index_1d();
        if row < rows {
            marks.store(row, u32::from(row_ptr.load(row) < row_ptr.load(row + 1)));
        }
    }
    as SegmentRowMarks
}

kernel! {
    /// The rows that have entries; `ranks` is the exclusive sum of their marks.
    pub fn convert_segment_rows(
        rows: u32,
        row_ptr: DevicePtr<u32>,
        ranks: DevicePtr<u32>,
        row_ids: DevicePtrMut<u32>,
    ) {
        let row = thread::index_1d();
        if row < rows && row_ptr.load(row) < row_ptr.load(row + 1) {
            row_ids.store(ranks.load(row), row);
        }
    }
    as SegmentRows
}

/// How many of `count` rows end at entry `place` or before.
#[inline(always)]
fn ends_until(ranks: Ranks, count: u32, place: u32) -> u32 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if ranks.bounds(middle).1 <= place {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

kernel! {
    /// The headers of `blocks` blocks and of the end: first entry, row ends before it, row ends
    /// inside, and which rows span blocks. A block begins where the last row before entry
    /// b x `step` ends, if that is at most `slack` entries before, and there otherwise. Grid: at
    /// least blocks + 1 threads.
    pub fn convert_segment_headers(
        blocks: u32,
        step: u32,
        slack: u32,
        entries: u32,
        count: u32,
        listed: u32,
        row_ids: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        headers: DevicePtrMut<[u32; 4]>,
    ) {
        let block = thread::index_1d();
        if block > blocks {
            return;
        }
        let ranks = Ranks { listed, row_ids, row_ptr };
        // First entry, row ends before it, and whether it is inside of a row.
        let cut = |block: u32| {
            let place = if block < blocks { block * step } else { entries };
            let ended = ends_until(ranks, count, place);
            let end = if ended > 0 { ranks.bounds(ended - 1).1 } else { 0 };
            if place - end <= slack { (end, ended, false) } else { (place, ended, true) }
        };
        let (start, ended, inside) = cut(block);
        let (_, ended_after, goes_on) = cut((block + 1).min(blocks));
        let mut spans = 0;
        if inside {
            spans |= STARTS_BEFORE;
        }
        if goes_on {
            spans |= GOES_ON;
        }
        headers.store(block, [start, ended, ended_after - ended, spans]);
    }
    as SegmentHeaders
}

kernel! {
    /// For each warp of each block how many rows end in the block before it. A warp has
    /// `warp_entries` entries. Grid: at least 8 x blocks threads.
    pub fn convert_segment_ranks(
        blocks: u32,
        warp_entries: u32,
        count: u32,
        listed: u32,
        row_ids: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        headers: DevicePtr<[u32; 4]>,
        warp_ranks: DevicePtrMut<u32>,
    ) {
        let piece = thread::index_1d();
        let block = piece / WARPS;
        if block >= blocks {
            return;
        }
        let [start, ended, ..] = headers.load(block);
        let [end, ..] = headers.load(block + 1);
        let place = (start + piece % WARPS * warp_entries).min(end);
        let ranks = Ranks { listed, row_ids, row_ptr };
        warp_ranks.store(piece, ends_until(ranks, count, place) - ended);
    }
    as SegmentRanks
}

kernel! {
    /// Sets the bit of the last entry of each row; a word has the flags of two threads, of
    /// 2^`log_entries` entries each. The words are 0 before.
    pub fn convert_segment_flags(
        count: u32,
        log_entries: u32,
        step: u32,
        listed: u32,
        row_ids: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        headers: DevicePtr<[u32; 4]>,
        flags: DevicePtrMut<u32>,
    ) {
        let rank = thread::index_1d();
        if rank < count {
            let last = Ranks { listed, row_ids, row_ptr }.bounds(rank).1 - 1;
            let block = Cuts { step, headers }.block_of(last);
            let place = last - headers.load(block)[0];
            let thread = block * SEGMENT_THREADS + (place >> log_entries);
            let v = place & ((1 << log_entries) - 1);
            // Different bits: their sum is their union.
            flags.atomic_add(thread / 2, 1 << (16 * (thread % 2) + v));
        }
    }
    as SegmentFlags
}

/// The entry in stored element `element`, if there is one: entry v of lane l of a warp is in stored
/// element 32 v + l.
#[inline(always)]
fn entry(element: u32, log_entries: u32, headers: DevicePtr<[u32; 4]>) -> Option<u32> {
    let log_warp = LOG_WARP + log_entries;
    let (tile, place) = (element >> log_warp, element & ((1 << log_warp) - 1));
    let block = tile / WARPS;
    let inside =
        ((tile % WARPS) << log_warp) + ((place % WARP_SIZE) << log_entries) + place / WARP_SIZE;
    let entry = headers.load(block)[0] + inside;
    (entry < headers.load(block + 1)[0]).then_some(entry)
}

kernel! {
    /// Columns and values of all stored elements; 0 where there is no entry. `with_values` 0 leaves
    /// the values out.
    pub fn convert_segment_entries<T: Number>(
        elements: u32,
        log_entries: u32,
        with_values: u32,
        headers: DevicePtr<[u32; 4]>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        to_columns: DevicePtrMut<u32>,
        to_values: DevicePtrMut<T>,
    ) {
        let element = thread::index_1d();
        if element < elements {
            let entry = entry(element, log_entries, headers);
            to_columns.store(element, entry.map_or(0, |k| col_ind.load(k)));
            if with_values != 0 {
                to_values.store(element, entry.map_or(T::ZERO, |k| values.load(k)));
            }
        }
    }
    as SegmentEntries
}

kernel! {
    /// [`SegmentEntries`] with values in single precision, which is to hold them exactly.
    pub fn convert_segment_entries_single<T: Real>(
        elements: u32,
        log_entries: u32,
        headers: DevicePtr<[u32; 4]>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        to_columns: DevicePtrMut<u32>,
        to_values: DevicePtrMut<f32>,
    ) {
        let element = thread::index_1d();
        if element < elements {
            let entry = entry(element, log_entries, headers);
            to_columns.store(element, entry.map_or(0, |k| col_ind.load(k)));
            to_values.store(element, entry.map_or(0.0, |k| values.load(k).single()));
        }
    }
    as SegmentEntriesSingle
}

kernel! {
    /// The values of [`SegmentEntries`] alone.
    pub fn convert_segment_values<T: Number>(
        elements: u32,
        log_entries: u32,
        headers: DevicePtr<[u32; 4]>,
        values: DevicePtr<T>,
        to_values: DevicePtrMut<T>,
    ) {
        let element = thread::index_1d();
        if element < elements {
            let entry = entry(element, log_entries, headers);
            to_values.store(element, entry.map_or(T::ZERO, |k| values.load(k)));
        }
    }
    as SegmentValues
}
