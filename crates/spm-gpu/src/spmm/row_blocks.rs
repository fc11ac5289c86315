//! The row blocks of CSR-Adaptive: consecutive rows with a limited number of entries.

use spm_formats::{CsrView, Scalar};

/// First row of each block, and the number of rows: consecutive rows with no more than `entries`
/// entries together, or one longer row. Without rows there is one empty block.
pub(super) fn row_blocks<T: Scalar>(a: CsrView<'_, T>, entries: usize) -> Vec<u32> {
    let row_ptr = a.row_ptr();
    let mut blocks = vec![0];
    let mut first = 0;
    for row in 0..a.rows() {
        let with_this_row = (row_ptr[row + 1] - row_ptr[first]) as usize;
        if with_this_row > entries && row > first {
            blocks.push(row as u32);
            first = row;
        }
    }
    blocks.push(a.rows() as u32);
    blocks
}

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
    fn no_rows_are_one_empty_block() {
        assert_eq!(blocks(&[], 4), [0, 0]);
    }
}
