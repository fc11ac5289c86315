//! The distinct values of a matrix with few of them, in a hash table, and the code of each.

use super::stats::SURVEY_BLOCK;
use crate::device::shared::{Pool, SharedArray};
use crate::device::{DevicePtr, DevicePtrMut, Real, thread};
use crate::kernel::kernel;

/// Size of the hash table, four times the largest number of values, so that searches are short.
pub const VALUE_TABLE: u32 = 1024;
/// A free element of the table. A value of these bits, a NaN, is refused.
pub const NO_VALUE: u64 = u64::MAX;
/// Elements that are looked at for a value.
const MOST_TRIED: u32 = 32;

/// The upper half of a product: places far apart for neighbours (Fibonacci hashing).
#[inline(always)]
fn hash(word: u64) -> u32 {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// The element of the table at which the search for a value begins.
#[inline(always)]
fn first_place(word: u64) -> u32 {
    hash(word) >> (u32::BITS - VALUE_TABLE.trailing_zeros())
}

/// Values that a thread of [`distinct_values`] looks at, at most.
const SAMPLES_OF_THREAD: u32 = 4;
/// Size of its hash table, twice the number of values.
const SAMPLE_TABLE: u32 = 2 * SAMPLES_OF_THREAD * SURVEY_BLOCK;

/// The table of [`distinct_values`], and the memory that it takes.
#[inline(always)]
fn sample_table() -> (SharedArray<u32>, Pool) {
    let mut pool = Pool::new();
    (pool.array(SAMPLE_TABLE), pool)
}

/// Shared memory of [`distinct_values`].
pub(super) fn value_sample_shared_bytes() -> u32 {
    sample_table().1.bytes()
}

/// How many different hashes evenly spread values have, of which a thread returns its share: no more than there are distinct
/// values. The whole block calls, and may use the shared memory for something else then.
#[inline(always)]
pub(super) fn distinct_values<T: Real>(entries: u32, values: DevicePtr<T>) -> u32 {
    const FREE: u32 = 0;
    const SAMPLES: u32 = SAMPLES_OF_THREAD * SURVEY_BLOCK;
    let (table, _) = sample_table();
    let thread = thread::thread_idx_x();
    for i in 0..SAMPLE_TABLE / SURVEY_BLOCK {
        table.store(thread + i * SURVEY_BLOCK, FREE);
    }
    thread::sync_threads();
    let stride = (entries / SAMPLES).max(1);
    let sampled = [0, 1, 2, 3].map(|i| {
        let k = u64::from(thread + i * SURVEY_BLOCK) * u64::from(stride);
        let k = if k < u64::from(entries) { k as u32 } else { 0 };
        hash(values.load(k).to_word()).max(FREE + 1)
    });
    let mut new = 0;
    for hash in sampled {
        let mut place = hash >> (u32::BITS - SAMPLE_TABLE.trailing_zeros());
        loop {
            let seen = table.atomic_compare_exchange(place, FREE, hash);
            new += u32::from(seen == FREE);
            if seen == FREE || seen == hash {
                break;
            }
            place = (place + 1) % SAMPLE_TABLE;
        }
    }
    thread::sync_threads();
    new
}

kernel! {
    /// The bits of all distinct values, in any place of `table`, which has [`VALUE_TABLE`] of them, all
    /// [`NO_VALUE`] before. The word behind the table becomes 1 where there are too many. Grid: any.
    pub fn convert_find_values<T: Real>(
        entries: u32,
        values: DevicePtr<T>,
        table: DevicePtrMut<u64>,
    ) {
        let stride = thread::grid_dim_x() * thread::block_dim_x();
        let mut k = thread::index_1d();
        let mut before = NO_VALUE;
        while k < entries && table.load(VALUE_TABLE) == 0 {
            let word = values.load_streaming(k).to_word();
            // Neighbours often have the same value.
            let mut found = word == before && word != NO_VALUE;
            before = word;
            let (mut place, mut tried) = (first_place(word), 0);
            while !found && tried < MOST_TRIED && word != NO_VALUE {
                let mut seen = table.load(place);
                if seen == NO_VALUE {
                    seen = table.atomic_compare_exchange(place, NO_VALUE, word);
                }
                found = seen == word || seen == NO_VALUE;
                place = (place + 1) % VALUE_TABLE;
                tried += 1;
            }
            if !found {
                table.store(VALUE_TABLE, 1);
                return;
            }
            if entries - k <= stride {
                return;
            }
            k += stride;
        }
    }
    as FindValues
}

/// The table that [`FindValues`] has filled, with a code for each of its elements.
#[derive(Clone, Copy)]
pub(super) struct ValueCodes {
    pub(super) table: DevicePtr<u64>,
    pub(super) codes: DevicePtr<u32>,
}

impl ValueCodes {
    /// The code of a value, which is in the table.
    #[inline(always)]
    pub(super) fn of<T: Real>(self, value: T) -> u32 {
        let word = value.to_word();
        let (mut place, mut tried) = (first_place(word), 1);
        while self.table.load(place) != word && tried < MOST_TRIED {
            place = (place + 1) % VALUE_TABLE;
            tried += 1;
        }
        self.codes.load(place)
    }
}
