//! Stable places of the entries of a tile, by digit (a number below `digits`): entries of one
//! digit keep their order.
//!
//! A tile is the [`ITEMS`] x 32 consecutive entries of each warp, warp after warp. Every warp
//! counts its own digits; the counts of the warps are summed for each digit; an entry's place is
//! cursor(digit) + entries of the digit in the warps before + those before it in its own warp.

use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{thread, warp};

/// Entries of a thread in a tile.
pub const ITEMS: usize = 8;

/// `[f(0), ..., f(ITEMS - 1)]`, written out: a loop over an array that is left to the optimiser may
/// stay one, and then the array lies in local memory.
macro_rules! for_items {
    ($i:ident => $body:expr) => {
        $crate::transpose::place::for_items!(
            $i => $body; 0 1 2 3 4 5 6 7
        )
    };
    ($i:ident => $body:expr; $($number:literal)*) => {
        [$({
            let $i: usize = $number;
            $body
        }),*]
    };
}
pub(crate) use for_items;

/// The digit of no entry.
pub(crate) const NO_DIGIT: u32 = u32::MAX;

/// The digits that the arrays have room for: whole groups of 16 bytes.
#[inline(always)]
const fn padded(digits: u32) -> u32 {
    (digits + 7) & !7
}

/// The counters in shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    /// Digits with room.
    digits: u32,
    warps: u32,
    /// Entries of each digit in each warp; then in that warp and those after it.
    counts: SharedArray<u16>,
    /// The same memory, two counts at a time.
    pairs: SharedArray<u32>,
    /// The same memory, eight counts at a time.
    groups: SharedArray<[u32; 4]>,
    /// The place after the last entry so far, for each digit.
    pub(crate) cursors: SharedArray<u32>,
}

impl Places {
    #[inline(always)]
    pub(crate) fn cut(pool: &mut Pool, digits: u32, warps: u32) -> Self {
        let digits = padded(digits);
        let length = digits * warps;
        let groups = (*pool).clone().array(length / 8);
        let pairs = (*pool).clone().array(length / 2);
        let counts = pool.array(length);
        Self { digits, warps, counts, pairs, groups, cursors: pool.array(digits) }
    }

    /// Places of the entries of a tile, of which the warp has `length`; `digits` are below the
    /// number of digits, or [`NO_DIGIT`] for no entry, whose place means nothing. Advances the
    /// cursors, which must be written and visible to the block; all threads of the block call.
    #[inline(always)]
    pub(crate) fn of_tile(self, length: u32, digits: [u32; ITEMS]) -> [u32; ITEMS] {
        let me = thread::thread_idx_x();
        let (lane, first) = (me % WARP_SIZE, (me / WARP_SIZE) * self.digits);
        let lanes_before = (1_u32 << lane) - 1;

        // The warp may still read its counts of the tile before.
        warp::sync_warp(FULL_MASK);
        let mut group = first / 8 + lane;
        while group < (first + self.digits) / 8 {
            self.groups.store(group, [0; 4]);
            group += WARP_SIZE;
        }
        warp::sync_warp(FULL_MASK);
        let ranks: [u32; ITEMS] = for_items!(i => {
            let mut rank = 0;
            if i as u32 * WARP_SIZE < length {
                let digit = digits[i];
                let peers = warp::match_any(FULL_MASK, digit);
                let mut earlier = 0;
                if digit != NO_DIGIT {
                    earlier = u32::from(self.counts.load(first + digit));
                }
                warp::sync_warp(FULL_MASK);
                rank = (peers & lanes_before).count_ones();
                if digit != NO_DIGIT && rank == 0 {
                    self.counts.store(first + digit, (earlier + peers.count_ones()) as u16);
                }
                warp::sync_warp(FULL_MASK);
                rank += earlier;
            }
            rank
        });
        thread::sync_threads();

        let mut pair = me;
        while pair < self.digits / 2 {
            // A tile has fewer than 2^16 entries: no half overflows into the other.
            let mut sums = 0;
            let mut warp = self.warps;
            while warp > 0 {
                warp -= 1;
                let slot = (warp * self.digits) / 2 + pair;
                sums += self.pairs.load(slot);
                self.pairs.store(slot, sums);
            }
            if sums & 0xffff != 0 {
                self.cursors.store(2 * pair, self.cursors.load(2 * pair) + (sums & 0xffff));
            }
            if sums >> 16 != 0 {
                self.cursors.store(2 * pair + 1, self.cursors.load(2 * pair + 1) + (sums >> 16));
            }
            pair += thread::block_dim_x();
        }
        thread::sync_threads();

        for_items!(i => {
            let mut place = ranks[i];
            if digits[i] != NO_DIGIT {
                let from_here_on = u32::from(self.counts.load(first + digits[i]));
                place += self.cursors.load(digits[i]) - from_here_on;
            }
            place
        })
    }
}
