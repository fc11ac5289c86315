//! SELL-P: sliced ELLPACK, a warp per chunk and 1 to 32 lanes per row (Anzt, Tomov and Dongarra,
//! "Implementing a sparse matrix vector product for the SELL-C/SELL-C-sigma formats on NVIDIA
//! GPUs", 2014), with columns as short as each chunk allows and values left out, by codes or in
//! single precision where they fit (own).
//!
//! Lane l of a chunk is sub-lane l mod w of row l / w; stored element s of it is entry s w + (l mod w)
//! of the row, in place 32 s + l. The w sums of a row are folded in registers. Rows keep their order, or
//! are sorted by length within windows (sigma), which makes chunks of rows of one length.
//! How columns are stored is in `compact.rs`; the kernels in `convert/sellp.rs` make the arrays.
//!
//! A chunk whose entries lie on few diagonals has its stored elements by diagonal instead, as in DIA:
//! lane l is part l / r of row l mod r of the chunk's r = 32 / w rows, its stored element s is
//! diagonal s w + (l / r), and the column is base + row. No column is stored for an entry, and chunks
//! on the same diagonals as the one before share its bases. Where a row has no entry on a diagonal,
//! there is a hole: value 0, and a cleared bit of the lane's fill words (bit s mod 32 of word s / 32),
//! which are read where a hole would count.

use super::compact::{
    All, Coded, Single, Values, all_elements_are_safe, chunk_and_lane, lane_sum,
    lane_sum_by_offsets,
};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, Output, Real, warp};
use crate::kernel::kernel;

/// log2 of the threads of a warp.
pub(crate) const LOG_WARP: u32 = WARP_SIZE.trailing_zeros();
/// How the columns of a chunk are stored, beside the offsets of `compact.rs`.
pub(crate) const BY_DIAGONAL: u32 = 0;

/// The rows at the positions of the chunks, sorted within windows of 2^`log_sigma` rows.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    /// 0: every row is at its own position.
    pub(crate) log_sigma: u32,
    /// The row at each position, counted from the first one of its window.
    pub(crate) order: DevicePtr<u16>,
}

impl Windows {
    #[inline(always)]
    pub(crate) fn row(self, position: u32) -> u32 {
        if self.log_sigma == 0 {
            return position;
        }
        (position >> self.log_sigma << self.log_sigma) + u32::from(self.order.load(position))
    }
}

/// The entries of a CSR matrix that are those of one lane of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct LaneEntries {
    first: u32,
    log_lanes: u32,
    pub(crate) elements: u32,
}

impl LaneEntries {
    #[inline(always)]
    pub(crate) fn of(
        chunk: u32,
        lane: u32,
        rows: u32,
        log_lanes: u32,
        row_ptr: DevicePtr<u32>,
        row_at: impl FnOnce(u32) -> u32,
    ) -> Self {
        let position = (chunk << (LOG_WARP - log_lanes)) + (lane >> log_lanes);
        let mut mine = Self { first: 0, log_lanes, elements: 0 };
        if position < rows {
            let row = row_at(position);
            let (start, end) = (row_ptr.load(row), row_ptr.load(row + 1));
            let sub_lane = lane & ((1 << log_lanes) - 1);
            if end - start > sub_lane {
                mine.first = start + sub_lane;
                mine.elements = ((end - start - sub_lane - 1) >> log_lanes) + 1;
            }
        }
        mine
    }

    /// The entry in stored element `element`, which must be below `elements`.
    #[inline(always)]
    pub(crate) fn entry(self, element: u32) -> u32 {
        self.first + (element << self.log_lanes)
    }
}

/// The arrays of a matrix but for its values.
#[derive(Clone, Copy)]
struct Chunks {
    rows: u32,
    cols: u32,
    log_lanes: u32,
    headers: DevicePtr<[u32; 4]>,
    bases: DevicePtr<u32>,
    offsets: DevicePtr<u32>,
    fills: DevicePtr<u32>,
    row_ptr: DevicePtr<u32>,
}

/// The sum of one lane over those of its first `elements` stored elements that the fill words have a
/// bit for.
#[inline(always)]
fn filled_sum<T: Real, V: Values<T>>(
    elements: u32,
    place: u64,
    columns: impl Fn(u32) -> [u32; 4],
    fills: DevicePtr<u32>,
    values: V,
    x: DevicePtr<T>,
) -> T {
    let (mut even, mut odd) = (T::ZERO, T::ZERO);
    for group in 0..elements.div_ceil(4) {
        let columns = columns(group);
        let filled = fills.load(group / 8 * WARP_SIZE) >> (group % 8 * 4);
        let values = values.load(place, group, elements - 4 * group);
        let x = columns.map(|column| x.load(column));
        if filled & 1 != 0 {
            even = values[0].mul_add(x[0], even);
        }
        if filled & 2 != 0 {
            odd = values[1].mul_add(x[1], odd);
        }
        if filled & 4 != 0 {
            even = values[2].mul_add(x[2], even);
        }
        if filled & 8 != 0 {
            odd = values[3].mul_add(x[3], odd);
        }
    }
    even + odd
}

