//! Conversion of CSR to sliced BSR for `bsr-subwarp-per-row` ([`crate::spmv`]) and `bsr-row-split`
//! ([`crate::spmm`]): dense square blocks, the block rows of a warp together.
//!
//! Slice s has 32 / P block rows, of P lanes each. Its block rows are sorted by their number of blocks, the
//! longest first; `order[i]` has the number of blocks of the block row at position i, and in the low 5 bits which
//! one of its slice it is. Block k of the block row at position r of a slice is block k / P of lane
//! r P + k mod P. Block j of lane l of slice s is at `starts[s]` + j, lane l: its first column in `first_cols`,
//! its mask in `masks`, and the element in row r and column c of b in `values`, in the plane `(starts[s] + j) b^2 + c b + r`
//! of 32 elements. A mask has bit r b + c for each entry. There are none where every block is full.
//!
//! The steps are: blocks of each block row, the order of a slice, a scan of the widths, columns and masks, values.

use super::stats::SURVEY_BLOCK;
use crate::collective::warp_fold;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, Number, divide, thread, warp};
use crate::kernel::kernel;
use crate::search::partition_point;
use crate::spmv::sellp::LOG_WARP;

/// Rows and columns of a block, at most: a mask has a bit for each element.
pub const MOST_BLOCK_SIZE: u32 = 8;
const MOST: usize = MOST_BLOCK_SIZE as usize;

/// Bits of [`SliceOrder`]'s words that say which block row of its slice it is.
pub(crate) const LOG_PLACES: u32 = LOG_WARP;

/// The blocks of a block row, one after the other: a merge of its rows, whose columns ascend.
struct BlockRow {
    size: u32,
    col_ind: DevicePtr<u32>,
    /// The next entry of each row, and the end of its entries.
    next: [u32; MOST],
    end: [u32; MOST],
}

/// A block: its first column and its mask.
type Block = (u32, u64);

/// Calls a method for each row: with constant numbers the arrays stay in registers.
macro_rules! each_row {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        $self.$method::<0>($($argument),*);
        $self.$method::<1>($($argument),*);
        $self.$method::<2>($($argument),*);
        $self.$method::<3>($($argument),*);
        $self.$method::<4>($($argument),*);
        $self.$method::<5>($($argument),*);
        $self.$method::<6>($($argument),*);
        $self.$method::<7>($($argument),*);
    };
}

impl BlockRow {
    #[inline(always)]
    fn new(
        block_row: u32,
        (rows, size): (u32, u32),
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
    ) -> Self {
        let mut new = Self { size, col_ind, next: [0; MOST], end: [0; MOST] };
        let first_row = block_row * size;
        each_row!(new.begin_row(first_row, size.min(rows - first_row), row_ptr));
        new
    }

    #[inline(always)]
    fn begin_row<const R: usize>(&mut self, first_row: u32, rows: u32, row_ptr: DevicePtr<u32>) {
        if (R as u32) < rows {
            self.next[R] = row_ptr.load(first_row + R as u32);
            self.end[R] = row_ptr.load(first_row + R as u32 + 1);
        }
    }

    #[inline(always)]
    fn first_col<const R: usize>(&self, least: &mut u32) {
        if self.next[R] < self.end[R] {
            *least = self.col_ind.load(self.next[R]).min(*least);
        }
    }

    #[inline(always)]
    fn take<const R: usize>(&mut self, first_col: u32, mask: &mut u64) {
        while self.next[R] < self.end[R] {
            let col = self.col_ind.load(self.next[R]);
            if col >= first_col + self.size {
                break;
            }
            *mask |= 1 << (R as u32 * self.size + col - first_col);
            self.next[R] += 1;
        }
    }

    /// The next block; none behind the last one.
    #[inline(always)]
    fn next(&mut self) -> Option<Block> {
        let mut least = u32::MAX;
        each_row!(self.first_col(&mut least));
        if least == u32::MAX {
            return None;
        }
        let (first_col, mut mask) = (divide(least, self.size) * self.size, 0);
        each_row!(self.take(first_col, &mut mask));
        Some((first_col, mask))
    }
}

/// Block rows of each size that [`Survey`](super::Survey) reads.
pub const BSR_SAMPLES: u32 = 32;
/// Entries of a block row that a sample reads, about: so many that the left end of a band counts for little.
const SAMPLE_ENTRIES: u32 = 1024;

/// The first entries of a row, in the columns below a bound.
#[derive(Clone, Copy)]
struct SampledRow {
    start: u32,
    end: u32,
}

