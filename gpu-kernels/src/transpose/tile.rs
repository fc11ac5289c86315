//! Stable sort of a tile of entries by digit (a number below `digits`) in shared memory, before the
//! tile is written.
//!
//! A tile is the [`TILE_ITEMS`] x 32 consecutive entries (or fewer) of each warp, warp after warp.
//! Every warp counts its own digits; the counts are scanned over the digits, and for each digit over
//! the warps; an entry's place in the tile is the start of its digit in its warp + those of its
//! digit before it there. (The ranking of Merrill and Grimshaw's radix sort, as Adinets and Merrill
//! describe it for warps: "Onesweep", 2022.)

use crate::collective::{BLOCK_SCAN_WORDS, block_scan};
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::{FULL_MASK, WARP_SIZE};
use crate::device::{opaque, pack_halves, thread, unpack_halves, warp};

/// Entries of a thread in a tile, at most.
pub const TILE_ITEMS: usize = 12;

/// `[f(0), ..., f(TILE_ITEMS - 1)]`, written out: a loop over an array that is left to the optimiser
/// may stay one, and then the array lies in local memory.
macro_rules! for_items {
    ($i:ident => $body:expr) => {
        $crate::transpose::tile::for_items!(
            $i => $body; 0 1 2 3 4 5 6 7 8 9 10 11
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

/// A number below 2^16 for each item, two in a register.
#[derive(Clone, Copy)]
pub(crate) struct Packed([u32; TILE_ITEMS / 2]);

impl Packed {
    /// `f(0), ..., f(TILE_ITEMS - 1)`, in this order.
    #[inline(always)]
    pub(crate) fn new(mut f: impl FnMut(usize) -> u32) -> Self {
        Self(for_items!(i => pack_halves([f(2 * i), f(2 * i + 1)]); 0 1 2 3 4 5))
    }

    /// Number `i`, to be called with a literal.
    #[inline(always)]
    pub(crate) fn get(self, i: usize) -> u32 {
        unpack_halves(self.0[i / 2])[i % 2]
    }
}

/// The entries of a thread in a tile, or their places: every 32nd of its warp's, which lie together.
#[derive(Clone, Copy)]
pub(crate) struct Mine {
    /// Number in the tile of the first one.
    pub(crate) first: u32,
    /// Entries of the warp from that one on.
    left: u32,
}

impl Mine {
    /// For warps of `items` x 32 entries in a tile of `length`.
    #[inline(always)]
    pub(crate) fn of(items: u32, length: u32) -> Self {
        let (lane, my_warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
        let start = my_warp * items * WARP_SIZE;
        let of_warp = (items * WARP_SIZE).min(length.saturating_sub(start));
        Self { first: start + lane, left: of_warp.saturating_sub(lane) }
    }

    /// The same, for a part of a kernel whose comparisons are not to be kept from an earlier part.
    #[inline(always)]
    pub(crate) fn again(self) -> Self {
        Self { left: opaque(self.left), ..self }
    }

    /// Number of item `i` after the first one, to be called with a literal.
    #[inline(always)]
    pub(crate) fn step(i: usize) -> u32 {
        i as u32 * WARP_SIZE
    }

    /// Whether there is an item `i`.
    #[inline(always)]
    pub(crate) fn has(self, i: usize) -> bool {
        Self::step(i) < self.left
    }
}

/// The column of no entry.
pub(crate) const NO_COLUMN: u32 = u32::MAX;

/// The digits that there are counters for: one more, which items without an entry get, so that they
/// come last in the tile and need no care; in whole groups of 16 bytes.
#[inline(always)]
pub(crate) const fn counted(digits: u32) -> u32 {
    (digits + 1 + 7) & !7
}

/// The shared memory of a block that orders tiles.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    /// Digits that are counted.
    digits: u32,
    warps: u32,
    /// Entries of each digit in each warp; then their first place in the tile.
    counts: SharedArray<u16>,
    /// The same memory, four counts at a time.
    quads: SharedArray<u64>,
    /// The same memory, eight counts at a time.
    groups: SharedArray<[u32; 4]>,
    /// The same memory: the first half of it for columns or for rows that are counted, ...
    pub(crate) left: SharedArray<u32>,
    /// ... the second half, ...
    pub(crate) right: SharedArray<u32>,
    /// ... or all of it for values.
    pub(crate) words: SharedArray<u64>,
    /// For scans.
    sums: SharedArray<u32>,
    /// A word for each warp.
    pub(crate) of_warps: SharedArray<u32>,
}

impl Tile {
    #[inline(always)]
    pub(crate) fn cut(pool: &mut Pool, digits: u32, block: u32) -> Self {
        let (digits, warps) = (counted(digits), block / WARP_SIZE);
        let tile = block * TILE_ITEMS as u32;
        let length = digits * warps;
        // Views of the same memory; the tile is cut first, so that all of them start at 0.
        let view = *pool;
        let (mut halves, mut counters) = (view, view);
        let (left, right) = (halves.array(tile), halves.array(tile));
        let counts = counters.array(length);
        *pool = if halves.bytes() > counters.bytes() { halves } else { counters };
        let (quads, groups) = ({ view }.array(length / 4), { view }.array(length / 8));
        let words = { view }.array(tile);
        Self {
            digits,
            warps,
            counts,
            quads,
            groups,
            left,
            right,
            words,
            sums: pool.array(BLOCK_SCAN_WORDS),
            of_warps: pool.array(WARP_SIZE),
        }
    }

    /// Places in the tile of the items of this thread, of which number i has the digit
    /// `digit_of(i)`: below the number of digits, or equal to it where there is no entry; these
    /// come after all the others. No digit has more than `bits` bits. For every four digits (and the
    /// one of no entry, and some that no item has) one thread calls
    /// `on_digits(first of them, first places, counts)`.
    ///
    /// All threads of the block call, and none uses the memory of the tile any more; after it, all
    /// threads see what `on_digits` did, and the memory may be used again after a barrier.
    #[inline(always)]
    pub(crate) fn places(
        self,
        digit_of: impl Fn(usize) -> u32,
        bits: u32,
        mut on_digits: impl FnMut(u32, [u32; 4], [u32; 4]),
    ) -> Packed {
        let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
        let (lane, first) = (me % WARP_SIZE, (me / WARP_SIZE) * self.digits);
        let lanes_before = (1_u32 << lane) - 1;

        let mut group = first / 8 + lane;
        while group < (first + self.digits) / 8 {
            self.groups.store(group, [0; 4]);
            group += WARP_SIZE;
        }
        warp::sync_warp(FULL_MASK);
        let ranks = Packed::new(|i| {
            let digit = digit_of(i);
            let (slot, counts) = (first + digit, self.counts);
            let peers = peers(digit, bits);
            let rank = (peers & lanes_before).count_ones();
            let earlier = u32::from(counts.load(slot));
            warp::sync_warp(FULL_MASK);
            counts.store_if(rank == 0, slot, (earlier + peers.count_ones()) as u16);
            warp::sync_warp(FULL_MASK);
            rank + earlier
        });
        thread::sync_threads();

        let stride = self.digits / 4;
        let end = self.warps * stride;
        let (mut before, mut start) = (0, 0);
        while start < stride {
            let quad = start + me;
            // Four sums of 16 bits: a tile has fewer than 2^16 entries, so that none overflows.
            let mut sums = 0_u64;
            if quad < stride {
                let mut slot = quad;
                while slot < end {
                    let here = self.four_warps(slot, stride, end);
                    sums += (here[0] + here[1]) + (here[2] + here[3]);
                    slot += 4 * stride;
                }
            }
            let counts = unpacked(sums);
            let total = counts[0] + counts[1] + counts[2] + counts[3];
            let (exclusive, all) = block_scan(total, self.sums);
            if quad < stride {
                let a = before + exclusive;
                let (b, c) = (a + counts[0], a + counts[0] + counts[1]);
                let starts = [a, b, c, c + counts[2]];
                on_digits(4 * quad, starts, counts);
                let mut places = packed(starts);
                let mut slot = quad;
                while slot < end {
                    let here = self.four_warps(slot, stride, end);
                    for_items!(i => {
                        let at = slot + i as u32 * stride;
                        self.quads.store_if(at < end, at, places);
                        places += here[i];
                    }; 0 1 2 3);
                    slot += 4 * stride;
                }
            }
            before += all;
            start += block;
        }
        thread::sync_threads();

        Packed::new(|i| ranks.get(i) + u32::from(self.counts.load(first + digit_of(i))))
    }

    /// Four digits' counts in a warp and the three after it, which are `stride` words apart up to
    /// `end`: loads that do not wait for each other.
    #[inline(always)]
    fn four_warps(self, slot: u32, stride: u32, end: u32) -> [u64; 4] {
        for_items!(i => {
            let at = slot + i as u32 * stride;
            self.quads.load_if(at < end, at, 0)
        }; 0 1 2 3)
    }
}

/// The lanes with the same digit, of at most `bits` bits. A vote for each bit: `match.any` takes two
/// cycles of the multiprocessor for each digit that a warp has.
#[inline(always)]
fn peers(digit: u32, bits: u32) -> u32 {
    let agreed = |peers: u32, bit: u32| {
        // One test for the vote and for what follows from it.
        let set = opaque(digit & (1 << bit)) != 0;
        let votes = warp::ballot(FULL_MASK, set);
        peers & if set { votes } else { !votes }
    };
    let mut all = FULL_MASK;
    for_items!(i => all = agreed(all, i as u32); 0 1 2 3 4 5);
    if bits > 6 {
        for_items!(i => all = agreed(all, i as u32); 6 7);
    }
    if bits > 8 {
        for_items!(i => all = agreed(all, i as u32); 8 9);
    }
    if bits > 10 {
        for_items!(i => all = agreed(all, i as u32); 10 11);
    }
    let mut bit = 12;
    while bit < bits {
        all = agreed(all, bit);
        bit += 1;
    }
    all
}

/// Bits of the digits up to and with `digit`.
#[inline(always)]
pub(crate) fn bits(digit: u32) -> u32 {
    u32::BITS - digit.leading_zeros()
}

#[inline(always)]
fn unpacked(word: u64) -> [u32; 4] {
    let (low, high) = (word as u32, (word >> 32) as u32);
    [low & 0xffff, low >> 16, high & 0xffff, high >> 16]
}

#[inline(always)]
fn packed([a, b, c, d]: [u32; 4]) -> u64 {
    u64::from(a | (b << 16)) | (u64::from(c | (d << 16)) << 32)
}
