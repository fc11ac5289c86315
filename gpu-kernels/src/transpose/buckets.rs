//! Stable sort of entries into buckets of `width` consecutive columns. There are three kernels:
//! bucket counts of each chunk of the entries, the scan of these counts over the chunks, and the
//! moves.
//!
//! Each chunk indexes its counters by the low bits of the bucket number (the "digit"). If the
//! columns of a chunk are close together, as in a banded matrix, few counters suffice for any
//! number of buckets. `mask` has these bits, or all bits if there is a counter for every bucket.

use super::bucket_width::Width;
use super::move_entries::{Source, cut_to_move, move_entries, rows_of};
use super::rows::{RowMarks, row_of};
use super::tile::{Mine, NO_COLUMN, TILE_ITEMS, Tile, for_items};
use crate::collective::{BLOCK_SCAN_WORDS, block_scan, warp_fold};
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, Real, fence, opaque, thread, warp};
use crate::kernel::kernel;

/// Warps of a block of [`BucketScan`].
pub const SCAN_WARPS: u32 = 32;

/// Shared memory of [`BucketCount`], in bytes.
pub fn bucket_count_bytes(digits: u32) -> u32 {
    (digits + 2 * WARP_SIZE) * size_of::<u32>() as u32
}

/// Shared memory of [`BucketScan`], in bytes.
pub fn bucket_scan_bytes() -> u32 {
    (WARP_SIZE * SCAN_WARPS + BLOCK_SCAN_WORDS) * size_of::<u32>() as u32
}

/// The smallest of `low` and the largest of `high` over the block, which calls; `words` has a word
/// for each warp twice.
#[inline(always)]
fn extent_of_block(mut low: u32, mut high: u32, words: SharedArray<u32>, at: u32) -> (u32, u32) {
    let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
    (low, high) = (warp_fold(low, u32::min), warp_fold(high, u32::max));
    if me.is_multiple_of(WARP_SIZE) {
        words.store(at + me / WARP_SIZE, low);
        words.store(at + WARP_SIZE + me / WARP_SIZE, high);
    }
    thread::sync_threads();
    let mut warp = 0;
    while warp < block / WARP_SIZE {
        low = low.min(words.load(at + warp));
        high = high.max(words.load(at + WARP_SIZE + warp));
        warp += 1;
    }
    (low, high)
}

kernel! {
    /// The smallest column of each chunk of `chunk` entries, and one after the largest.
    ///
    /// Grid: chunks, none empty; block: a multiple of 32; shared memory: [`bucket_count_bytes`] of 0.
    pub fn transpose_bucket_extent(
        entries: u32,
        chunk: u32,
        columns: DevicePtr<u32>,
        extents: DevicePtrMut<u32>,
    ) {
        let words: SharedArray<u32> = Pool::new().array(2 * WARP_SIZE);
        let begin = thread::block_idx_x() * chunk;
        let length = chunk.min(entries - begin);
        let (mut low, mut high) = (u32::MAX, 0);
        let mut k = thread::thread_idx_x();
        while k < length {
            let column = columns.load(begin + k);
            low = low.min(column);
            high = high.max(column);
            k += thread::block_dim_x();
        }
        let (low, high) = extent_of_block(low, high, words, 0);
        if thread::thread_idx_x() == 0 {
            extents.store_vector(2 * thread::block_idx_x(), [low, high + 1]);
        }
    }
    as BucketExtent
}

