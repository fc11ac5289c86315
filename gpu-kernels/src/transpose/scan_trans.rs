//! ScanTrans: histograms of parts of the entries (inter), places inside a part (intra), and scans
//! (R3 III-C; Wang, Liu, Hou, Feng, ICS 2016, algorithm 1).
//!
//! The paper's inter is (threads + 1) x columns, which no GPU with its 10^5 threads has room for.
//! Here the columns are first taken together to at most a few thousand ranges of 2^shift columns,
//! and the threads to blocks with a chunk of consecutive entries each:
//!
//! 1. inter[range][chunk] = entries of the chunk in the range, counted in shared memory
//! 2. the vertical scan: each row of inter by a block; its total is what the range holds
//! 3. each block moves its chunk to the ranges, in order, as records of 16 bytes
//!    ((column, row), value); the intra place of a record comes from counts of its warp
//! 4. each range is one block's, which counts its columns, scans them to the column pointers, and
//!    moves the records to their columns, in order.
//!
//! Least traffic for f64: 4 + 12 + 16 + 16 + 12 bytes an entry. inter takes ranges x chunks words.

use super::block_scan::{BLOCK_SCAN_WORDS, block_scan};
use super::place::{ITEMS, NO_DIGIT, Places, for_items};
use super::rows::{SEGMENT, row_of, rows_of_segment};
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

/// Shared memory of [`ScanTransCount`], in bytes.
pub fn scan_trans_count_bytes(ranges: u32) -> u32 {
    ranges * size_of::<u32>() as u32
}

/// Shared memory of [`VerticalScanRows`], in bytes.
pub fn vertical_scan_rows_bytes() -> u32 {
    BLOCK_SCAN_WORDS * size_of::<u32>() as u32
}

/// Shared memory of [`ScanTransToRanges`] with blocks of `block` threads, in bytes.
pub fn scan_trans_to_ranges_bytes(ranges: u32, block: u32) -> u32 {
    let mut pool = Pool::new();
    cut_to_ranges(&mut pool, ranges, block / WARP_SIZE);
    pool.bytes()
}

/// Shared memory of [`ScanTransToColumns`] for ranges of `width` columns, in bytes.
pub fn scan_trans_to_columns_bytes(width: u32, block: u32) -> u32 {
    let mut pool = Pool::new();
    cut_to_columns(&mut pool, width, block / WARP_SIZE);
    pool.bytes()
}

#[inline(always)]
fn cut_to_ranges(
    pool: &mut Pool,
    ranges: u32,
    warps: u32,
) -> (Places, SharedArray<u32>, SharedArray<u32>) {
    let places = Places::cut(pool, ranges, warps);
    (places, pool.array(SEGMENT * warps), pool.array(BLOCK_SCAN_WORDS))
}

#[inline(always)]
fn cut_to_columns(pool: &mut Pool, width: u32, warps: u32) -> (Places, SharedArray<u32>) {
    (Places::cut(pool, width, warps), pool.array(BLOCK_SCAN_WORDS))
}

/// Replaces `array[0..length]` by its exclusive prefix sums plus `first`; the block calls, the
/// array is visible to it before and after.
#[inline(always)]
fn scan_shared(array: SharedArray<u32>, length: u32, first: u32, sums: SharedArray<u32>) {
    let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
    let mut before = first;
    let mut start = 0;
    while start < length {
        let index = start + me;
        let value = if index < length { array.load(index) } else { 0 };
        let (exclusive, total) = block_scan(value, sums);
        if index < length {
            array.store(index, before + exclusive);
        }
        before += total;
        start += block;
    }
    thread::sync_threads();
}

