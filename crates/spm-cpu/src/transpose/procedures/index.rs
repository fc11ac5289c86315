//! Between pointers (where each row starts) and indices (the row of each entry).

use std::ops::Range;

use spm_formats::partition;

use super::scan::{exclusive_scan, vertical_scan};
use crate::Threads;
use crate::disjoint::Disjoint;

/// Cuts `index` into even pieces, one for each thread, and counts in row p of `counts` (threads x
/// `bins`, row-major) how often each value occurs in piece p: R3 IV-F, step 1.
///
/// # Panics
/// When `counts` has not threads x `bins` elements or a value of `index` is not below `bins`.
pub fn count_per_part(threads: &Threads, index: &[u32], bins: usize, counts: &mut [u32]) {
    let parts = threads.count();
    assert_eq!(counts.len(), parts * bins, "one row of counts for each thread");
    let counts = Disjoint::new(counts);
    threads.run(|part| {
        // SAFETY: one row for each part.
        let counts = unsafe { counts.range(part * bins..(part + 1) * bins) };
        counts.fill(0);
        for &value in &index[partition::even(index.len(), parts, part)] {
            counts[value as usize] += 1;
        }
    });
}

/// How often each value occurs in `index`, as pointers (`bins` + 1, from 0 to the length): R3 IV-F.
///
/// `counts` (threads x bins) and `sums` (threads) are workspace.
///
/// # Panics
/// When a slice has the wrong length or a value of `index` is not below `bins`.
pub fn index_to_pointers(
    threads: &Threads,
    index: &[u32],
    pointers: &mut [u32],
    counts: &mut [u32],
    sums: &mut [u32],
) {
    let bins = pointers.len() - 1;
    count_per_part(threads, index, bins, counts);
    vertical_scan(threads, counts, bins, &mut pointers[..bins]);
    pointers[bins] = exclusive_scan(threads, &mut pointers[..bins], sums);
}

/// The row of each entry, from row pointers: R3 IV-G. Each thread fills an even piece of `index`.
///
/// # Panics
/// When the last pointer is not the length of `index`.
pub fn pointers_to_index(threads: &Threads, pointers: &[u32], index: &mut [u32]) {
    let entries = index.len();
    assert_eq!(pointers[pointers.len() - 1] as usize, entries, "one index for each entry");
    let index = Disjoint::new(index);
    threads.run(|part| {
        let piece = partition::even(entries, threads.count(), part);
        // SAFETY: even parts do not overlap.
        let index = unsafe { index.range(piece.clone()) };
        for (row, entries) in rows_of(pointers, piece.clone()) {
            index[entries.start - piece.start..entries.end - piece.start].fill(row as u32);
        }
    });
}

/// The rows that own some of `entries`, in order, each with those of its entries that are in the
/// range.
pub(crate) fn rows_of(
    pointers: &[u32],
    entries: Range<usize>,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    let rows = pointers.len() - 1;
    let first = pointers[1..].partition_point(|&end| end as usize <= entries.start);
    let pieces = (first..rows).map(move |row| {
        let (start, end) = (pointers[row] as usize, pointers[row + 1] as usize);
        (row, start.max(entries.start)..end.min(entries.end))
    });
    // A range beyond the entries has start >= end: the row starts after the last one wanted.
    let wanted = entries.end;
    pieces.take_while(move |(_, piece)| piece.start < wanted).filter(|(_, piece)| !piece.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    // Rows of 2, 0, 3, 0, 1 entries.
    const POINTERS: [u32; 6] = [0, 2, 2, 5, 5, 6];
    const INDEX: [u32; 6] = [0, 0, 2, 2, 2, 4];

    #[test]
    fn counts_of_two_pieces() {
        let mut counts = [9; 6];
        count_per_part(&Threads::new(2), &[0, 2, 2, 1, 0], 3, &mut counts);
        assert_eq!(counts, [1, 0, 2, 1, 1, 0]);
    }

    #[test]
    fn pointers_and_index_are_inverse() {
        for count in [1, 2, 3, 7] {
            let threads = Threads::new(count);
            let mut index = [9; 6];
            pointers_to_index(&threads, &POINTERS, &mut index);
            assert_eq!(index, INDEX);
            let (mut pointers, mut counts, mut sums) = ([9; 6], vec![9; 5 * count], vec![9; count]);
            let mut mixed = index;
            mixed.reverse();
            index_to_pointers(&threads, &mixed, &mut pointers, &mut counts, &mut sums);
            assert_eq!(pointers, POINTERS);
        }
        pointers_to_index(&Threads::new(2), &[0, 0], &mut []);
    }

    #[test]
    fn rows_of_any_range() {
        for start in 0..=6 {
            for end in start..=6 {
                let mut seen = Vec::new();
                for (row, entries) in rows_of(&POINTERS, start..end) {
                    assert!(!entries.is_empty());
                    seen.extend(entries.map(|_| row as u32));
                }
                assert_eq!(seen, INDEX[start..end]);
            }
        }
    }
}