kernel! {
    /// `inter[block * digits + digit] =` entries of the block's chunk in the bucket with the digit,
    /// for the buckets in the chunk's window (first, one after the last), which it writes too.
    ///
    /// Grid: chunks of `chunk` entries (a multiple of 4), none empty; block: a multiple of 32;
    /// `digits`: a multiple of 8, at least as many as the window of any chunk has buckets, and a power
    /// of two unless `mask` has all bits; shared memory: [`bucket_count_bytes`].
    pub fn transpose_bucket_count(
        entries: u32,
        chunk: u32,
        digits: u32,
        mask: u32,
        width: u32,
        inverse: u32,
        columns: DevicePtr<u32>,
        inter: DevicePtrMut<u32>,
        windows: DevicePtrMut<u32>,
    ) {
        let counts: SharedArray<u32> = Pool::new().array(digits + 2 * WARP_SIZE);
        let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
        let mut digit = me;
        while digit < digits {
            counts.store(digit, 0);
            digit += block;
        }
        thread::sync_threads();
        let begin = thread::block_idx_x() * chunk;
        let length = chunk.min(entries - begin);
        let width = Width { width, inverse };
        let (mut low, mut high) = (u32::MAX, 0);
        let quads = length / 4;
        let mut quad = me;
        while quad < quads {
            let [a, b, c, d] = columns.load_vector::<4>(begin + 4 * quad).map(|k| width.bucket(k));
            low = low.min(a).min(b).min(c).min(d);
            high = high.max(a).max(b).max(c).max(d);
            // Neighbours are often in one bucket: fewer additions to one counter.
            let (ab, cd) = (a == b, c == d);
            if ab && cd && b == c {
                counts.atomic_add(a & mask, 4);
            } else {
                counts.atomic_add(a & mask, 1 + u32::from(ab));
                if !ab {
                    counts.atomic_add(b & mask, 1);
                }
                counts.atomic_add(c & mask, 1 + u32::from(cd));
                if !cd {
                    counts.atomic_add(d & mask, 1);
                }
            }
            quad += block;
        }
        let k = 4 * quads + me;
        if k < length {
            let bucket = width.bucket(columns.load(begin + k));
            low = low.min(bucket);
            high = high.max(bucket);
            counts.atomic_add(bucket & mask, 1);
        }
        // Its barrier is also the one after the counting.
        let (low, high) = extent_of_block(low, high, counts, digits);
        let row = inter.offset(u64::from(thread::block_idx_x()) * u64::from(digits));
        let mut bucket = low + me;
        while bucket <= high {
            row.store(bucket & mask, counts.load(bucket & mask));
            bucket += block;
        }
        if me == 0 {
            windows.store_vector(2 * thread::block_idx_x(), [low, high + 1]);
        }
    }
    as BucketCount
}

/// Adds up (and with `STORE` replaces by the sums before them, from `sum` on) the elements in column
/// `column`, one for each lane, of the rows `begin` to `end` of a matrix. The rows have elements in
/// the columns of their `window` only, and keep them at the column's bits that `mask` has, in
/// `width` words.
#[inline(always)]
fn walk_down<const STORE: bool>(
    matrix: DevicePtrMut<u32>,
    (width, mask): (u32, u32),
    (begin, end): (u32, u32),
    column: u32,
    window: &impl Fn(u32) -> [u32; 2],
    mut sum: u32,
) -> u32 {
    let lane = warp::lane_id();
    let (first, after) = (column - lane, column - lane + WARP_SIZE);
    let digit = column & mask;
    let mut start = begin;
    while start < end {
        // Each lane looks at the window of one row; only those with elements here are walked.
        let mut of_row = [0, 0];
        if start + lane < end {
            of_row = window(start + lane);
        }
        // Where all of them have all columns here, there is nothing to look up.
        let rows_here = WARP_SIZE.min(end - start);
        let whole = of_row[0] <= first && after <= of_row[1];
        if warp::all(FULL_MASK, whole || lane >= rows_here) {
            let mut column = matrix.offset(u64::from(start) * u64::from(width) + u64::from(digit));
            let mut row = 0;
            while row < rows_here {
                let here = |i: usize| row + (i as u32) < rows_here;
                let values: [u32; 8] = for_items!(i => {
                    column.load_if(here(i), i as u32 * width, 0)
                }; 0 1 2 3 4 5 6 7);
                // Addresses are found again instead of being kept in registers.
                let width = opaque(width);
                for_items!(i => {
                    if STORE {
                        column.store_if(here(i), i as u32 * width, sum);
                    }
                    sum += values[i];
                }; 0 1 2 3 4 5 6 7);
                column = column.offset(8 * width);
                row += 8;
            }
            start += WARP_SIZE;
            continue;
        }
        let mut rows = warp::ballot(FULL_MASK, of_row[0] < after && first < of_row[1]);
        while rows != 0 {
            // Loads that do not wait for each other.
            let slots: [(bool, u64); 8] = for_items!(_i => {
                let row = rows.trailing_zeros() % WARP_SIZE;
                let low = warp::shuffle_idx(FULL_MASK, of_row[0], row, WARP_SIZE);
                let after = warp::shuffle_idx(FULL_MASK, of_row[1], row, WARP_SIZE);
                let inside = rows != 0 && low <= column && column < after;
                rows &= rows.wrapping_sub(1);
                (inside, u64::from(start + row) * u64::from(width) + u64::from(digit))
            }; 0 1 2 3 4 5 6 7);
            let values: [u32; 8] = for_items!(i => {
                matrix.load_if(slots[i].0, slots[i].1, 0)
            }; 0 1 2 3 4 5 6 7);
            for_items!(i => {
                if STORE {
                    matrix.store_if(slots[i].0, slots[i].1, sum);
                }
                sum += values[i];
            }; 0 1 2 3 4 5 6 7);
        }
        start += WARP_SIZE;
    }
    sum
}

