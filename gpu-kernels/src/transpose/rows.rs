//! The row of an entry, from the row pointers.

use super::tile::{Mine, TILE_ITEMS, Tile, for_items};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{DevicePtr, thread, warp};

/// The row of entry `entry`: the last one that starts at it or before. The lanes of a warp look
/// together, at 32 pointers at a time.
#[inline(always)]
pub(crate) fn row_of(rows: u32, row_ptr: DevicePtr<u32>, entry: u32) -> u32 {
    let lane = warp::lane_id();
    // pointers[low] <= entry < pointers[low + length]
    let (mut low, mut length) = (0, rows);
    while length > 1 {
        let step = length.div_ceil(WARP_SIZE);
        let probe = lane * step;
        let below = probe < length && row_ptr.load(low + probe) <= entry;
        // Pointers ascend, and the first lane's is below.
        let last = warp::ballot(FULL_MASK, below).count_ones().max(1) - 1;
        low += last * step;
        length = step.min(length - last * step);
    }
    low
}

/// The row of the last entry so far, for the tiles of a block one after the other.
#[derive(Clone, Copy)]
pub(crate) struct RowMarks {
    pub(crate) rows: u32,
    pub(crate) row_ptr: DevicePtr<u32>,
    /// The row of the tile's first entry, or one before it.
    pub(crate) row: u32,
}

impl RowMarks {
    /// The rows of the thread's entries of the tile that has the entries from `begin` to `end`; items
    /// that there are not get any. A row that starts at an entry
    /// leaves its number there, in the tile's right half; the entries after it find it by scans.
    ///
    /// All threads of the block call; the right half is used only by this until after the next
    /// barrier. Keeps the row of the tile's last entry.
    #[inline(always)]
    pub(crate) fn of_tile(
        &mut self,
        tile: Tile,
        (begin, end): (u32, u32),
        mine: Mine,
    ) -> [u32; TILE_ITEMS] {
        let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
        let (lane, my_warp) = (me % WARP_SIZE, me / WARP_SIZE);
        let marks = tile.right;
        // Row 0 starts none but the very first entry, so that 0 is no mark.
        let offset = |i: usize| (me - lane) * TILE_ITEMS as u32 + lane + Mine::step(i);
        for_items!(i => marks.store(offset(i), 0));
        thread::sync_threads();
        let mut row = self.row + 1 + me;
        let mut inside = true;
        while inside && row < self.rows {
            let start = self.row_ptr.load(row);
            inside = start < end;
            if inside && start >= begin && start < self.row_ptr.load(row + 1) {
                marks.store(start - begin, row);
            }
            row = row.saturating_add(block);
        }
        thread::sync_threads();
        let up_to_me = FULL_MASK >> (WARP_SIZE - 1 - lane);
        let mut before = 0;
        let found: [u32; TILE_ITEMS] = for_items!(i => {
            let mark = marks.load_if(mine.has(i), mine.first + Mine::step(i), 0);
            let marked = warp::ballot(FULL_MASK, mark != 0) & up_to_me;
            let source = WARP_SIZE - 1 - marked.leading_zeros().min(WARP_SIZE - 1);
            let last = warp::shuffle_idx(FULL_MASK, mark, source, WARP_SIZE);
            let found = if marked != 0 { last } else { before };
            // The next 32 entries go on with the row of the last of these.
            before = warp::shuffle_idx(FULL_MASK, found, WARP_SIZE - 1, WARP_SIZE);
            found
        });
        if lane == 0 {
            tile.of_warps.store(my_warp, before);
        }
        thread::sync_threads();
        // A lane for each warp.
        let of_warp = tile.of_warps.load_if(lane < block / WARP_SIZE, lane, 0).max(self.row);
        let (mut base, mut last) = (if lane < my_warp { of_warp } else { self.row }, of_warp);
        let mut distance = WARP_SIZE / 2;
        while distance > 0 {
            base = base.max(warp::shuffle_xor(FULL_MASK, base, distance, WARP_SIZE));
            last = last.max(warp::shuffle_xor(FULL_MASK, last, distance, WARP_SIZE));
            distance /= 2;
        }
        self.row = last;
        for_items!(i => found[i].max(base))
    }
}
