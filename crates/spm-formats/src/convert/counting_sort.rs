//! The stable parallel counting sort behind COO to CSR and CSR to CSC.

use std::ops::Range;

use super::rows::GRAIN;
use crate::disjoint::Disjoint;
use crate::huge_pages::zeroed;
use crate::partition::even;
use crate::{Scalar, parallel};

/// Pointers, indices and values of a compressed matrix.
pub(super) type Arrays<T> = (Vec<u32>, Vec<u32>, Vec<T>);

/// Groups entries by their key (< `keys_end`), keeping their order inside a group: pointers to the
/// groups, then `index` and value of every entry. `indices(range)` yields the indices of the
/// entries in `range`.
pub(super) fn counting_sort<T: Scalar, I: Iterator<Item = u32>>(
    keys_end: usize,
    keys: &[u32],
    indices: impl Fn(Range<usize>) -> I + Sync,
    values: &[T],
) -> Arrays<T> {
    let entries = keys.len();
    let mut pointers = vec![0; keys_end + 1];
    let mut indices_out = zeroed(0, entries);
    let mut values_out = zeroed(T::ZERO, entries);
    if entries == 0 {
        return (pointers, indices_out, values_out);
    }
    let chunks = counting_chunks(keys_end, entries);
    // places[chunk][key]: entries with the key in the chunk, then where the next of them goes.
    let mut places = vec![0_u32; chunks * keys_end];
    let mut of_chunks: Vec<_> = places.chunks_mut(keys_end).collect();
    parallel::for_each_mut(&mut of_chunks, 1, |chunk, counts| {
        let counts = &mut **counts;
        for &key in &keys[even(entries, chunks, chunk)] {
            counts[key as usize] += 1;
        }
    });
    let mut end = 0;
    for key in 0..keys_end {
        for chunk in 0..chunks {
            let place = &mut places[chunk * keys_end + key];
            end += std::mem::replace(place, end);
        }
        pointers[key + 1] = end;
    }
    let (indices_to, values_to) = (Disjoint::new(&mut indices_out), Disjoint::new(&mut values_out));
    let mut of_chunks: Vec<_> = places.chunks_mut(keys_end).collect();
    parallel::for_each_mut(&mut of_chunks, 1, |chunk, places| {
        let places = &mut **places;
        let range = even(entries, chunks, chunk);
        let keys = &keys[range.clone()];
        let entries = keys.iter().zip(indices(range.clone())).zip(&values[range]);
        for (entry, ((&key, index), &value)) in entries.enumerate() {
            if let Some(&later) = keys.get(entry + AHEAD) {
                indices_to.prefetch(places[later as usize] as usize);
                values_to.prefetch(places[later as usize] as usize);
            }
            let place = &mut places[key as usize];
            // SAFETY: the scan gave every (key, chunk) a range of its own, as long as its count.
            unsafe {
                indices_to.write_unchecked(*place as usize, index);
                values_to.write_unchecked(*place as usize, value);
            }
            *place += 1;
        }
    });
    (pointers, indices_out, values_out)
}

/// Prefetch distance for the destinations of entries, in entries.
const AHEAD: usize = 24;

/// Number of partitions that are counted independently: one per thread, as long as their counters
/// take less memory than the entries.
fn counting_chunks(counters: usize, entries: usize) -> usize {
    let affordable = (2 * entries / counters.max(1)).max(1);
    rayon::current_num_threads().min(entries.div_ceil(GRAIN)).min(affordable).max(1)
}
