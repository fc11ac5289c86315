//! Exclusive scan (R3 IV-A; Blelloch, "Prefix sums and their applications", 1990; Harris,
//! Sengupta, Owens, GPU Gems 3, chapter 39).
//!
//! A block scans twice as many words as it has threads in shared memory: sums go up a binary tree,
//! prefixes come down. The totals of the blocks are scanned in the same way, and added. Few words are scanned by one block
//! in one launch (own).

use crate::collective::{BLOCK_SCAN_WORDS, block_scan};
use crate::device::shared::{Pool, SharedArray};
use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

/// Shared memory of [`ScanBlocks`] for `block` threads, in bytes.
pub fn scan_blocks_bytes(block: u32) -> u32 {
    2 * block * size_of::<u32>() as u32
}

kernel! {
    /// Replaces each piece of 2 x block words of `data` by its exclusive prefix sums, and writes the
    /// total of each piece.
    ///
    /// Grid: pieces of `data`, the last one shorter; block: a power of two; shared memory:
    /// [`scan_blocks_bytes`].
    pub fn transpose_scan_blocks(length: u32, data: DevicePtrMut<u32>, totals: DevicePtrMut<u32>) {
        let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
        let tree: SharedArray<u32> = Pool::new().array(2 * block);
        let first = thread::block_idx_x() * 2 * block;
        let mine = [me, me + block];
        for slot in mine {
            tree.store(slot, if first + slot < length { data.load(first + slot) } else { 0 });
        }
        // Up: the last word of every subtree becomes its sum.
        let (mut nodes, mut distance) = (block, 1);
        while nodes > 0 {
            thread::sync_threads();
            if me < nodes {
                let right = 2 * distance * (me + 1) - 1;
                tree.store(right, tree.load(right).wrapping_add(tree.load(right - distance)));
            }
            nodes /= 2;
            distance *= 2;
        }
        thread::sync_threads();
        if me == 0 {
            totals.store(thread::block_idx_x(), tree.load(2 * block - 1));
            tree.store(2 * block - 1, 0);
        }
        // Down: a subtree's prefix goes to its left half, and with the left half's sum to its right.
        let mut nodes = 1;
        while nodes <= block {
            distance /= 2;
            thread::sync_threads();
            if me < nodes {
                let right = 2 * distance * (me + 1) - 1;
                let (prefix, left) = (tree.load(right), tree.load(right - distance));
                tree.store(right - distance, prefix);
                tree.store(right, prefix.wrapping_add(left));
            }
            nodes *= 2;
        }
        thread::sync_threads();
        for slot in mine {
            if first + slot < length {
                data.store(first + slot, tree.load(slot));
            }
        }
    }
    as ScanBlocks
}

kernel! {
    /// Adds `before[i]` to piece i (2 x block words) of `data`. Grid and block: those of
    /// [`ScanBlocks`].
    pub fn transpose_scan_add(length: u32, before: DevicePtr<u32>, data: DevicePtrMut<u32>) {
        let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
        let first = thread::block_idx_x() * 2 * block;
        let sum = before.load(thread::block_idx_x());
        for slot in [me, me + block] {
            if first + slot < length {
                data.store(first + slot, data.load(first + slot).wrapping_add(sum));
            }
        }
    }
    as ScanAdd
}

/// Words that a thread of [`ScanShort`] takes at once.
const WORDS: usize = 16;

/// Shared memory of [`ScanShort`], in bytes.
pub fn scan_short_bytes() -> u32 {
    BLOCK_SCAN_WORDS * size_of::<u32>() as u32
}

kernel! {
    /// Replaces `data` by its exclusive prefix sums, in turns of 16 words of each thread; `ends` gets `ends_count` of them, from
    /// the first on, `stride` apart. Grid: one block; block: a multiple of 32; shared memory: [`scan_short_bytes`].
    pub fn transpose_scan_short(
        length: u32,
        data: DevicePtrMut<u32>,
        stride: u32,
        ends_count: u32,
        ends: DevicePtrMut<u32>,
    ) {
        let sums: SharedArray<u32> = Pool::new().array(BLOCK_SCAN_WORDS);
        let turn = thread::block_dim_x() * WORDS as u32;
        let (mut first, mut before) = (thread::thread_idx_x() * WORDS as u32, 0_u32);
        for _ in 0..length.div_ceil(turn) {
            let is_whole = first + WORDS as u32 <= length;
            let mut words: [u32; WORDS];
            if is_whole {
                let vector = |i: u32| data.load_vector::<4>(first + 4 * i);
                let [[a, b, c, d], [e, f, g, h], [i, j, k, l], [m, n, o, p]] =
                    [vector(0), vector(1), vector(2), vector(3)];
                words = [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p];
            } else {
                words = core::array::from_fn(|i| {
                    let at = first + i as u32;
                    if at < length { data.load(at) } else { 0 }
                });
            }
            let of_thread = words.iter().fold(0, |sum: u32, &word| sum.wrapping_add(word));
            let (of_threads, of_block) = block_scan(of_thread, sums);
            let mut sum = before.wrapping_add(of_threads);
            for word in &mut words {
                (*word, sum) = (sum, sum.wrapping_add(*word));
            }
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = words;
            let vectors = [[a, b, c, d], [e, f, g, h], [i, j, k, l], [m, n, o, p]];
            let store = |at: u32, [a, b, c, d]: [u32; 4]| {
                if is_whole {
                    data.store_vector(at, [a, b, c, d]);
                } else {
                    for (i, word) in [(0, a), (1, b), (2, c), (3, d)] {
                        if at + i < length {
                            data.store(at + i, word);
                        }
                    }
                }
            };
            store(first, vectors[0]);
            store(first + 4, vectors[1]);
            store(first + 8, vectors[2]);
            store(first + 12, vectors[3]);
            before = before.wrapping_add(of_block);
            first += turn;
        }
        // Other threads have written them.
        thread::sync_threads();
        let mut end = thread::thread_idx_x();
        while end < ends_count {
            ends.store(end, data.load(end * stride));
            end += thread::block_dim_x();
        }
    }
    as ScanShort
}
