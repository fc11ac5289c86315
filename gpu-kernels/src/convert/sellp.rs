//! Conversion of CSR to SELL-P with compressed columns for `sellp` ([`crate::spmv`]), one warp per
//! chunk.
//!
//! The steps are: measure the sizes of each chunk, scan them (exclusive sums, with one more word at
//! the end), then write columns and values.

use super::dictionary::ValueCodes;
use crate::collective::{warp_fold, warp_fold_four};
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, thread, warp};
use crate::kernel::kernel;
use crate::spmv::compact::{BITS_8, BITS_16, BITS_32, chunk_and_lane};
use crate::spmv::sellp::{BY_DIAGONAL, LOG_WARP, LaneEntries, Windows};

/// Beyond every column, and every key of a diagonal.
const NONE: u32 = u32::MAX;
/// Beside the mode of a chunk: it has the bases of the one before.
const SAME_DIAGONALS: u32 = 4;
/// Stored elements by diagonal for four in a row of the longest, at most.
const MOST_ELEMENTS_OF_4: u32 = 5;

/// Entries of the longest row of a chunk by diagonal, at most: its diagonals are walked one after another.
const MOST_DIAGONALS_WALKED: u32 = 1024;

/// After so many diagonals each time, what is left of the rows says whether there will be too many.
const OFTEN: u32 = 4;

/// Rows of the largest window that is sorted.
pub const MOST_SIGMA: u32 = 1024;

kernel! {
    /// The order of the rows of each window of `sigma`, at most [`MOST_SIGMA`], the longest first, and equally
    /// long ones in their own order; `order` has the row at each position, counted from the first one of its window.
    /// Block: `sigma`; grid: a block for each window; shared memory: a word for each thread, and for four at least.
    pub fn convert_sellp_order(
        rows: u32,
        row_ptr: DevicePtr<u32>,
        order: DevicePtrMut<u16>,
    ) {
        let (row, sigma) = (thread::index_1d(), thread::block_dim_x());
        let (mine, first) = (thread::thread_idx_x(), thread::block_idx_x() * sigma);
        // Whole groups of four, of which the last may be of no rows.
        let lengths: SharedArray<u32> = Pool::new().array(sigma.max(4));
        let length = if row < rows { row_ptr.load(row + 1) - row_ptr.load(row) } else { 0 };
        lengths.store(mine, length);
        if sigma < 4 {
            lengths.store(mine + 2, 0);
        }
        thread::sync_threads();
        if row >= rows {
            return;
        }
        // No row behind the last is longer than one.
        let longer = |group: u32, than: u32| {
            let lengths: [u32; 4] = lengths.load_vector(4 * group);
            lengths.map(|of_other| u32::from(of_other > than)).iter().sum::<u32>()
        };
        let my_group = mine / 4;
        let mut before = 0;
        // Rows that are at least as long.
        if length > 0 {
            for group in 0..my_group {
                before += longer(group, length - 1);
            }
        } else {
            before = 4 * my_group;
        }
        for other in 4 * my_group..4 * my_group + 4 {
            let of_other = lengths.load(other);
            before += u32::from(of_other > length || of_other == length && other < mine);
        }
        for group in my_group + 1..sigma / 4 {
            before += longer(group, length);
        }
        order.store(first + before, mine as u16);
    }
    as SellpOrder
}

/// An iteration of the warp over the diagonals of a chunk in ascending order: each lane has a row
/// and its next entry. A row with columns out of order takes a separate diagonal if needed.
///
/// The key of a diagonal is column + 31 - row in the chunk, so that it is no negative number.
#[derive(Clone, Copy)]
struct Diagonals {
    next: u32,
    end: u32,
    key: u32,
    /// That of the entry after the next one, on its way.
    ahead: u32,
    bias: u32,
    col_ind: DevicePtr<u32>,
}

impl Diagonals {
    #[inline(always)]
    fn of(
        chunk: u32,
        lane: u32,
        rows: u32,
        log_lanes: u32,
        (row_ptr, col_ind): (DevicePtr<u32>, DevicePtr<u32>),
    ) -> Self {
        let log_rows = LOG_WARP - log_lanes;
        let row_in_chunk = lane & ((1 << log_rows) - 1);
        let row = (chunk << log_rows) + row_in_chunk;
        let (next, end) =
            if row < rows { (row_ptr.load(row), row_ptr.load(row + 1)) } else { (0, 0) };
        let bias = WARP_SIZE - 1 - row_in_chunk;
        let mut walk = Self { next, end, key: NONE, ahead: NONE, bias, col_ind };
        walk.key = walk.key_of(0);
        walk.ahead = walk.key_of(1);
        walk
    }

