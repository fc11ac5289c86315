//! Statistics of rows and values. Each warp writes its result; the host combines them.

use crate::collective::warp_fold;
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, DevicePtrMut, thread};
use crate::kernel::kernel;

/// Writes a pair for this warp.
#[inline(always)]
fn report(seen: DevicePtrMut<[u32; 2]>, pair: [u32; 2]) {
    let thread = thread::index_1d();
    if thread.is_multiple_of(WARP_SIZE) {
        seen.store(thread / WARP_SIZE, pair);
    }
}

kernel! {
    /// For each warp of the grid, over the rows that it visits: the longest, and how many are empty.
    /// Block: a multiple of 32.
    pub fn convert_row_stats(rows: u32, row_ptr: DevicePtr<u32>, seen: DevicePtrMut<[u32; 2]>) {
        let stride = thread::grid_dim_x() * thread::block_dim_x();
        let (mut longest, mut empty) = (0, 0);
        let mut row = thread::index_1d();
        while row < rows {
            let length = row_ptr.load(row + 1) - row_ptr.load(row);
            longest = length.max(longest);
            empty += u32::from(length == 0);
            if rows - row <= stride {
                break;
            }
            row += stride;
        }
        report(seen, [warp_fold(longest, u32::max), warp_fold(empty, |a, b| a + b)]);
    }
    as RowStats
}

kernel! {
    /// For each warp of the grid, over values that it visits: how many have other bits than the
    /// first of all, and how many single precision cannot hold. A thread that has seen values of both kinds visits no
    /// more. Block: a multiple of 32.
    pub fn convert_value_stats<T: Real>(
        entries: u32,
        values: DevicePtr<T>,
        seen: DevicePtrMut<[u32; 2]>,
    ) {
        let stride = thread::grid_dim_x() * thread::block_dim_x();
        let (mut other, mut wide) = (0, 0);
        let mut k = thread::index_1d();
        if k < entries {
            let first = values.load(0u32).to_word();
            loop {
                let left = entries - k;
                // Beyond the end the last of this thread's values once more, not counted.
                let step = |j: u32| (j * stride).min((left - 1) & !(stride - 1));
                let values = [0, 1, 2, 3].map(|j| values.load_streaming(k + step(j)));
                let words = values.map(T::to_word);
                let exact = values.map(|value| T::widen(value.single()).to_word());
                let mut count = |j: u32, word: u64, exact: u64| {
                    if j * stride < left {
                        other += u32::from(word != first);
                        wide += u32::from(word != exact);
                    }
                };
                count(0, words[0], exact[0]);
                count(1, words[1], exact[1]);
                count(2, words[2], exact[2]);
                count(3, words[3], exact[3]);
                // Single precision holds its own values.
                let general = other > 0 && (wide > 0 || size_of::<T>() <= size_of::<f32>());
                if left <= 4 * stride || general {
                    break;
                }
                k += 4 * stride;
            }
        }
        report(seen, [warp_fold(other, |a, b| a + b), warp_fold(wide, |a, b| a + b)]);
    }
    as ValueStats
}