/// The sum of the 2^`log_lanes` lanes of a row, which are `distance` apart.
#[inline(always)]
fn folded<T: Real>(mut sum: T, log_lanes: u32, mut distance: u32) -> T {
    for _ in 0..log_lanes {
        sum += warp::shuffle_xor(FULL_MASK, sum, distance, WARP_SIZE);
        distance *= 2;
    }
    sum
}

/// The sum of one lane of a chunk that is not by diagonal; `filled` counts its entries among the `width` stored
/// elements.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the parts of a chunk, inlined")]
fn padded_sum<T: Real, V: Values<T>>(
    mode: u32,
    width: u32,
    filled: impl Fn() -> u32,
    at: (u64, u32, u32),
    bases: DevicePtr<u32>,
    offsets: DevicePtr<u32>,
    values: V,
    x: DevicePtr<T>,
) -> T {
    let mut elements = if all_elements_are_safe(values) { width } else { filled() };
    // At most twice: over the padding, and without it if the sum is not finite.
    loop {
        let sum = lane_sum_by_offsets(mode, elements, at, bases, offsets, values, x);
        if elements == width && !sum.is_finite() {
            let filled = filled();
            if filled < width {
                elements = filled;
                continue;
            }
        }
        return sum;
    }
}

/// The product with rows sorted within windows; no chunk is by diagonal.
#[inline(always)]
fn sorted_product<T: Real, V: Values<T>>(
    matrix: Chunks,
    windows: Windows,
    values: V,
    x: DevicePtr<T>,
    y: Output<T>,
) {
    let Chunks { rows, cols, log_lanes, headers, bases, offsets, row_ptr, .. } = matrix;
    let (chunk, lane) = chunk_and_lane();
    let position = (chunk << (LOG_WARP - log_lanes)) + (lane >> log_lanes);
    // The whole warp: the shuffles below need all of it.
    if chunk << (LOG_WARP - log_lanes) >= rows {
        return;
    }
    let [start, width, first_group, tagged] = headers.load(chunk);
    let row = if position < rows { windows.row(position) } else { 0 };
    let bases = bases.offset(u64::from(first_group) * 4);
    let offsets = offsets.offset(u64::from(tagged >> 2) * u64::from(WARP_SIZE));
    let at = (V::place(start, lane), lane, cols.wrapping_sub(1));
    let filled = || LaneEntries::of(chunk, lane, rows, log_lanes, row_ptr, |_| row).elements;
    let sum = padded_sum(tagged & 3, width, filled, at, bases, offsets, values, x);
    // The lanes of a row are neighbours.
    let sum = folded(sum, log_lanes, 1);
    if position < rows && lane & ((1 << log_lanes) - 1) == 0 {
        y.store(row, sum);
    }
}

#[inline(always)]
fn product<T: Real, V: Values<T>>(matrix: Chunks, values: V, x: DevicePtr<T>, y: Output<T>) {
    let Chunks { rows, log_lanes, headers, bases, offsets, fills, row_ptr, .. } = matrix;
    let (chunk, lane) = chunk_and_lane();
    let log_rows = LOG_WARP - log_lanes;
    let first_row = chunk << log_rows;
    // The whole warp: the shuffles below need all of it.
    if first_row >= rows {
        return;
    }
    let [start, width, first_group, tagged] = headers.load(chunk);
    let (mode, unit) = (tagged & 3, u64::from(tagged >> 2) * u64::from(WARP_SIZE));
    let place = V::place(start, lane);
    let last_column = matrix.cols.wrapping_sub(1);
    let by_diagonal = mode == BY_DIAGONAL;
    let mut sum;
    if by_diagonal {
        let (row, part) = (first_row + (lane & ((1 << log_rows) - 1)), lane >> log_rows);
        let bases = bases.offset(u64::from(first_group + part) * 4);
        // A hole may lie beyond either end of x.
        let columns = |group: u32| {
            let bases = bases.load_vector::<4>((group << log_lanes) * 4);
            bases.map(|base| row.wrapping_add(base).min(last_column))
        };
        let fills = fills.offset(unit + u64::from(lane));
        if all_elements_are_safe(values) {
            sum = lane_sum(width, place, columns, values, x);
            if !sum.is_finite() {
                sum = filled_sum(width, place, columns, fills, values, x);
            }
        } else {
            sum = filled_sum(width, place, columns, fills, values, x);
        }
    } else {
        let bases = bases.offset(u64::from(first_group) * 4);
        let offsets = offsets.offset(unit);
        let at = (place, lane, last_column);
        let filled = || LaneEntries::of(chunk, lane, rows, log_lanes, row_ptr, |row| row).elements;
        sum = padded_sum(mode, width, filled, at, bases, offsets, values, x);
    }
    // The lanes of a row are neighbours, or as far apart as the chunk has rows.
    sum = folded(sum, log_lanes, if by_diagonal { 1 << log_rows } else { 1 });
    let (row, part) = if by_diagonal {
        (lane & ((1 << log_rows) - 1), lane >> log_rows)
    } else {
        (lane >> log_lanes, lane & ((1 << log_lanes) - 1))
    };
    if first_row + row < rows && part == 0 {
        y.store(first_row + row, sum);
    }
}

