//! Which row an entry belongs to.

use super::place::{ITEMS, for_items};
use crate::device::shared::SharedArray;
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, warp};

/// Consecutive entries that a warp takes at once.
pub const SEGMENT: u32 = ITEMS as u32 * WARP_SIZE;

/// The row of entry `entry`: the last one that starts at it or before.
#[inline(always)]
pub(crate) fn row_of(rows: u32, pointers: DevicePtr<u32>, entry: u32) -> u32 {
    // pointers[low] <= entry < pointers[high]
    let (mut low, mut high) = (0, rows);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if pointers.load(middle) <= entry {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The rows of the entries `first + 32 i + lane` for i below [`ITEMS`]; those from `end` on get any.
/// `first_row` is the row of `first`; `marks` has [`SEGMENT`] words for this warp, all of which
/// calls.
#[inline(always)]
pub(crate) fn rows_of_segment(
    rows: u32,
    pointers: DevicePtr<u32>,
    (first, end): (u32, u32),
    first_row: u32,
    marks: SharedArray<u32>,
    marks_start: u32,
) -> [u32; ITEMS] {
    let lane = warp::lane_id();
    let length = SEGMENT.min(end - first);
    // A row that starts at an entry of the segment leaves its number + 1 there; row 0 starts none
    // but the first, so that 0 is no mark.
    for_items!(i => marks.store(marks_start + i as u32 * WARP_SIZE + lane, 0));
    warp::sync_warp(FULL_MASK);
    let mut row = first_row + 1 + lane;
    let mut inside = true;
    while warp::any(FULL_MASK, inside) {
        inside = false;
        if row < rows {
            let start = pointers.load(row);
            inside = start.wrapping_sub(first) < length;
            if inside && start < pointers.load(row + 1) {
                marks.store(marks_start + start - first, row);
            }
        }
        row += WARP_SIZE;
    }
    warp::sync_warp(FULL_MASK);
    let up_to_me = FULL_MASK >> (WARP_SIZE - 1 - lane);
    let mut result = [first_row; ITEMS];
    for_items!(i => if i as u32 * WARP_SIZE < length {
        let mark = marks.load(marks_start + i as u32 * WARP_SIZE + lane);
        let marked = warp::ballot(FULL_MASK, mark != 0) & up_to_me;
        let source = WARP_SIZE - 1 - marked.leading_zeros().min(WARP_SIZE - 1);
        let found = warp::shuffle_idx(FULL_MASK, mark, source, WARP_SIZE);
        // Without a mark it goes on with the row of the 32 entries before.
        let before = result[i.saturating_sub(1)];
        let before = warp::shuffle_idx(FULL_MASK, before, WARP_SIZE - 1, WARP_SIZE);
        result[i] = if marked != 0 { found } else { before };
    });
    // The next segment overwrites the marks.
    warp::sync_warp(FULL_MASK);
    result
}
