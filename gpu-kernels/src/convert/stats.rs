//! What planning looks at in a matrix before it chooses a kernel: rows and values, and samples of blocks and of
//! the pattern. Each block of threads writes its result; the host combines them.

use super::bsr::sampled_blocks;
use super::dictionary::{distinct_values, value_sample_shared_bytes};
use super::pattern::{PATTERN_PAIRS, SAMPLED_ROWS, pattern_shared_bytes, sample_pattern};
use crate::collective::warp_fold;
use crate::device::shared::{Pool, SharedArray};
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, DevicePtrMut, Real, thread};
use crate::kernel::kernel;

/// Threads of a block of [`Survey`].
pub const SURVEY_BLOCK: u32 = 256;

/// A pair for each warp of a block, and the memory that they take.
#[inline(always)]
fn pairs_of_warps() -> (SharedArray<u32>, Pool) {
    let mut pool = Pool::new();
    (pool.array(2 * SURVEY_BLOCK / WARP_SIZE), pool)
}

/// Shared memory of [`Survey`].
pub fn survey_shared_bytes() -> u32 {
    pairs_of_warps().1.bytes().max(pattern_shared_bytes()).max(value_sample_shared_bytes())
}

/// Writes the pair of this block, from those of its threads: the first numbers are folded, the second ones added. The whole
/// block calls.
#[inline(always)]
fn report(
    seen: DevicePtrMut<[u32; 2]>,
    [first, second]: [u32; 2],
    fold: impl Fn(u32, u32) -> u32 + Copy,
) {
    let (pairs, _) = pairs_of_warps();
    let (thread, add) = (thread::thread_idx_x(), |a, b| a + b);
    let mut of_block = [warp_fold(first, fold), warp_fold(second, add)];
    if thread.is_multiple_of(WARP_SIZE) {
        pairs.store_vector(2 * (thread / WARP_SIZE), of_block);
    }
    thread::sync_threads();
    if thread == 0 {
        for warp in 1..SURVEY_BLOCK / WARP_SIZE {
            let of_warp = [pairs.load(2 * warp), pairs.load(2 * warp + 1)];
            of_block = [fold(of_block[0], of_warp[0]), add(of_block[1], of_warp[1])];
        }
        seen.store(0u32, of_block);
    }
}

/// Of the rows from `row` on in steps of `stride`: the longest, and how many are empty.
#[inline(always)]
fn rows_seen(mut row: u32, stride: u32, rows: u32, row_ptr: DevicePtr<u32>) -> [u32; 2] {
    let (mut longest, mut empty) = (0, 0);
    while row < rows {
        let length = row_ptr.load(row + 1) - row_ptr.load(row);
        longest = length.max(longest);
        empty += u32::from(length == 0);
        if rows - row <= stride {
            break;
        }
        row += stride;
    }
    [longest, empty]
}

/// Of the values from the `k`-th on in steps of `stride`, a power of two: how many have other bits than the first of all, and
/// how many single precision cannot hold. After values of both kinds no more are looked at.
#[inline(always)]
fn values_seen<T: Real>(mut k: u32, stride: u32, entries: u32, values: DevicePtr<T>) -> [u32; 2] {
    let (mut other, mut wide) = (0, 0);
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
    [other, wide]
}

kernel! {
    /// Looks at a matrix in one launch. The grid has, one behind the other,
    ///
    /// - 1 or no block, as `pattern_blocks` says, which writes the pattern of at most 256 rows, evenly spread,
    ///   in [`PATTERN_PAIRS`](super::PATTERN_PAIRS) pairs: the table that [`FindDiagonals`](super::FindDiagonals) begins with, the word behind it, and
    ///   of how many rows the middle entry is more than [`FAR_COLUMNS`](super::FAR_COLUMNS) from that of the row a warp further. Rows and
    ///   columns are less than 2^31.
    /// - 1 or no block, as `distinct_blocks` says, which writes a lower bound of the number of distinct values, from at most
    ///   1024 of them, and 0. There are entries.
    /// - `sample_blocks`: [`BSR_SAMPLES`](super::BSR_SAMPLES) for each of the block sizes that are the bytes of `sizes`, from 1
    ///   to [`MOST_BLOCK_SIZE`](super::MOST_BLOCK_SIZE). Each writes the blocks and the entries of one block row, of at most
    ///   about 1024 entries.
    /// - `row_blocks`: each writes the longest of the rows that it visits, and how many are empty.
    /// - a power of two, or none: each writes how many of the values that it visits have other bits than the first of all,
    ///   and how many single precision cannot hold. A thread that has seen values of both kinds visits no more. The bits of the
    ///   first value are a pair before theirs, the lower half first.
    ///
    /// What they write is in `seen`, in the same order, a pair for each but the first. Block: [`SURVEY_BLOCK`]; shared memory:
    /// [`survey_shared_bytes`].
    pub fn convert_survey<T: Real>(
        rows: u32,
        entries: u32,
        pattern_blocks: u32,
        distinct_blocks: u32,
        sample_blocks: u32,
        row_blocks: u32,
        sizes: u64,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        seen: DevicePtrMut<[u32; 2]>,
    ) {
        const { assert!(SAMPLED_ROWS <= SURVEY_BLOCK) };
        let mut block = thread::block_idx_x();
        // What waits most begins first.
        if block < pattern_blocks {
            sample_pattern(rows, row_ptr, col_ind, seen);
            return;
        }
        block -= pattern_blocks;
        let seen = seen.offset(u64::from(pattern_blocks * PATTERN_PAIRS + block));
        let thread = |block: u32| block * SURVEY_BLOCK + thread::thread_idx_x();
        if block < distinct_blocks {
            report(seen, [distinct_values(entries, values), 0], |a, b| a + b);
            return;
        }
        block -= distinct_blocks;
        if block < sample_blocks {
            report(seen, sampled_blocks(block, rows, sizes, row_ptr, col_ind), |a, b| a + b);
            return;
        }
        block -= sample_blocks;
        if block < row_blocks {
            let of_rows = rows_seen(thread(block), row_blocks * SURVEY_BLOCK, rows, row_ptr);
            report(seen, of_rows, u32::max);
            return;
        }
        block -= row_blocks;
        let before = pattern_blocks + distinct_blocks + sample_blocks + row_blocks;
        let stride = (thread::grid_dim_x() - before) * SURVEY_BLOCK;
        if thread(block) == 0 {
            let first = values.load(0u32).to_word();
            seen.store(0u32, [first as u32, (first >> 32) as u32]);
        }
        let of_values = values_seen(thread(block), stride, entries, values);
        report(seen.offset(1u32), of_values, |a, b| a + b);
    }
    as Survey
}
