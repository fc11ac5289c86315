//! Segmented sort (R3 IV-B): each segment of as many keys as a block has threads is sorted alone.

use crate::device::shared::{Pool, SharedArray};
use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

/// Shared memory of [`SegmentedSort`] for `block` threads, in bytes.
pub fn segmented_sort_bytes(block: u32) -> u32 {
    block * size_of::<u64>() as u32
}

kernel! {
    /// Thread i finds the place of key i in its segment: the smaller keys, and the equal ones before
    /// it. Stable.
    ///
    /// Grid: segments of block keys, the last one shorter; shared memory: [`segmented_sort_bytes`].
    pub fn transpose_segmented_sort(
        length: u32,
        keys: DevicePtr<u64>,
        sorted: DevicePtrMut<u64>,
    ) {
        let (me, block) = (thread::thread_idx_x(), thread::block_dim_x());
        let segment: SharedArray<u64> = Pool::new().array(block);
        let first = thread::block_idx_x() * block;
        let here = block.min(length - first);
        let mut key = 0;
        if me < here {
            key = keys.load(first + me);
            segment.store(me, key);
        }
        thread::sync_threads();
        if me < here {
            let mut place = 0;
            let mut other = 0;
            while other < here {
                let value = segment.load(other);
                place += u32::from(value < key || (value == key && other < me));
                other += 1;
            }
            sorted.store(first + place, key);
        }
    }
    as SegmentedSort
}
