//! Runs of consecutive rows with a limited number of entries, and rows that have more.

use std::ops::Range;

use spm_formats::{CsrView, Scalar};

/// First row of each block of CSR-Adaptive, and the number of rows: consecutive rows with no more than `entries`
/// entries together, or one longer row. Without rows there is one empty block.
pub(super) fn row_blocks<T: Scalar>(a: CsrView<'_, T>, entries: usize) -> Vec<u32> {
    let mut blocks = vec![0];
    let mut first = 0;
    while first < a.rows() {
        first = run_end(a.row_ptr(), first..a.rows(), entries, usize::MAX);
        blocks.push(first as u32);
    }
    if a.rows() == 0 {
        blocks.push(0);
    }
    blocks
}

/// The end of the longest run of `rows`, from the first on, with no more than `entries` entries together, or of
/// one row, and no more than `most` rows. `rows` must not be empty.
pub(super) fn run_end(row_ptr: &[u32], rows: Range<usize>, entries: usize, most: usize) -> usize {
    let Range { start, end } = rows;
    let last = row_ptr[start] as usize + entries;
    let ends = &row_ptr[start + 1..=end.min(start.saturating_add(most))];
    start + ends.partition_point(|&end| end as usize <= last).max(1)
}

/// The rows of more than `longest` entries.
pub(super) fn long_rows(row_ptr: &[u32], longest: usize) -> Vec<u32> {
    let longest = u32::try_from(longest).unwrap_or(u32::MAX);
    let rows = row_ptr.len() - 1;
    let mut long = Vec::new();
    for first in (0..rows).step_by(AT_ONCE) {
        let pointers = &row_ptr[first..=rows.min(first + AT_ONCE)];
        let lengths = || pointers.iter().zip(&pointers[1..]).map(|(start, end)| end - start);
        // Without a branch for each row.
        if lengths().fold(false, |any, length| any | (length > longest)) {
            let rows = (first as u32..).zip(lengths());
            long.extend(rows.filter(|&(_, length)| length > longest).map(|(row, _)| row));
        }
    }
    long
}

/// First entry and end of the parts of a row, which have nearly the same size; `count` says how many for its length.
pub(super) fn parts_of_row(
    row_ptr: &[u32],
    row: u32,
    count: impl FnOnce(usize) -> usize,
) -> impl Iterator<Item = [u32; 2]> {
    let [start, end] = [0, 1].map(|i| row_ptr[row as usize + i] as usize);
    let length = end - start;
    let count = count(length);
    let bound = move |part: usize| (start + part * length / count) as u32;
    (0..count).map(move |part| [bound(part), bound(part + 1)])
}

/// Rows that are looked at together.
const AT_ONCE: usize = 64;

#[cfg(test)]
mod tests {
    use spm_formats::Csr;

    use super::*;

    fn blocks(lengths: &[u32], entries: usize) -> Vec<u32> {
        let mut row_ptr = vec![0];
        row_ptr.extend(lengths.iter().scan(0, |sum, &length| {
            *sum += length;
            Some(*sum)
        }));
        let total = row_ptr[lengths.len()] as usize;
        let a = Csr::new((lengths.len(), 9), row_ptr, columns(lengths), vec![1.0; total]).unwrap();
        row_blocks(a.view(), entries)
    }

    fn columns(lengths: &[u32]) -> Vec<u32> {
        lengths.iter().flat_map(|&length| 0..length).collect()
    }

    #[test]
    fn rows_are_gathered_until_the_block_is_full() {
        assert_eq!(blocks(&[2, 2, 1, 4, 0, 1], 4), [0, 2, 3, 5, 6]);
    }

    #[test]
    fn a_longer_row_is_a_block_of_its_own() {
        assert_eq!(blocks(&[1, 9, 1, 1], 4), [0, 1, 2, 4]);
        assert_eq!(blocks(&[9, 0], 4), [0, 1, 2]);
    }

    #[test]
    fn runs_end_at_entries_rows_and_the_end() {
        let row_ptr = [0, 2, 4, 5, 9, 9, 9, 10];
        let end = |rows, entries, most| run_end(&row_ptr, rows, entries, most);
        assert_eq!((end(0..7, 4, 9), end(0..7, 5, 9), end(0..7, 5, 2)), (2, 3, 2));
        assert_eq!(
            (end(3..7, 4, 9), end(3..7, 1, 9), end(3..7, 0, 9), end(4..7, 0, 9)),
            (6, 4, 4, 6)
        );
        assert_eq!((end(3..5, 9, 9), end(6..7, 9, usize::MAX)), (5, 7));
    }

    #[test]
    fn long_rows_are_found_in_every_group() {
        let mut row_ptr = vec![0];
        let lengths =
            (0..2 * AT_ONCE as u32 + 3).map(|row| if row % 61 == 60 { 9 } else { row % 8 });
        row_ptr.extend(lengths.scan(0, |sum, length| {
            *sum += length;
            Some(*sum)
        }));
        assert_eq!(long_rows(&row_ptr, 8), [60, 121]);
        assert_eq!((long_rows(&row_ptr, 6).len(), long_rows(&row_ptr, 9).len()), (18, 0));
        assert_eq!(long_rows(&[0], 0), [0_u32; 0]);
        assert_eq!(long_rows(&[0, u32::MAX], usize::MAX), [0_u32; 0]);
    }

    #[test]
    fn no_rows_are_one_empty_block() {
        assert_eq!(blocks(&[], 4), [0, 0]);
    }
}