    /// The key of the entry that comes `further` after the next one.
    #[inline(always)]
    fn key_of(&self, further: u32) -> u32 {
        if self.end - self.next > further {
            self.col_ind.load(self.next + further) + self.bias
        } else {
            NONE
        }
    }

    /// Entries that are left of the longest row.
    #[inline(always)]
    fn longest(&self) -> u32 {
        warp_fold(self.end - self.next, u32::max)
    }

    /// The number of stored elements that a chunk by diagonal may have; the whole warp has the same.
    #[inline(always)]
    fn most(&self) -> u32 {
        let longest = self.longest();
        if longest > MOST_DIAGONALS_WALKED {
            return 0;
        }
        longest.saturating_add(longest / 4 * (MOST_ELEMENTS_OF_4 - 4))
    }

    /// The key of the next diagonal, and this lane's entry on it; `NONE` after the last.
    #[inline(always)]
    fn step(&mut self) -> (u32, Option<u32>) {
        let key = warp_fold(self.key, u32::min);
        if key == NONE || self.key != key {
            return (key, None);
        }
        let entry = self.next;
        self.next += 1;
        self.key = self.ahead;
        self.ahead = self.key_of(1);
        (key, Some(entry))
    }
}

/// The stored elements of a chunk by diagonal, if they are few, and whether they are on the same
/// diagonals as the chunk before, which has them so, too.
#[inline(always)]
fn by_diagonal(
    chunk: u32,
    lane: u32,
    rows: u32,
    log_lanes: u32,
    arrays: (DevicePtr<u32>, DevicePtr<u32>),
) -> Option<(u32, bool)> {
    let mut mine = Diagonals::of(chunk, lane, rows, log_lanes, arrays);
    let mut before = Diagonals::of(chunk.saturating_sub(1), lane, rows, log_lanes, arrays);
    let (most, most_before) = (mine.most(), before.most());
    let (mut elements, mut same) = (0, chunk > 0);
    loop {
        let key = mine.step().0;
        if same {
            let key_before = before.step().0;
            // A chunk is that many rows further.
            let further = if key_before == NONE { 0 } else { WARP_SIZE >> log_lanes };
            same = key_before.wrapping_add(further) == key;
        }
        if key == NONE {
            break;
        }
        elements += 1;
        // What is left of a row is on as many more.
        let left = if elements % OFTEN == 0 { mine.longest() } else { 0 };
        if elements + left > most {
            return None;
        }
    }
    (elements > 0).then_some((elements, same && elements <= most_before))
}

/// The columns of four stored elements in a row of a lane; `NONE` behind its last.
#[inline(always)]
fn columns_of(group: u32, mine: LaneEntries, col_ind: DevicePtr<u32>) -> [u32; 4] {
    [0, 1, 2, 3].map(|j| {
        let element = 4 * group + j;
        if element < mine.elements { col_ind.load(mine.entry(element)) } else { NONE }
    })
}

/// How wide offsets are that span so many columns.
#[inline(always)]
fn width_of(spread: u32) -> u32 {
    if spread < 1 << 8 {
        BITS_8
    } else if spread < 1 << 16 {
        BITS_16
    } else {
        BITS_32
    }
}

/// How wide the offsets of a chunk are from the smallest column that any lane has at the same element; `width` are the
/// elements of the lane with the most.
///
/// Distances from the columns of one lane nearly always tell: the smallest and the largest column of each element take
/// three times as many exchanges. Most chunks of 32 bits are known by their first columns.
#[inline(always)]
fn offset_width(width: u32, mine: LaneEntries, col_ind: DevicePtr<u32>) -> u32 {
    let longest = warp::ballot(FULL_MASK, mine.elements == width).trailing_zeros();
    let (mut above, mut below) = (0, 0);
    for group in 0..width.div_ceil(4) {
        let columns = columns_of(group, mine, col_ind);
        for column in columns {
            let of_longest = warp::shuffle_idx(FULL_MASK, column, longest, WARP_SIZE);
            if column != NONE {
                above = column.saturating_sub(of_longest).max(above);
                below = of_longest.saturating_sub(column).max(below);
            }
        }
        if warp::ballot(FULL_MASK, width_of(above.max(below)) == BITS_32) != 0 {
            return BITS_32;
        }
    }
    let (above, below) = (warp_fold(above, u32::max), warp_fold(below, u32::max));
    let (least, most) = (width_of(above.max(below)), width_of(above.saturating_add(below)));
    if least == most {
        return most;
    }
    let mut spread = 0;
    for group in 0..width.div_ceil(4) {
        let columns = columns_of(group, mine, col_ind);
        let smallest = warp_fold_four(columns, u32::min);
        let or_zero = columns.map(|column| if column == NONE { 0 } else { column });
        let largest = warp_fold_four(or_zero, u32::max);
        spread = largest.saturating_sub(smallest).max(spread);
    }
    width_of(warp_fold(spread, u32::max))
}

