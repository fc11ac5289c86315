//! Conversion of CSR to the arrays of `csr-segmented-sum` ([`crate::spmv`]): row ends as bits, the
//! number of row ends before each warp, and entries padded to whole blocks.

use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, DevicePtrMut, divide, thread};
use crate::kernel::kernel;
use crate::search::partition_point;
use crate::spmv::SEGMENT_THREADS;
use crate::spmv::csr_segmented_sum::Header;

/// Warps of a block.
const WARPS: u32 = SEGMENT_THREADS / WARP_SIZE;
const LOG_THREADS: u32 = SEGMENT_THREADS.trailing_zeros();

/// Arrays that say which rows have entries.
#[derive(Clone, Copy)]
struct Ranks {
    /// 0 when every row has entries: then a row's rank is its number.
    listed: u32,
    row_ids: DevicePtr<u32>,
    row_ptr: DevicePtr<u32>,
}

impl Ranks {
    /// The first entry of a row, and the one after its last.
    #[inline(always)]
    fn bounds(self, rank: u32) -> (u32, u32) {
        let row = if self.listed == 0 { rank } else { self.row_ids.load(rank) };
        (self.row_ptr.load(row), self.row_ptr.load(row + 1))
    }
}

/// The block of an entry, where block b takes its entries from `step` b on or from up to a slack
/// before: from `start(b)`.
#[inline(always)]
fn block_of(entry: u32, step: u32, start: impl Fn(u32) -> u32) -> u32 {
    let block = divide(entry, step);
    block + u32::from(start(block + 1) <= entry)
}

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
    partition_point(0..count, |row| ranks.bounds(row).1 <= place)
}

kernel! {
    /// The headers of `blocks` blocks and of the end, packed; threads have 2^`log_entries` entries each. A
    /// block begins where the last row before entry b x `step` ends, if that is at most `slack`
    /// entries before, and there otherwise. Grid: at least blocks + 1 threads.
    pub fn convert_segment_headers(
        blocks: u32,
        log_entries: u32,
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
        let block_of = |entry: u32| block_of(entry, step, |block| cut(block).0);
        let (start, first_rank, inside) = cut(block);
        let (_, ended_after, leaves_open) = cut((block + 1).min(blocks));
        let (mut begins_before, mut goes_on) = (0, 0);
        if inside {
            begins_before = block - block_of(ranks.bounds(first_rank).0);
        }
        if leaves_open {
            goes_on = block_of(ranks.bounds(ended_after).1 - 1) - block;
        }
        let ranks = ended_after - first_rank;
        let header = Header { start, first_rank, ranks, begins_before, goes_on };
        headers.store(block, header.pack(log_entries));
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
            let block = block_of(last, step, |block| headers.load(block)[0]);
            let place = last - headers.load(block)[0];
            let thread = block * SEGMENT_THREADS + (place >> log_entries);
            let v = place & ((1 << log_entries) - 1);
            // Different bits: their sum is their union.
            flags.atomic_add(thread / 2, 1 << (16 * (thread % 2) + v));
        }
    }
    as SegmentFlags
}

/// The entry in stored element `element`, if there is one: a block's entries are in order, in as many
/// elements as its threads have, 2^`log_entries` each.
#[inline(always)]
fn entry(element: u32, log_entries: u32, headers: DevicePtr<[u32; 4]>) -> Option<u32> {
    let log_block = LOG_THREADS + log_entries;
    let (block, inside) = (element >> log_block, element & ((1 << log_block) - 1));
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