impl SampledRow {
    /// Whether an entry is in these columns, which the entries of a row have in ascending order; the one at `place` of the
    /// row may well be.
    #[inline(always)]
    fn has(self, cols: core::ops::Range<u32>, place: u32, col_ind: DevicePtr<u32>) -> bool {
        if place < self.end - self.start && cols.contains(&col_ind.load(self.start + place)) {
            return true;
        }
        let first = partition_point(self.start..self.end, |i| col_ind.load(i) < cols.start);
        first < self.end && col_ind.load(first) < cols.end
    }
}

/// The blocks of `size` columns that the entries of the `rows` are in and those of no row before, each counted by the lane of
/// its first entry, and the entries that this lane has seen. Only the columns below `cols` count. The whole warp calls.
#[inline(always)]
fn count_blocks(
    size: u32,
    rows: core::ops::Range<u32>,
    row: impl Fn(u32) -> SampledRow,
    cols: u32,
    col_ind: DevicePtr<u32>,
) -> (u32, u32) {
    let (mut blocks, mut entries) = (0, 0);
    for r in rows {
        let SampledRow { start, end } = row(r);
        let mut entry = start + warp::lane_id();
        while entry < end {
            let col = col_ind.load(entry);
            if col < cols {
                let first_col = divide(col, size) * size;
                let repeated = entry > start && col_ind.load(entry - 1) >= first_col;
                let of_block = first_col..first_col.saturating_add(size);
                let seen_before =
                    |before: u32| row(before).has(of_block.clone(), entry - start, col_ind);
                let mut new = !repeated;
                let mut before = 0;
                while new && before < r {
                    new = !seen_before(before);
                    before += 1;
                }
                blocks += u32::from(new);
                entries += 1;
            }
            entry += WARP_SIZE;
        }
    }
    (blocks, entries)
}

/// Blocks and entries of one block row, of which a thread returns its share: of the `sample`-th of those for all sizes, which
/// are the bytes of `sizes`; of each size [`BSR_SAMPLES`], evenly spread. A warp for each row of it: a lane looks for the block
/// of its entry in the rows before.
#[inline(always)]
pub(super) fn sampled_blocks(
    sample: u32,
    rows: u32,
    sizes: u64,
    row_ptr: DevicePtr<u32>,
    col_ind: DevicePtr<u32>,
) -> [u32; 2] {
    const { assert!(SURVEY_BLOCK / WARP_SIZE == MOST_BLOCK_SIZE) };
    let of_block = thread::thread_idx_x() / WARP_SIZE;
    let size = (sizes >> (sample / BSR_SAMPLES * 8)) as u32 & 0xff;
    let block_rows = divide(rows, size);
    let stride = (block_rows / BSR_SAMPLES).max(1);
    let block_row = sample % BSR_SAMPLES * stride;
    if block_row >= block_rows || of_block >= size {
        return [0; 2];
    }
    let first_row = block_row * size;
    let most = SAMPLE_ENTRIES / size;
    let row = |r: u32| {
        let start = row_ptr.load(first_row + r);
        SampledRow { start, end: row_ptr.load(first_row + r + 1).min(start.saturating_add(most)) }
    };
    // Beyond the last columns of rows that are cut, blocks would miss entries.
    let mut cols = u32::MAX;
    for r in 0..size {
        let SampledRow { start, end } = row(r);
        if end - start == most {
            cols = (divide(col_ind.load(end - 1), size) * size).min(cols);
        }
    }
    count_blocks(size, of_block..of_block + 1, row, cols, col_ind).into()
}

kernel! {
    /// The number of blocks of each block row, and of all, in `total`, which is 0 before. A warp for each block row, in
    /// turns: any grid; block: a multiple of 32.
    pub fn convert_bsr_counts(
        rows: u32,
        size: u32,
        block_rows: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        counts: DevicePtrMut<u32>,
        total: DevicePtrMut<u32>,
    ) {
        let lane = warp::lane_id();
        let warps = thread::grid_dim_x() * (thread::block_dim_x() / WARP_SIZE);
        let mut block_row = thread::index_1d() / WARP_SIZE;
        let mut of_warp = 0;
        while block_row < block_rows {
            let first_row = block_row * size;
            let rows = size.min(rows - first_row);
            let row = |r: u32| {
                let row = first_row + r;
                SampledRow { start: row_ptr.load(row), end: row_ptr.load(row + 1) }
            };
            // Rows with the same columns have the blocks of the first.
            let first = row(0);
            let length = first.end - first.start;
            let mut same = true;
            for r in 1..rows {
                let SampledRow { start, end } = row(r);
                same &= end - start == length;
                let mut i = lane;
                while same && i < length {
                    same = col_ind.load(start + i) == col_ind.load(first.start + i);
                    i += WARP_SIZE;
                }
            }
            let different = if warp::all(FULL_MASK, same) { 1 } else { rows };
            let (blocks, _) = count_blocks(size, 0..different, row, u32::MAX, col_ind);
            let count = warp_fold(blocks, |a, b| a + b);
            if lane == 0 {
                counts.store(block_row, count);
            }
            of_warp += count;
            block_row += warps;
        }
        if lane == 0 {
            total.atomic_add(0_u32, of_warp);
        }
    }
    as BsrCounts
}