kernel! {
    /// How columns are stored, and four measures of each chunk, `chunks` words for each, and a 0 behind them: stored
    /// elements of a lane rounded up to a multiple of `round` (1 or 4), groups of four bases, 128-byte
    /// units that offsets take, and those that fill words take. With `compact` 0 columns stay 32 bits
    /// wide, with `diagonals` 0, as sorted rows need, no stored elements are by diagonal; x has 32 columns less
    /// than 2^32 otherwise. Block: a multiple of 32; grid: at least one warp per chunk.
    pub fn convert_sellp_measure(
        rows: u32,
        chunks: u32,
        log_lanes: u32,
        round: u32,
        compact: u32,
        diagonals: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        log_sigma: u32,
        order: DevicePtr<u16>,
        measures: DevicePtrMut<u32>,
        modes: DevicePtrMut<u32>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        if chunk >= chunks {
            return;
        }
        let windows = Windows { log_sigma, order };
        let mine =
            LaneEntries::of(chunk, lane, rows, log_lanes, row_ptr, |at| windows.row(at));
        let mut width = warp_fold(mine.elements, u32::max);
        let mut diagonal = None;
        if diagonals != 0 {
            diagonal = by_diagonal(chunk, lane, rows, log_lanes, (row_ptr, col_ind));
        }
        let (mut mode, mut quads, mut units, mut fills) = (BITS_32, 0, 0, 0);
        if let Some((elements, same)) = diagonal {
            width = (elements + (1 << log_lanes) - 1) >> log_lanes;
            fills = width.div_ceil(32);
            mode = BY_DIAGONAL;
            if same {
                mode |= SAME_DIAGONALS;
            } else {
                quads = width.div_ceil(4) << log_lanes;
            }
        } else {
            if compact != 0 {
                mode = offset_width(width, mine, col_ind);
            }
            // 1, 2 or 4 units of 32 words for each group.
            units = width.div_ceil(4) << (mode - 1);
            if mode != BITS_32 {
                quads = width.div_ceil(4);
            }
        }
        if lane == 0 {
            measures.store(chunk, (width + round - 1) & !(round - 1));
            measures.store(chunks + chunk, quads);
            measures.store(2 * chunks + chunk, units);
            measures.store(3 * chunks + chunk, fills);
            modes.store(chunk, mode);
            if chunk == 0 {
                measures.store(4 * chunks, 0);
            }
        }
    }
    as SellpMeasure
}

/// Bases and fill words of a chunk by diagonal; returns the stored elements of a lane.
#[inline(always)]
fn write_diagonals(
    mut walk: Diagonals,
    (first_row, lane, log_lanes): (u32, u32, u32),
    bases: Option<DevicePtrMut<u32>>,
    fills: DevicePtrMut<u32>,
) -> u32 {
    let part = lane >> (LOG_WARP - log_lanes);
    let (mut element, mut word, mut words) = (0, 0, 0);
    // Four stored elements of the w parts are w groups of four bases.
    let place =
        |element: u32, part: u32| (((element >> 2) << log_lanes) + part) * 4 + (element & 3);
    loop {
        let (key, entry) = walk.step();
        if key == NONE {
            break;
        }
        let (lane_element, part_of) = (element >> log_lanes, element & ((1 << log_lanes) - 1));
        if part_of == part && entry.is_some() {
            word |= 1 << (lane_element % 32);
        }
        if let (Some(bases), 0) = (bases, lane) {
            let base = key.wrapping_sub(WARP_SIZE - 1).wrapping_sub(first_row);
            bases.store(place(lane_element, part_of), base);
        }
        element += 1;
        if element & ((32 << log_lanes) - 1) == 0 {
            fills.store(words * WARP_SIZE + lane, word);
            (word, words) = (0, words + 1);
        }
    }
    if element & ((32 << log_lanes) - 1) != 0 {
        fills.store(words * WARP_SIZE + lane, word);
    }
    let width = (element + (1 << log_lanes) - 1) >> log_lanes;
    if let (Some(bases), 0) = (bases, lane) {
        // Up to whole groups of all parts.
        while element < (width.div_ceil(4) * 4) << log_lanes {
            bases.store(place(element >> log_lanes, element & ((1 << log_lanes) - 1)), 0);
            element += 1;
        }
    }
    width
}