kernel! {
    /// Step 1 of ScanTrans: `inter[range * chunks + block] =` entries of the block's chunk in the
    /// range; and the row of the first entry of every segment ([`SEGMENT`] entries).
    ///
    /// Grid: chunks of `chunk` entries (a multiple of [`SEGMENT`]), the last one shorter but not
    /// empty; any block; shared memory: [`scan_trans_count_bytes`].
    pub fn transpose_scan_trans_count(
        rows: u32,
        entries: u32,
        chunk: u32,
        ranges: u32,
        shift: u32,
        pointers: DevicePtr<u32>,
        col_indices: DevicePtr<u32>,
        inter: DevicePtrMut<u32>,
        segment_rows: DevicePtrMut<u32>,
    ) {
        let counts: SharedArray<u32> = Pool::new().array(ranges);
        let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
        let mut range = me;
        while range < ranges {
            counts.store(range, 0);
            range += block;
        }
        thread::sync_threads();
        let begin = thread::block_idx_x() * chunk;
        let length = chunk.min(entries - begin);
        let quads = length / 4;
        let mut quad = me;
        while quad < quads {
            for column in col_indices.load_vector::<4>(begin + 4 * quad) {
                counts.atomic_add(column >> shift, 1);
            }
            quad += block;
        }
        let mut k = 4 * quads + me;
        while k < length {
            counts.atomic_add(col_indices.load(begin + k) >> shift, 1);
            k += block;
        }
        let mut segment = me * SEGMENT;
        while segment < length {
            let entry = begin + segment;
            segment_rows.store(entry / SEGMENT, row_of(rows, pointers, entry));
            segment += block * SEGMENT;
        }
        thread::sync_threads();
        let mut range = me;
        while range < ranges {
            inter.store(
                u64::from(range) * u64::from(thread::grid_dim_x()) + u64::from(thread::block_idx_x()),
                counts.load(range),
            );
            range += block;
        }
    }
    as ScanTransCount
}

kernel! {
    /// Vertical scan: replaces row `block` of `matrix` (`width` words a row) by its exclusive prefix
    /// sums, and writes the row's total.
    ///
    /// Grid: rows of the matrix; block: a multiple of 32; shared memory:
    /// [`vertical_scan_rows_bytes`].
    pub fn transpose_vertical_scan_rows(
        width: u32,
        matrix: DevicePtrMut<u32>,
        totals: DevicePtrMut<u32>,
    ) {
        let sums: SharedArray<u32> = Pool::new().array(BLOCK_SCAN_WORDS);
        let me = thread::thread_idx_x();
        let row = matrix.offset(u64::from(thread::block_idx_x()) * u64::from(width));
        let mut before = 0;
        let mut start = 0;
        while start < width {
            // Four neighbours a thread: fewer rounds of the block.
            let first = start + 4 * me;
            let values = [0, 1, 2, 3].map(|j| {
                if first + j < width { row.load(first + j) } else { 0 }
            });
            let [a, b, c, d] = values;
            let (exclusive, total) = block_scan(a + b + c + d, sums);
            let sum = before + exclusive;
            let put = |j: u32, sum: u32| {
                if first + j < width {
                    row.store(first + j, sum);
                }
            };
            put(0, sum);
            put(1, sum + a);
            put(2, sum + a + b);
            put(3, sum + a + b + c);
            before += total;
            start += 4 * thread::block_dim_x();
        }
        if me == 0 {
            totals.store(thread::block_idx_x(), before);
        }
    }
    as VerticalScanRows
}

kernel! {
    /// Step 3 of ScanTrans: moves the entries of the block's chunk to their ranges, as records
    /// `[column << 32 | row, value]`; writes where the ranges start (ranges + 1 words).
    ///
    /// Grid and chunk: those of [`ScanTransCount`]; block: a multiple of 32 up to 1024; shared
    /// memory: [`scan_trans_to_ranges_bytes`].
    pub fn transpose_scan_trans_to_ranges<T: Real>(
        rows: u32,
        entries: u32,
        chunk: u32,
        ranges: u32,
        shift: u32,
        pointers: DevicePtr<u32>,
        col_indices: DevicePtr<u32>,
        values: DevicePtr<T>,
        inter: DevicePtr<u32>,
        totals: DevicePtr<u32>,
        segment_rows: DevicePtr<u32>,
        range_starts: DevicePtrMut<u32>,
        records: DevicePtrMut<u64>,
    ) {
        let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
        let (lane, my_warp) = (me % WARP_SIZE, me / WARP_SIZE);
        let (places, marks, sums) =
            cut_to_ranges(&mut Pool::new(), ranges, block / WARP_SIZE);
        let (chunks, my_chunk) = (thread::grid_dim_x(), thread::block_idx_x());
        let mut range = me;
        while range < ranges {
            places.cursors.store(range, totals.load(range));
            range += block;
        }
        thread::sync_threads();
        scan_shared(places.cursors, ranges, 0, sums);
        let mut range = me;
        while range < ranges {
            let start = places.cursors.load(range);
            let before = inter.load(u64::from(range) * u64::from(chunks) + u64::from(my_chunk));
            places.cursors.store(range, start + before);
            if my_chunk == 0 {
                range_starts.store(range, start);
            }
            range += block;
        }
        if my_chunk == 0 && me == 0 {
            range_starts.store(ranges, entries);
        }
        thread::sync_threads();

        let begin = my_chunk * chunk;
        let end = begin + chunk.min(entries - begin);
        let mut tile = 0;
        while tile < end - begin {
            // The warp's segment; empty past the end.
            let first = (begin + tile).saturating_add(my_warp * SEGMENT).min(end);
            let length = end - first;
            let offset = |i: usize| i as u32 * WARP_SIZE + lane;
            let columns = for_items!(i => {
                if offset(i) < length { col_indices.load(first + offset(i)) } else { NO_DIGIT }
            });
            let mut segment_row = 0;
            if length > 0 {
                segment_row = segment_rows.load(first / SEGMENT);
            }
            let row = rows_of_segment(
                rows, pointers, (first, end), segment_row, marks, my_warp * SEGMENT,
            );
            let digits = for_items!(i => {
                if columns[i] == NO_DIGIT { NO_DIGIT } else { columns[i] >> shift }
            });
            let targets = places.of_tile(length, digits);
            let words = for_items!(i => {
                if offset(i) < length { values.load(first + offset(i)).to_word() } else { 0 }
            });
            for_items!(i => if columns[i] != NO_DIGIT {
                let key = (u64::from(columns[i]) << 32) | u64::from(row[i]);
                records.store_vector(2 * u64::from(targets[i]), [key, words[i]]);
            });
            tile = tile.saturating_add(block * ITEMS as u32);
        }
    }
    as ScanTransToRanges
}

