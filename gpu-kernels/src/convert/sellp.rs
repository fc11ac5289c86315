//! From CSR to SELL-P with shortened columns ([`crate::spmv`]'s `sellp`), one warp per chunk.
//!
//! Measure each chunk, scan the measures (exclusive sums, with one more word at the end), then
//! write columns and values where they belong.

use super::stats::over_warp;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, DevicePtrMut, warp};
use crate::kernel::kernel;
use crate::spmv::compact::{BITS_8, BITS_16, BITS_32, BY_LANE, chunk_and_lane};
use crate::spmv::sellp::LaneEntries;

/// Beyond every column.
const NONE: u32 = u32::MAX;

/// Where the column of a slot is `base + lane` for every lane that has one: the base (wrapping) of
/// the first of them, and whether it serves all.
#[inline(always)]
fn base_by_lane(has: bool, column: u32, lane: u32) -> (u32, bool) {
    let filled = warp::ballot(FULL_MASK, has);
    let base = column.wrapping_sub(lane);
    let first = warp::shuffle_idx(FULL_MASK, base, filled.trailing_zeros() % WARP_SIZE, WARP_SIZE);
    (first, warp::all(FULL_MASK, !has || base == first))
}

kernel! {
    /// How columns are stored, and three measures of each chunk, `chunks` words for each: slots of
    /// a lane rounded up to a multiple of `round` (1 or 4), groups of four of them that have bases,
    /// 128-byte units that their offsets take. With `compact` 0 columns stay 32 bits wide. Block: a
    /// multiple of 32; grid: at least one warp per chunk.
    pub fn convert_sellp_measure(
        rows: u32,
        chunks: u32,
        log_lanes: u32,
        round: u32,
        compact: u32,
        pointers: DevicePtr<u32>,
        col_indices: DevicePtr<u32>,
        measures: DevicePtrMut<u32>,
        modes: DevicePtrMut<u32>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        if chunk >= chunks {
            return;
        }
        let mine = LaneEntries::of(chunk, lane, rows, log_lanes, pointers);
        let width = over_warp(mine.slots, u32::max);
        let mut mode = BITS_32;
        if compact != 0 {
            let (mut by_lane, mut spread) = (true, 0);
            for slot in 0..width {
                let has = slot < mine.slots;
                let column = if has { col_indices.load(mine.entry(slot)) } else { NONE };
                by_lane &= base_by_lane(has, column, lane).1;
                let smallest = over_warp(column, u32::min);
                let largest = over_warp(if has { column } else { 0 }, u32::max);
                spread = (largest - smallest).max(spread);
            }
            mode = if by_lane {
                BY_LANE
            } else if spread < 1 << 8 {
                BITS_8
            } else if spread < 1 << 16 {
                BITS_16
            } else {
                BITS_32
            };
        }
        if lane == 0 {
            let quads = width.div_ceil(4);
            measures.store(chunk, (width + round - 1) & !(round - 1));
            measures.store(chunks + chunk, if mode == BITS_32 { 0 } else { quads });
            // 0, 1, 2 or 4 units of 32 words for each group.
            let units = if mode == BY_LANE { 0 } else { quads << (mode - 1) };
            measures.store(2 * chunks + chunk, units);
            modes.store(chunk, mode);
        }
    }
    as SellpMeasure
}

kernel! {
    /// Headers, bases and offsets of the chunks; `sums` are the exclusive sums of the measures of
    /// [`SellpMeasure`], all in a row, and one more. Launch: as there.
    pub fn convert_sellp_columns(
        rows: u32,
        chunks: u32,
        log_lanes: u32,
        pointers: DevicePtr<u32>,
        col_indices: DevicePtr<u32>,
        sums: DevicePtr<u32>,
        modes: DevicePtr<u32>,
        headers: DevicePtrMut<[u32; 4]>,
        bases: DevicePtrMut<u32>,
        offsets: DevicePtrMut<u32>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        if chunk >= chunks {
            return;
        }
        let mine = LaneEntries::of(chunk, lane, rows, log_lanes, pointers);
        let width = over_warp(mine.slots, u32::max);
        let (start, mode) = (sums.load(chunk), modes.load(chunk));
        let first_group = sums.load(chunks + chunk) - sums.load(chunks);
        let unit = sums.load(2 * chunks + chunk) - sums.load(2 * chunks);
        if lane == 0 {
            headers.store(chunk, [start, width, first_group, unit << 2 | mode]);
        }
        let offsets = offsets.offset(u64::from(unit) * u64::from(WARP_SIZE));
        for group in 0..width.div_ceil(4) {
            let slots = [0, 1, 2, 3].map(|j| {
                let slot = 4 * group + j;
                let has = slot < mine.slots;
                let column = if has { col_indices.load(mine.entry(slot)) } else { NONE };
                let by_lane = base_by_lane(has, column, lane).0;
                let smallest = over_warp(column, u32::min);
                let base = match mode {
                    _ if smallest == NONE => 0,
                    BITS_32 => 0,
                    BY_LANE => by_lane,
                    _ => smallest,
                };
                [base, if has { column.wrapping_sub(base) } else { 0 }]
            });
            let at = u64::from(group * WARP_SIZE + lane);
            let offset = slots.map(|[_, offset]| offset);
            match mode {
                BY_LANE => {}
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
                bases.store_vector::<4>((first_group + group) * 4, slots.map(|[base, _]| base));
            }
        }
    }
    as SellpColumns
}

kernel! {
    /// The values of the slots, 0 where there is no entry; `sums` as for [`SellpColumns`], made with
    /// `round` 1. Launch: as for [`SellpMeasure`].
    pub fn convert_sellp_values<T: Real>(
        rows: u32,
        chunks: u32,
        log_lanes: u32,
        pointers: DevicePtr<u32>,
        sums: DevicePtr<u32>,
        values: DevicePtr<T>,
        slots: DevicePtrMut<T>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        if chunk >= chunks {
            return;
        }
        let mine = LaneEntries::of(chunk, lane, rows, log_lanes, pointers);
        let (start, end) = (sums.load(chunk), sums.load(chunk + 1));
        for slot in 0..end - start {
            let value = if slot < mine.slots { values.load(mine.entry(slot)) } else { T::ZERO };
            slots.store(u64::from(start + slot) * u64::from(WARP_SIZE) + u64::from(lane), value);
        }
    }
    as SellpValues
}

kernel! {
    /// [`SellpValues`] in single precision, which is to hold each of them exactly, four slots of a
    /// lane side by side; `sums` made with `round` 4.
    pub fn convert_sellp_values_narrow<T: Real>(
        rows: u32,
        chunks: u32,
        log_lanes: u32,
        pointers: DevicePtr<u32>,
        sums: DevicePtr<u32>,
        values: DevicePtr<T>,
        slots: DevicePtrMut<f32>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        if chunk >= chunks {
            return;
        }
        let mine = LaneEntries::of(chunk, lane, rows, log_lanes, pointers);
        let (start, end) = (sums.load(chunk), sums.load(chunk + 1));
        for group in 0..(end - start) / 4 {
            let group_values = [0, 1, 2, 3].map(|j| {
                let slot = 4 * group + j;
                if slot < mine.slots { values.load(mine.entry(slot)).narrow() } else { 0.0 }
            });
            let at = u64::from(start / 4 + group) * u64::from(WARP_SIZE) + u64::from(lane);
            slots.store_vector::<4>(at * 4, group_values);
        }
    }
    as SellpValuesNarrow
}