kernel! {
    /// Headers, bases, offsets and fill words of the chunks; `sums` are the exclusive sums of the
    /// measures of [`SellpMeasure`], all in a row, and one more. Launch: as there.
    pub fn convert_sellp_columns(
        rows: u32,
        chunks: u32,
        log_lanes: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        log_sigma: u32,
        order: DevicePtr<u16>,
        sums: DevicePtr<u32>,
        modes: DevicePtr<u32>,
        headers: DevicePtrMut<[u32; 4]>,
        bases: DevicePtrMut<u32>,
        offsets: DevicePtrMut<u32>,
        fills: DevicePtrMut<u32>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        if chunk >= chunks {
            return;
        }
        let sum = |measure: u32| {
            // Each measure fits in 32 bits, all of them together need not.
            let before = u64::from(measure) * u64::from(chunks);
            sums.load(before + u64::from(chunk)).wrapping_sub(sums.load(before))
        };
        let (start, first_group, unit) = (sum(0), sum(1), sum(2));
        let mode = modes.load(chunk);
        if mode & 3 == BY_DIAGONAL {
            let walk = Diagonals::of(chunk, lane, rows, log_lanes, (row_ptr, col_ind));
            let fill = sum(3);
            let first_row = chunk << (LOG_WARP - log_lanes);
            let fills = fills.offset(u64::from(fill) * u64::from(WARP_SIZE));
            let own = mode & SAME_DIAGONALS == 0;
            let own_bases = own.then(|| bases.offset(u64::from(first_group) * 4));
            let width = write_diagonals(walk, (first_row, lane, log_lanes), own_bases, fills);
            if lane == 0 {
                let shared = if own { 0 } else { width.div_ceil(4) << log_lanes };
                headers.store(chunk, [start, width, first_group - shared, fill << 2 | BY_DIAGONAL]);
            }
            return;
        }
        let windows = Windows { log_sigma, order };
        let mine =
            LaneEntries::of(chunk, lane, rows, log_lanes, row_ptr, |at| windows.row(at));
        let width = warp_fold(mine.elements, u32::max);
        if lane == 0 {
            headers.store(chunk, [start, width, first_group, unit << 2 | mode]);
        }
        let offsets = offsets.offset(u64::from(unit) * u64::from(WARP_SIZE));
        for group in 0..width.div_ceil(4) {
            let columns = columns_of(group, mine, col_ind);
            let mut of_group = [0; 4];
            if mode != BITS_32 {
                let smallest = warp_fold_four(columns, u32::min);
                let smallest = if smallest == NONE { 0 } else { smallest };
                of_group = [0, 8, 16, 24]
                    .map(|lane| warp::shuffle_idx(FULL_MASK, smallest, lane, WARP_SIZE));
            }
            let mut offset = [0; 4];
            for ((offset, column), base) in offset.iter_mut().zip(columns).zip(of_group) {
                if column != NONE {
                    *offset = column - base;
                }
            }
            let at = u64::from(group * WARP_SIZE + lane);
            match mode {
                BITS_8 => {
                    let low = offset[0] | offset[1] << 8;
                    offsets.store(at, low | offset[2] << 16 | offset[3] << 24);
                }
                BITS_16 => {
                    let words = [offset[0] | offset[1] << 16, offset[2] | offset[3] << 16];
                    offsets.store_vector::<2>(at * 2, words);
                }
                _ => offsets.store_vector::<4>(at * 4, offset),
            }
            if lane == 0 && mode != BITS_32 {
                bases.store_vector::<4>((first_group + group) * 4, of_group);
            }
        }
    }
    as SellpColumns
}

/// The common arguments of the kernels for values.
#[derive(Clone, Copy)]
struct Elements {
    rows: u32,
    chunks: u32,
    log_lanes: u32,
    row_ptr: DevicePtr<u32>,
    col_ind: DevicePtr<u32>,
    windows: Windows,
    sums: DevicePtr<u32>,
    modes: DevicePtr<u32>,
}