kernel! {
    /// `sellp`: 2^`log_lanes` lanes per row. Block: a multiple of 32; grid: at least one warp per
    /// chunk. `row_ptr` are those of the CSR matrix, which tell what is padding.
    pub fn spmv_sellp<T: Real>(
        rows: u32,
        cols: u32,
        log_lanes: u32,
        headers: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        fills: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let matrix = Chunks { rows, cols, log_lanes, headers, bases, offsets, fills, row_ptr };
        product(matrix, values, x, y);
    }
    as Sellp
}

kernel! {
    /// [`Sellp`] with values that single precision holds exactly; products and sums as there.
    pub fn spmv_sellp_single<T: Real>(
        rows: u32,
        cols: u32,
        log_lanes: u32,
        headers: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        fills: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        values: DevicePtr<f32>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let matrix = Chunks { rows, cols, log_lanes, headers, bases, offsets, fills, row_ptr };
        product(matrix, Single(values), x, y);
    }
    as SellpSingle
}

kernel! {
    /// [`Sellp`] of a matrix whose entries all have the value `value`.
    pub fn spmv_sellp_equal<T: Real>(
        rows: u32,
        cols: u32,
        log_lanes: u32,
        headers: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        fills: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        value: T,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let matrix = Chunks { rows, cols, log_lanes, headers, bases, offsets, fills, row_ptr };
        product(matrix, All(value), x, y);
    }
    as SellpEqual
}

kernel! {
    /// [`Sellp`] with rows sorted within windows of 2^`log_sigma`; `order` has the row at each position, counted
    /// from the first one of its window.
    pub fn spmv_sellp_sorted<T: Real>(
        rows: u32,
        cols: u32,
        log_lanes: u32,
        headers: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        fills: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        log_sigma: u32,
        order: DevicePtr<u16>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let matrix = Chunks { rows, cols, log_lanes, headers, bases, offsets, fills, row_ptr };
        sorted_product(matrix, Windows { log_sigma, order }, values, x, y);
    }
    as SellpSorted
}

kernel! {
    /// [`SellpSingle`] with rows sorted as in [`SellpSorted`].
    pub fn spmv_sellp_single_sorted<T: Real>(
        rows: u32,
        cols: u32,
        log_lanes: u32,
        headers: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        fills: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        log_sigma: u32,
        order: DevicePtr<u16>,
        values: DevicePtr<f32>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let matrix = Chunks { rows, cols, log_lanes, headers, bases, offsets, fills, row_ptr };
        sorted_product(matrix, Windows { log_sigma, order }, Single(values), x, y);
    }
    as SellpSingleSorted
}

kernel! {
    /// [`SellpEqual`] with rows sorted as in [`SellpSorted`].
    pub fn spmv_sellp_equal_sorted<T: Real>(
        rows: u32,
        cols: u32,
        log_lanes: u32,
        headers: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        fills: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        log_sigma: u32,
        order: DevicePtr<u16>,
        value: T,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let matrix = Chunks { rows, cols, log_lanes, headers, bases, offsets, fills, row_ptr };
        sorted_product(matrix, Windows { log_sigma, order }, All(value), x, y);
    }
    as SellpEqualSorted
}

kernel! {
    /// [`Sellp`] with values by a code of a byte for each stored element, and a `table` of 256 of them. Shared memory:
    /// [`coded_shared_bytes`](super::coded_shared_bytes).
    pub fn spmv_sellp_coded<T: Real>(
        rows: u32,
        cols: u32,
        log_lanes: u32,
        headers: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        fills: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        codes: DevicePtr<u32>,
        table: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let matrix = Chunks { rows, cols, log_lanes, headers, bases, offsets, fills, row_ptr };
        product(matrix, Coded::new(codes, table), x, y);
    }
    as SellpCoded
}

kernel! {
    /// [`SellpCoded`] with rows sorted as in [`SellpSorted`].
    pub fn spmv_sellp_coded_sorted<T: Real>(
        rows: u32,
        cols: u32,
        log_lanes: u32,
        headers: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        fills: DevicePtr<u32>,
        row_ptr: DevicePtr<u32>,
        log_sigma: u32,
        order: DevicePtr<u16>,
        codes: DevicePtr<u32>,
        table: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let matrix = Chunks { rows, cols, log_lanes, headers, bases, offsets, fills, row_ptr };
        sorted_product(matrix, Windows { log_sigma, order }, Coded::new(codes, table), x, y);
    }
    as SellpCodedSorted
}