kernel! {
    /// The order of each slice and, in blocks of a lane, its width. Counts are less than 2^27. Block: a multiple
    /// of 32; grid: at least a warp per slice, of which there are as many as `block_rows` need.
    pub fn convert_bsr_order(
        block_rows: u32,
        log_lanes: u32,
        counts: DevicePtr<u32>,
        order: DevicePtrMut<u32>,
        widths: DevicePtrMut<u32>,
    ) {
        let (slice, lane) = (thread::index_1d() / WARP_SIZE, thread::index_1d() % WARP_SIZE);
        let height = WARP_SIZE >> log_lanes;
        let first = slice * height;
        if first >= block_rows {
            return;
        }
        let here = lane < height && first + lane < block_rows;
        let count = if here { counts.load(first + lane) } else { 0 };
        let mut place = 0;
        for other in 0..height {
            let of_other = warp::shuffle_idx(FULL_MASK, count, other, WARP_SIZE);
            place += u32::from(of_other > count || (of_other == count && other < lane));
        }
        if here {
            order.store(first + place, count << LOG_PLACES | lane);
        }
        let most = warp_fold(count, u32::max);
        if lane == 0 {
            widths.store(slice, (most + (1 << log_lanes) - 1) >> log_lanes);
        }
    }
    as BsrOrder
}

/// The block row of a position, and its lanes.
#[derive(Clone, Copy)]
pub(crate) struct SlicedRow {
    pub(crate) block_row: u32,
    /// Number of its blocks.
    pub(crate) blocks: u32,
    /// The first lane, of all slices.
    first_lane: u32,
    log_lanes: u32,
    /// `starts` of its slice.
    start: u32,
}

impl SlicedRow {
    /// The block row at a position below the number of block rows.
    #[inline(always)]
    pub(crate) fn new(
        position: u32,
        log_lanes: u32,
        order: DevicePtr<u32>,
        starts: DevicePtr<u32>,
    ) -> Self {
        let log_height = LOG_WARP - log_lanes;
        let (slice, word) = (position >> log_height, order.load(position));
        let place = word & ((1 << LOG_PLACES) - 1);
        Self {
            block_row: (slice << log_height) + place,
            blocks: word >> LOG_PLACES,
            first_lane: (position << log_lanes) & (WARP_SIZE - 1),
            log_lanes,
            start: starts.load(slice),
        }
    }

    /// The plane and the lane of a block.
    #[inline(always)]
    pub(crate) fn place(self, block: u32) -> (u32, u32) {
        let part = block & ((1 << self.log_lanes) - 1);
        (self.start + (block >> self.log_lanes), self.first_lane + part)
    }

    /// Where a block is among all blocks of all lanes.
    #[inline(always)]
    pub(crate) fn at(self, block: u32) -> u32 {
        let (plane, lane) = self.place(block);
        plane * WARP_SIZE + lane
    }
}

/// A matrix in sliced BSR.
#[derive(Clone, Copy)]
pub(crate) struct SlicedBsr<T> {
    pub(crate) rows: u32,
    pub(crate) cols: u32,
    pub(crate) block_rows: u32,
    pub(crate) log_lanes: u32,
    /// Not 0 if all elements of the blocks are entries.
    pub(crate) full: u32,
    pub(crate) order: DevicePtr<u32>,
    pub(crate) starts: DevicePtr<u32>,
    pub(crate) first_cols: DevicePtr<u32>,
    pub(crate) masks: DevicePtr<u64>,
    pub(crate) values: DevicePtr<T>,
}

impl<T: Number> SlicedBsr<T> {
    /// The block row at a position below the number of block rows.
    #[inline(always)]
    pub(crate) fn row(self, position: u32) -> SlicedRow {
        SlicedRow::new(position, self.log_lanes, self.order, self.starts)
    }

    /// The element in row 0 and column 0 of a block of `B` x `B`. Column by column, the others are 32 apart.
    #[inline(always)]
    pub(crate) fn first<const B: usize>(self, (plane, lane): (u32, u32)) -> DevicePtr<T> {
        let plane = u64::from(plane) * (B * B) as u64;
        self.values.offset(plane * u64::from(WARP_SIZE) + u64::from(lane))
    }