impl Elements {
    /// Calls `store(first chunk column of the chunk, stored element, lane, entry)` for every stored
    /// element of this lane, in order; padding and holes have no entry.
    #[inline(always)]
    fn for_each(self, mut store: impl FnMut(u32, u32, u32, Option<u32>)) {
        let Self { rows, chunks, log_lanes, row_ptr, col_ind, windows, sums, modes } = self;
        let (chunk, lane) = chunk_and_lane();
        if chunk >= chunks {
            return;
        }
        let (start, end) = (sums.load(chunk), sums.load(chunk + 1));
        let mut element = 0;
        if modes.load(chunk) & 3 == BY_DIAGONAL {
            let mut walk = Diagonals::of(chunk, lane, rows, log_lanes, (row_ptr, col_ind));
            let part = lane >> (LOG_WARP - log_lanes);
            let mut part_of = 0;
            loop {
                let (key, entry) = walk.step();
                if key == NONE {
                    break;
                }
                if part_of == part {
                    store(start, element, lane, entry);
                    element += 1;
                }
                part_of = (part_of + 1) & ((1 << log_lanes) - 1);
            }
        } else {
            let mine = LaneEntries::of(chunk, lane, rows, log_lanes, row_ptr, |at| windows.row(at));
            while element < mine.elements {
                store(start, element, lane, Some(mine.entry(element)));
                element += 1;
            }
        }
        while element < end - start {
            store(start, element, lane, None);
            element += 1;
        }
    }
}

kernel! {
    /// The values of the stored elements, 0 where there is no entry; `sums` and `modes` as for
    /// [`SellpColumns`], made with `round` 1. Launch: as for [`SellpMeasure`].
    pub fn convert_sellp_values<T: Real>(
        rows: u32,
        chunks: u32,
        log_lanes: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        log_sigma: u32,
        order: DevicePtr<u16>,
        sums: DevicePtr<u32>,
        modes: DevicePtr<u32>,
        values: DevicePtr<T>,
        elements: DevicePtrMut<T>,
    ) {
        let windows = Windows { log_sigma, order };
        let matrix = Elements { rows, chunks, log_lanes, row_ptr, col_ind, windows, sums, modes };
        matrix.for_each(|start, element, lane, entry| {
            let at = u64::from(start + element) * u64::from(WARP_SIZE) + u64::from(lane);
            elements.store(at, entry.map_or(T::ZERO, |k| values.load(k)));
        });
    }
    as SellpValues
}

kernel! {
    /// [`SellpValues`] in single precision, which is to hold each of them exactly, four stored
    /// elements of a lane side by side; `sums` made with `round` 4.
    pub fn convert_sellp_values_single<T: Real>(
        rows: u32,
        chunks: u32,
        log_lanes: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        log_sigma: u32,
        order: DevicePtr<u16>,
        sums: DevicePtr<u32>,
        modes: DevicePtr<u32>,
        values: DevicePtr<T>,
        elements: DevicePtrMut<f32>,
    ) {
        let windows = Windows { log_sigma, order };
        let matrix = Elements { rows, chunks, log_lanes, row_ptr, col_ind, windows, sums, modes };
        matrix.for_each(|start, element, lane, entry| {
            let group = u64::from(start / 4 + element / 4) * u64::from(WARP_SIZE) + u64::from(lane);
            let value = entry.map_or(0.0, |k| values.load(k).single());
            elements.store(group * 4 + u64::from(element % 4), value);
        });
    }
    as SellpValuesSingle
}

kernel! {
    /// [`SellpValues`] as codes of a byte, four stored elements of a lane in a word: those of the `table` that
    /// [`FindValues`](super::dictionary::FindValues) has filled, and 0, the code of the number 0, where there is no
    /// entry; `sums` made with `round` 4.
    pub fn convert_sellp_values_coded<T: Real>(
        rows: u32,
        chunks: u32,
        log_lanes: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        log_sigma: u32,
        order: DevicePtr<u16>,
        sums: DevicePtr<u32>,
        modes: DevicePtr<u32>,
        values: DevicePtr<T>,
        table: DevicePtr<u64>,
        codes: DevicePtr<u32>,
        elements: DevicePtrMut<u32>,
    ) {
        let windows = Windows { log_sigma, order };
        let matrix = Elements { rows, chunks, log_lanes, row_ptr, col_ind, windows, sums, modes };
        let codes = ValueCodes { table, codes };
        let mut word = 0;
        matrix.for_each(|start, element, lane, entry| {
            word |= entry.map_or(0, |k| codes.of(values.load(k))) << (8 * (element % 4));
            if element % 4 == 3 {
                let of_word = u64::from(start / 4 + element / 4);
                elements.store(of_word * u64::from(WARP_SIZE) + u64::from(lane), word);
                word = 0;
            }
        });
    }
    as SellpValuesCoded
}
