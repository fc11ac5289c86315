//! The lengths of the rows of a matrix as estimated from some windows of consecutive rows.

use spm_formats::partition;

use crate::simd::LANES;
use crate::spmv::{csr_compact, row};

/// Windows that are looked at, and the rows of one.
const WINDOWS: usize = 16;
pub(super) const WINDOW: usize = 256;
/// Rows of the largest window that rows are sorted in.
pub(in crate::spmv) const LARGEST_WINDOW: usize = WINDOWS * WINDOW;

/// What the lengths of the rows in some windows say of all.
pub(super) struct Lengths {
    /// Elements that chunks of [`LANES`] rows take for each entry: rows in order, and sorted by length in windows of
    /// 256 and of 4096 rows.
    pub(super) sorted: [f64; 3],
    /// Elements for each entry where each row is whole vectors.
    pub(super) padded: f64,
    /// Mispredicted branches of a row: of the sums of CSR, and of `csr-compact`.
    pub(super) mispredictions: [f64; 2],
}

impl Lengths {
    /// Of a matrix whose rows of more than `longest` entries are not in chunks, one number for each order of the rows.
    pub(super) fn sample(row_ptr: &[u32], longest: [usize; 3]) -> Self {
        let rows = row_ptr.len() - 1;
        let length = |row: usize| (row_ptr[row + 1] - row_ptr[row]) as usize;
        let elements = |lengths: &[usize]| -> usize {
            let widths = lengths.chunks(LANES).map(|rows| rows.iter().max().copied().unwrap_or(0));
            LANES * widths.sum::<usize>()
        };
        let in_chunks = |lengths: &[usize], longest: usize| -> Vec<usize> {
            lengths.iter().map(|&length| if length > longest { 0 } else { length }).collect()
        };
        let sorted = |lengths: &[usize], longest: usize| {
            let mut lengths = in_chunks(lengths, longest);
            lengths.sort_unstable();
            lengths
        };
        let windows = rows.div_ceil(WINDOW);
        let (mut sums, mut all) = ([0; 2], Vec::new());
        let (mut entries, mut padded, mut mispredictions) = (0, 0, [0; 2]);
        for window in partition::sampled(windows, windows.div_ceil(WINDOWS).max(1)) {
            let rows = window * WINDOW..rows.min((window + 1) * WINDOW);
            let mut lengths: Vec<usize> = rows.map(length).collect();
            entries += lengths.iter().sum::<usize>();
            padded += lengths.iter().map(|length| length.next_multiple_of(LANES)).sum::<usize>();
            for two in lengths.windows(2) {
                mispredictions[0] += row::mispredictions(two[0], two[1]);
                mispredictions[1] += csr_compact::mispredictions(two[0], two[1]);
            }
            sums[0] += elements(&in_chunks(&lengths, longest[0]));
            sums[1] += elements(&sorted(&lengths, longest[1]));
            all.append(&mut lengths);
        }
        let sums = [sums[0], sums[1], elements(&sorted(&all, longest[2]))];
        let sorted = std::array::from_fn(|order| {
            let entries = in_chunks(&all, longest[order]).iter().sum::<usize>();
            sums[order] as f64 / entries.max(1) as f64
        });
        let padded = padded as f64 / entries.max(1) as f64;
        let mispredictions = mispredictions.map(|count| count as f64 / all.len().max(1) as f64);
        Self { sorted, padded, mispredictions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted() {
        // Nine rows of 3, 3, 8, 0, 17, 1, 1, 1, 1 entries, of which the one of 17 is long.
        let row_ptr = [0, 3, 6, 14, 14, 31, 32, 33, 34, 35];
        let Lengths { sorted, padded, mispredictions } = Lengths::sample(&row_ptr, [16; 3]);
        let in_chunks = 18.0;
        // Widths 8 and 1; in order of length 3 and 8.
        assert_eq!(sorted[0] * in_chunks, 8.0 * 9.0);
        assert_eq!(sorted[1] * in_chunks, 8.0 * 11.0);
        assert_eq!(sorted[2] * in_chunks, 8.0 * 11.0);
        assert_eq!(padded * 35.0, (8 + 8 + 8 + 24 + 4 * 8) as f64);
        // From 3 to 8 all three branches of a row, from 8 to 0 and from 17 to 1 the first one, from 0 to 17 all again; of
        // vectors two, one, two and one.
        assert_eq!(
            mispredictions.map(|of_a_row| of_a_row * 9.0),
            [3.0 + 1.0 + 3.0 + 1.0, 2.0 + 1.0 + 2.0 + 1.0]
        );
        // With the long row, in order of length.
        let Lengths { sorted, .. } = Lengths::sample(&row_ptr, [16, 16, 17]);
        assert_eq!((sorted[1] * in_chunks, sorted[2] * 35.0), (8.0 * 11.0, 8.0 * (8.0 + 17.0)));
        let none = Lengths::sample(&[0], [16; 3]);
        assert_eq!((none.sorted, none.padded, none.mispredictions), ([0.0; 3], 0.0, [0.0; 2]));
    }
}
