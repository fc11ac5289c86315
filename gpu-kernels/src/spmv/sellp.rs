//! SELL-P: sliced ELLPACK, a warp per chunk and 1 to 32 lanes per row (Anzt, Tomov and Dongarra,
//! "Implementing a sparse matrix vector product for the SELL-C/SELL-C-sigma formats on NVIDIA
//! GPUs", 2014), with columns as short as each chunk allows and values left out or in single
//! precision where they fit (own).
//!
//! Lane l of a chunk is sub-lane l mod w of row l / w; slot s of it is entry s w + (l mod w) of the
//! row, in place 32 s + l. The w sums of a row are folded in registers. Rows keep their order. How
//! columns are stored is in `compact.rs`; the kernels in `convert/sellp.rs` make the arrays.

use super::compact::{All, Narrow, Values, all_slots_are_safe, chunk_and_lane, lane_sum_by_mode};
use super::reduce::warp_sum;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, Real};
use crate::kernel::kernel;

/// log2 of the threads of a warp.
const LOG_WARP: u32 = WARP_SIZE.trailing_zeros();

/// The entries of a CSR matrix that are those of one lane of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct LaneEntries {
    first: u32,
    log_lanes: u32,
    pub(crate) slots: u32,
}

impl LaneEntries {
    #[inline(always)]
    pub(crate) fn of(
        chunk: u32,
        lane: u32,
        rows: u32,
        log_lanes: u32,
        pointers: DevicePtr<u32>,
    ) -> Self {
        let row = (chunk << (LOG_WARP - log_lanes)) + (lane >> log_lanes);
        let mut mine = Self { first: 0, log_lanes, slots: 0 };
        if row < rows {
            let (start, end) = (pointers.load(row), pointers.load(row + 1));
            let sub_lane = lane & ((1 << log_lanes) - 1);
            if end - start > sub_lane {
                mine.first = start + sub_lane;
                mine.slots = ((end - start - sub_lane - 1) >> log_lanes) + 1;
            }
        }
        mine
    }

    /// The entry in slot `slot`, which must be below `slots`.
    #[inline(always)]
    pub(crate) fn entry(self, slot: u32) -> u32 {
        self.first + (slot << self.log_lanes)
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn product<T: Real, V: Values<T>>(
    (rows, cols, log_lanes): (u32, u32, u32),
    headers: DevicePtr<[u32; 4]>,
    bases: DevicePtr<u32>,
    offsets: DevicePtr<u32>,
    pointers: DevicePtr<u32>,
    values: V,
    x: DevicePtr<T>,
    y: DevicePtrMut<T>,
) {
    let (chunk, lane) = chunk_and_lane();
    let first_row = chunk << (LOG_WARP - log_lanes);
    // The whole warp: the shuffles below need all of it.
    if first_row >= rows {
        return;
    }
    let [start, width, first_group, tagged] = headers.load(chunk);
    let bases = bases.offset(u64::from(first_group) * 4);
    let offsets = offsets.offset(u64::from(tagged >> 2) * u64::from(WARP_SIZE));
    let place = (V::place(start, lane), lane, cols.wrapping_sub(1));
    let filled = || LaneEntries::of(chunk, lane, rows, log_lanes, pointers).slots;
    let mut slots = if all_slots_are_safe(values) { width } else { filled() };
    let mut sum;
    // At most twice: over the padding, and without it if the sum is not finite.
    loop {
        sum = lane_sum_by_mode(tagged & 3, slots, place, bases, offsets, values, x);
        if slots == width && !sum.is_finite() {
            let filled = filled();
            if filled < width {
                slots = filled;
                continue;
            }
        }
        break;
    }
    let sum = warp_sum(FULL_MASK, sum, 1 << log_lanes);
    let row = first_row + (lane >> log_lanes);
    if row < rows && lane & ((1 << log_lanes) - 1) == 0 {
        y.store(row, sum);
    }
}

kernel! {
    /// `sellp`: 2^`log_lanes` lanes per row. Block: a multiple of 32; grid: at least one warp per
    /// chunk. `pointers` are those of the CSR matrix, which tell what is padding.
    pub fn spmv_sellp<T: Real>(
        rows: u32,
        cols: u32,
        log_lanes: u32,
        headers: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        pointers: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: DevicePtrMut<T>,
    ) {
        product((rows, cols, log_lanes), headers, bases, offsets, pointers, values, x, y);
    }
    as Sellp
}

kernel! {
    /// [`Sellp`] with values that single precision holds exactly; products and sums as there.
    pub fn spmv_sellp_narrow<T: Real>(
        rows: u32,
        cols: u32,
        log_lanes: u32,
        headers: DevicePtr<[u32; 4]>,
        bases: DevicePtr<u32>,
        offsets: DevicePtr<u32>,
        pointers: DevicePtr<u32>,
        values: DevicePtr<f32>,
        x: DevicePtr<T>,
        y: DevicePtrMut<T>,
    ) {
        let values = Narrow(values);
        product((rows, cols, log_lanes), headers, bases, offsets, pointers, values, x, y);
    }
    as SellpNarrow
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
        pointers: DevicePtr<u32>,
        value: T,
        x: DevicePtr<T>,
        y: DevicePtrMut<T>,
    ) {
        let value = All(value);
        product((rows, cols, log_lanes), headers, bases, offsets, pointers, value, x, y);
    }
    as SellpEqual
}
