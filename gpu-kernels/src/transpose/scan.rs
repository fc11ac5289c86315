//! Exclusive scan (R3 IV-A; Blelloch, "Prefix sums and their applications", 1990; Harris,
//! Sengupta, Owens, GPU Gems 3, chapter 39).
//!
//! A block scans twice as many words as it has threads in shared memory: sums go up a binary tree,
//! prefixes come down. The totals of the blocks are scanned in the same way, and added.

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
