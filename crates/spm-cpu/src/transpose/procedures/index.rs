//! Conversion between row pointers and row indices, and histograms of indices.

use std::ops::Range;

use spm_formats::partition;

use super::scan::{exclusive_scan, vertical_scan};
use crate::Threads;
use crate::disjoint::Disjoint;

/// Histograms of equal partitions of `index`, one for each thread: row p of `counts` (threads x
/// `bins`, row-major) counts the values in partition p (R3 IV-F, step 1).
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

/// Row pointers from row indices: the scanned histogram of `index` (up to 2^32 - 1 values) in
/// `pointers` (`bins` + 1 elements, from 0 to the length of `index`); R3 IV-F.
///
/// `counts` (threads x bins) and `sums` (threads) are workspace.
///
/// # Panics
/// When `pointers` is empty, another slice has the wrong length, or a value of `index` is not below
/// `bins`.
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

/// Row indices from row pointers (R3 IV-G). Each thread writes an equal partition of `index`.
///
/// # Panics
/// When the last pointer is not the length of `index`. It may also panic when the pointers do not
/// ascend from 0.
pub fn pointers_to_index(threads: &Threads, pointers: &[u32], index: &mut [u32]) {
    let entries = index.len();
    assert_eq!(pointers[pointers.len() - 1] as usize, entries, "one index for each entry");
    let index = Disjoint::new(index);
    threads.run(|part| {
        let piece = partition::even(entries, threads.count(), part);
        // SAFETY: even parts do not overlap.
        let index = unsafe { index.range(piece.clone()) };
        let mut chunks = ChunksOfRows::new(pointers, piece.clone());
        while let Some((entry, rows)) = chunks.next() {
            index[entry - piece.start..][..rows.len()].copy_from_slice(rows);
        }
    });
}

/// Entries whose rows are expanded at a time; their row indices stay in a first-level cache.
const CHUNK: usize = 512;
/// Row indices that are written at a time.
const SPREAD: usize = 8;

/// [`pointers_to_index`] for chunks of consecutive entries.
///
/// A loop over entries that takes the row indices from here has no branch that depends on the
/// length of a row. For short rows of different lengths a mispredicted row end costs more than the
/// entries.
pub(crate) struct ChunksOfRows<'a> {
    pointers: &'a [u32],
    left: Range<usize>,
    row: usize,
    rows: [u32; CHUNK + SPREAD],
}

impl<'a> ChunksOfRows<'a> {
    pub(crate) fn new(pointers: &'a [u32], entries: Range<usize>) -> Self {
        let row = pointers[1..].partition_point(|&end| end as usize <= entries.start);
        Self { pointers, left: entries, row, rows: [0; CHUNK + SPREAD] }
    }

    /// The first entry of the next chunk, and the row of each of its entries.
    pub(crate) fn next(&mut self) -> Option<(usize, &[u32])> {
        let start = self.left.start;
        if self.left.is_empty() {
            return None;
        }
        let end = self.left.end.min(start + CHUNK);
        loop {
            let (first, last) = (self.pointers[self.row], self.pointers[self.row + 1]);
            let (first, last) = (first as usize, last as usize);
            let (from, to) = (first.max(start) - start, last.min(end) - start);
            let row = self.row as u32;
            // Whatever the row's length: what is too much, the next row overwrites.
            self.rows[from..from + SPREAD].fill(row);
            if to > from + SPREAD {
                self.rows[from + SPREAD..to].fill(row);
            }
            if last >= end {
                break;
            }
            self.row += 1;
        }
        self.left.start = end;
        Some((start, &self.rows[..end - start]))
    }
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
    fn chunks_of_rows_are_the_index() {
        // Rows of 0 to 30 entries, then one of 2000, then rows without any.
        let lengths = (0..200).map(|row| row * 7 % 31).chain([2000, 0, 0]);
        let mut pointers = vec![0_u32];
        let mut index = Vec::new();
        for (row, length) in lengths.enumerate() {
            index.extend(vec![row as u32; length as usize]);
            pointers.push(index.len() as u32);
        }
        for start in [0, 1, 17, 511, 512, 513, 2999, index.len()] {
            for end in [0, 1, 511, 512, 1024, 2500, index.len()].map(|end| end.max(start)) {
                let mut seen = Vec::new();
                let mut chunks = ChunksOfRows::new(&pointers, start..end);
                while let Some((entry, rows)) = chunks.next() {
                    assert_eq!(entry, start + seen.len());
                    seen.extend_from_slice(rows);
                }
                assert_eq!(seen, index[start..end], "{start}..{end}");
            }
        }
    }
}