kernel! {
    /// Step 4 of ScanTrans: counts the columns of the block's range, scans the counts to the column
    /// pointers and moves the records to their columns.
    ///
    /// Grid: ranges; block: a multiple of 32 up to 1024; shared memory:
    /// [`scan_trans_to_columns_bytes`] of 2^`shift` columns.
    pub fn transpose_scan_trans_to_columns<T: Real>(
        cols: u32,
        shift: u32,
        range_starts: DevicePtr<u32>,
        records: DevicePtr<u64>,
        column_pointers: DevicePtrMut<u32>,
        row_indices: DevicePtrMut<u32>,
        values: DevicePtrMut<T>,
    ) {
        let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
        let (lane, my_warp) = (me % WARP_SIZE, me / WARP_SIZE);
        let first_column = thread::block_idx_x() << shift;
        let width = (1_u32 << shift).min(cols - first_column);
        let (places, sums) =
            cut_to_columns(&mut Pool::new(), 1 << shift, block / WARP_SIZE);
        let begin = range_starts.load(thread::block_idx_x());
        let end = range_starts.load(thread::block_idx_x() + 1);
        let mut column = me;
        while column < width {
            places.cursors.store(column, 0);
            column += block;
        }
        thread::sync_threads();
        let mut k = me;
        while k < end - begin {
            let key = records.load(2 * u64::from(begin + k));
            places.cursors.atomic_add((key >> 32) as u32 - first_column, 1);
            k = k.saturating_add(block);
        }
        thread::sync_threads();
        scan_shared(places.cursors, width, begin, sums);
        let mut column = me;
        while column < width {
            column_pointers.store(first_column + column, places.cursors.load(column));
            column += block;
        }
        if me == 0 && first_column + width == cols {
            column_pointers.store(cols, end);
        }
        let mut tile = 0;
        while tile < end - begin {
            let first = (begin + tile).saturating_add(my_warp * SEGMENT).min(end);
            let length = end - first;
            let offset = |i: usize| i as u32 * WARP_SIZE + lane;
            let keys = for_items!(i => {
                if offset(i) < length { records.load(2 * u64::from(first + offset(i))) } else { u64::MAX }
            });
            let digits = for_items!(i => {
                if keys[i] == u64::MAX { NO_DIGIT } else { (keys[i] >> 32) as u32 - first_column }
            });
            let targets = places.of_tile(length, digits);
            let words = for_items!(i => {
                if offset(i) < length { records.load(2 * u64::from(first + offset(i)) + 1) } else { 0 }
            });
            for_items!(i => if keys[i] != u64::MAX {
                row_indices.store(targets[i], keys[i] as u32);
                values.store(targets[i], T::from_word(words[i]));
            });
            tile = tile.saturating_add(block * ITEMS as u32);
        }
    }
    as ScanTransToColumns
}