/// Replaces the elements in column `column`, one for each lane, of rows `first` to `end` of a matrix
/// by their exclusive prefix sums down the rows, and returns the column's total. A block of
/// [`SCAN_WARPS`] warps calls, each of which takes a part of the rows; `width` and `window` (first
/// column of a row, one after the last): see [`walk_down`].
#[inline(always)]
pub(super) fn scan_down(
    matrix: DevicePtrMut<u32>,
    width: (u32, u32),
    (first, end): (u32, u32),
    column: u32,
    sums: SharedArray<u32>,
    window: impl Fn(u32) -> [u32; 2],
) -> u32 {
    let (lane, my_warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    let part = (end - first).div_ceil(SCAN_WARPS);
    let begin = first + (my_warp * part).min(end - first);
    let rows = (begin, begin + part.min(end - begin));
    let sum = walk_down::<false>(matrix, width, rows, column, &window, 0);
    sums.store(my_warp * WARP_SIZE + lane, sum);
    thread::sync_threads();
    let (mut before, mut total) = (0, 0);
    let mut warp = 0;
    while warp < SCAN_WARPS {
        let sum = sums.load(warp * WARP_SIZE + lane);
        before += if warp < my_warp { sum } else { 0 };
        total += sum;
        warp += 1;
    }
    walk_down::<true>(matrix, width, rows, column, &window, before);
    total
}

kernel! {
    /// The vertical scan: replaces the counts of each bucket in `inter` (chunks x digits; only what
    /// lies in the windows of the chunks is there) by their exclusive prefix sums, and writes where
    /// the buckets start (buckets + 1 words). Further blocks look for the row of each chunk's first
    /// entry.
    ///
    /// Grid: buckets / 32, and if `rows` is not 0 (chunks / [`SCAN_WARPS`]), rounded up; block:
    /// [`SCAN_WARPS`] warps; `ticket`: 0, and 0 again afterwards; shared memory:
    /// [`bucket_scan_bytes`].
    pub fn transpose_bucket_scan(
        chunks: u32,
        buckets: u32,
        digits: u32,
        mask: u32,
        windows: DevicePtr<u32>,
        inter: DevicePtrMut<u32>,
        starts: DevicePtrMut<u32>,
        ticket: DevicePtrMut<u32>,
        rows: u32,
        chunk: u32,
        row_ptr: DevicePtr<u32>,
        chunk_rows: DevicePtrMut<u32>,
    ) {
        let mut pool = Pool::new();
        let (sums, of_block) = (pool.array(WARP_SIZE * SCAN_WARPS), pool.array(BLOCK_SCAN_WORDS));
        let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
        let strips = buckets.div_ceil(WARP_SIZE);
        let mut is_last = false;
        if thread::block_idx_x() >= strips {
            let chunk_index = (thread::block_idx_x() - strips) * SCAN_WARPS + me / WARP_SIZE;
            if chunk_index < chunks {
                let row = row_of(rows, row_ptr, chunk_index * chunk);
                if me.is_multiple_of(WARP_SIZE) {
                    chunk_rows.store(chunk_index, row);
                }
            }
        } else {
            let bucket = thread::block_idx_x() * WARP_SIZE + me % WARP_SIZE;
            let window = |chunk| windows.load_vector::<2>(2 * chunk);
            let width = (digits, mask);
            let total = scan_down(inter, width, (0, chunks), bucket, sums, window);
            if me < WARP_SIZE && bucket < buckets {
                starts.store(bucket, total);
            }
            // The block that comes last scans the totals of all.
            fence::device();
            thread::sync_threads();
            if me == 0 {
                of_block.store(0, ticket.atomic_add(0_u32, 1));
                fence::device();
            }
            thread::sync_threads();
            is_last = of_block.load(0) == strips - 1;
        }
        if is_last {
            let mut before = 0;
            let mut start = 0;
            while start < buckets {
                let first = start + 4 * me;
                let load = |i: u32| if first + i < buckets { starts.load(first + i) } else { 0 };
                let [a, b, c, d] = [load(0), load(1), load(2), load(3)];
                let (exclusive, total) = block_scan(a + b + c + d, of_block);
                let sum = before + exclusive;
                let store = |i: u32, sum: u32| {
                    if first + i < buckets {
                        starts.store(first + i, sum);
                    }
                };
                store(0, sum);
                store(1, sum + a);
                store(2, sum + a + b);
                store(3, sum + a + b + c);
                before += total;
                start += 4 * block;
            }
            if me == 0 {
                starts.store(buckets, before);
                ticket.store(0_u32, 0);
            }
        }
    }
    as BucketScan
}

/// CSR.
struct Compressed {
    columns: DevicePtr<u32>,
    marks: RowMarks,
}

impl Source for Compressed {
    #[inline(always)]
    fn column(&self, there: bool, first: u32, step: u32) -> u32 {
        self.columns.offset(first).load_if(there, step, NO_COLUMN)
    }

    #[inline(always)]
    fn rows(&mut self, tile: Tile, extent: (u32, u32), mine: Mine) -> [u32; TILE_ITEMS] {
        self.marks.of_tile(tile, extent, mine)
    }
}

/// Rows and columns as they are.
struct Triplets {
    columns: DevicePtr<u32>,
    rows: DevicePtr<u32>,
}

impl Source for Triplets {
    #[inline(always)]
    fn column(&self, there: bool, first: u32, step: u32) -> u32 {
        self.columns.offset(first).load_if(there, step, NO_COLUMN)
    }

    #[inline(always)]
    fn rows(&mut self, _: Tile, (begin, _): (u32, u32), mine: Mine) -> [u32; TILE_ITEMS] {
        rows_of(self.rows, begin, mine)
    }
}

/// How the entries are cut.
#[derive(Clone, Copy)]
struct Cut {
    entries: u32,
    chunk: u32,
    items: u32,
    digits: u32,
    mask: u32,
    width: Width,
}

/// Moves the block's chunk to the buckets.
#[inline(always)]
fn to_buckets<T: Real>(
    mut source: impl Source,
    cut: Cut,
    (inter, windows, starts): (DevicePtr<u32>, DevicePtr<u32>, DevicePtr<u32>),
    (keys, moved_rows): (DevicePtrMut<u16>, DevicePtrMut<u32>),
    values: Option<(DevicePtr<T>, DevicePtrMut<T>)>,
) {
    let Cut { entries, chunk, items, digits, mask, width } = cut;
    let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
    let (tile, cursors, deltas) = cut_to_move(&mut Pool::new(), digits, block);
    let my_chunk = thread::block_idx_x();
    let [low, end] = windows.load_vector::<2>(2 * my_chunk);
    let row = inter.offset(u64::from(my_chunk) * u64::from(digits));
    // Digits beyond the window have no entries, but a cursor like the others.
    let first = if mask == u32::MAX { 0 } else { low };
    let mut i = me;
    while i < cursors.length() {
        let bucket = first + i;
        let inside = low <= bucket && bucket < end;
        let digit = if i < digits { bucket & mask } else { i };
        let cursor = if inside { starts.load(bucket) + row.load(digit) } else { 0 };
        cursors.store(digit, cursor);
        i += block;
    }
    thread::sync_threads();
    let begin = my_chunk * chunk;
    move_entries(
        &mut source,
        (tile, cursors, deltas),
        (begin, begin + chunk.min(entries - begin), items),
        (
            |column| {
                let bucket = width.bucket(column);
                (bucket & mask) << 16 | (column - bucket * width.width)
            },
            digits,
        ),
        |there, target, key| keys.store_if(there, target, key),
        moved_rows,
        values,
    );
}

/// The entries of CSR of the block's chunk.
#[inline(always)]
fn compressed(
    rows: u32,
    row_ptr: DevicePtr<u32>,
    columns: DevicePtr<u32>,
    chunk_rows: DevicePtr<u32>,
) -> Compressed {
    let row = chunk_rows.load(thread::block_idx_x());
    Compressed { columns, marks: RowMarks { rows, row_ptr, row } }
}

kernel! {
    /// Moves the entries of CSR to their buckets: each one's column in the bucket, its row, its
    /// value.
    ///
    /// Grid and chunks: those of [`BucketCount`]; `chunk` a multiple of `items` x block, `items` at
    /// most [`TILE_ITEMS`]; block: a multiple of 32 up to 1024; shared memory:
    /// [`bucket_move_bytes`](crate::transpose::bucket_move_bytes).
    pub fn transpose_bucket_move<T: Real>(
        entries: u32,
        chunk: u32,
        items: u32,
        digits: u32,
        mask: u32,
        width: u32,
        inverse: u32,
        rows: u32,
        row_ptr: DevicePtr<u32>,
        columns: DevicePtr<u32>,
        values: DevicePtr<T>,
        inter: DevicePtr<u32>,
        windows: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        chunk_rows: DevicePtr<u32>,
        keys: DevicePtrMut<u16>,
        moved_rows: DevicePtrMut<u32>,
        moved_values: DevicePtrMut<T>,
    ) {
        to_buckets(
            compressed(rows, row_ptr, columns, chunk_rows),
            Cut { entries, chunk, items, digits, mask, width: Width { width, inverse } },
            (inter, windows, starts),
            (keys, moved_rows),
            Some((values, moved_values)),
        );
    }
    as BucketMove
}

kernel! {
    /// [`BucketMove`] without values.
    pub fn transpose_bucket_move_pattern(
        entries: u32,
        chunk: u32,
        items: u32,
        digits: u32,
        mask: u32,
        width: u32,
        inverse: u32,
        rows: u32,
        row_ptr: DevicePtr<u32>,
        columns: DevicePtr<u32>,
        inter: DevicePtr<u32>,
        windows: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        chunk_rows: DevicePtr<u32>,
        keys: DevicePtrMut<u16>,
        moved_rows: DevicePtrMut<u32>,
    ) {
        to_buckets::<f32>(
            compressed(rows, row_ptr, columns, chunk_rows),
            Cut { entries, chunk, items, digits, mask, width: Width { width, inverse } },
            (inter, windows, starts),
            (keys, moved_rows),
            None,
        );
    }
    as BucketMovePattern
}

kernel! {
    /// [`BucketMove`] of triplets.
    pub fn transpose_bucket_move_triplets<T: Real>(
        entries: u32,
        chunk: u32,
        items: u32,
        digits: u32,
        mask: u32,
        width: u32,
        inverse: u32,
        rows: DevicePtr<u32>,
        columns: DevicePtr<u32>,
        values: DevicePtr<T>,
        inter: DevicePtr<u32>,
        windows: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        keys: DevicePtrMut<u16>,
        moved_rows: DevicePtrMut<u32>,
        moved_values: DevicePtrMut<T>,
    ) {
        to_buckets(
            Triplets { columns, rows },
            Cut { entries, chunk, items, digits, mask, width: Width { width, inverse } },
            (inter, windows, starts),
            (keys, moved_rows),
            Some((values, moved_values)),
        );
    }
    as BucketMoveTriplets
}