    /// Adds up row `r` of a block row by `add`, which gets value and column of an entry, and the sum so far;
    /// padding is left out.
    #[inline(always)]
    pub(crate) fn sum_of_entries<const B: usize, S>(
        self,
        row: SlicedRow,
        r: u32,
        zero: S,
        add: impl Fn(T, u32, S) -> S,
    ) -> S {
        let mut sum = zero;
        for block in 0..row.blocks {
            let at = row.at(block);
            let (mask, first_col) = (self.masks.load(at), self.first_cols.load(at));
            let values = self.first::<B>(row.place(block));
            for col in 0..B as u32 {
                if mask >> (r * B as u32 + col) & 1 != 0 {
                    let value = values.load((col * B as u32 + r) * WARP_SIZE);
                    sum = add(value, first_col + col, sum);
                }
            }
        }
        sum
    }
}

kernel! {
    /// First columns and masks of all blocks. Grid: at least one thread per block row.
    pub fn convert_bsr_columns(
        rows: u32,
        size: u32,
        block_rows: u32,
        log_lanes: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        order: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        first_cols: DevicePtrMut<u32>,
        masks: DevicePtrMut<u64>,
    ) {
        let position = thread::index_1d();
        if position >= block_rows {
            return;
        }
        let sliced = SlicedRow::new(position, log_lanes, order, starts);
        let mut row = BlockRow::new(sliced.block_row, (rows, size), row_ptr, col_ind);
        let mut block = 0;
        while let Some((first_col, mask)) = row.next() {
            let at = sliced.at(block);
            first_cols.store(at, first_col);
            masks.store(at, mask);
            block += 1;
        }
    }
    as BsrColumns
}

kernel! {
    /// First columns of all blocks, of which every element is an entry. Grid: at least a warp per block row; block: a
    /// multiple of 32.
    pub fn convert_bsr_full_columns(
        size: u32,
        block_rows: u32,
        log_lanes: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        order: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        first_cols: DevicePtrMut<u32>,
    ) {
        let position = thread::index_1d() / WARP_SIZE;
        if position >= block_rows {
            return;
        }
        let sliced = SlicedRow::new(position, log_lanes, order, starts);
        let first = row_ptr.load(sliced.block_row * size);
        let mut block = warp::lane_id();
        while block < sliced.blocks {
            first_cols.store(sliced.at(block), col_ind.load(first + block * size));
            block += WARP_SIZE;
        }
    }
    as BsrFullColumns
}

kernel! {
    /// The values of all blocks; 0 where there is no entry. With `full` not 0 every element of a block is an
    /// entry. Grid: at least one thread per lane of all slices in x, `size` blocks in y.
    pub fn convert_bsr_values<T: Number>(
        rows: u32,
        size: u32,
        block_rows: u32,
        log_lanes: u32,
        full: u32,
        row_ptr: DevicePtr<u32>,
        order: DevicePtr<u32>,
        starts: DevicePtr<u32>,
        masks: DevicePtr<u64>,
        values: DevicePtr<T>,
        to_values: DevicePtrMut<T>,
    ) {
        let thread = thread::index_1d();
        let (position, part) = (thread >> log_lanes, thread & ((1 << log_lanes) - 1));
        if position >= block_rows {
            return;
        }
        let sliced = SlicedRow::new(position, log_lanes, order, starts);
        let row_in_block = thread::block_idx_y();
        let row = sliced.block_row * size + row_in_block;
        let mut next = row_ptr.load(row.min(rows - 1));
        let all = (1 << size) - 1;
        let lanes = 1 << log_lanes;
        let mut block = if full == 0 { 0 } else { part };
        next += block * size;
        while block < sliced.blocks {
            let (plane, lane) = sliced.place(block);
            let mut entries = all;
            if full == 0 {
                let mask = masks.load(plane * WARP_SIZE + lane);
                entries = (mask >> (row_in_block * size)) as u32 & all;
            }
            if block & (lanes - 1) == part {
                let plane = u64::from(plane) * u64::from(size * size) + u64::from(row_in_block);
                for col in 0..size {
                    let before = (entries & ((1 << col) - 1)).count_ones();
                    let value = values.load_if(entries >> col & 1 != 0, next + before, T::ZERO);
                    let at = (plane + u64::from(col * size)) * u64::from(WARP_SIZE);
                    to_values.store(at + u64::from(lane), value);
                }
            }
            if full == 0 {
                next += entries.count_ones();
                block += 1;
            } else {
                next += size * lanes;
                block += lanes;
            }
        }
    }
    as BsrValues
}
