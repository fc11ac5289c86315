//! What the report shows of a matrix: statistics, row-length histogram, spy plot.

use spm_formats::stats::MatrixStats;
use spm_formats::{CsrView, RealScalar};

use crate::matrix::Matrix;
use crate::results::{MatrixFile, Spy};

/// Cells of the spy plot along the longer side.
const SPY_CELLS: usize = 64;

/// Describes a matrix.
pub fn describe<T: RealScalar>(matrix: &Matrix<T>) -> MatrixFile {
    let a = matrix.csr().view();
    let stats = match serde_json::to_value(MatrixStats::of(a)) {
        Ok(serde_json::Value::Object(fields)) => fields.into_iter().collect(),
        _ => Default::default(),
    };
    MatrixFile { name: matrix.name.clone(), stats, row_length_histogram: histogram(a), spy: spy(a) }
}

/// Rows by length: one bin each for 0 to 8 entries, then bins that double.
fn histogram<T>(a: CsrView<'_, T>) -> Vec<(u64, u64, u64)> {
    let bin = |length: usize| match length {
        0..=8 => length,
        _ => 5 + length.ilog2() as usize + usize::from(!length.is_power_of_two()),
    };
    let mut counts = Vec::new();
    for row in 0..a.rows() {
        let bin = bin(a.row_range(row).len());
        if counts.len() <= bin {
            counts.resize(bin + 1, 0);
        }
        counts[bin] += 1;
    }
    let bounds = |bin: usize| match bin {
        0..=8 => (bin as u64, bin as u64),
        _ => ((1 << (bin - 6)) + 1, 1 << (bin - 5)),
    };
    let bins = counts.into_iter().enumerate();
    bins.map(|(bin, count)| (bounds(bin).0, bounds(bin).1, count)).collect()
}

/// Entries on a coarse grid with the matrix's proportions.
fn spy<T>(a: CsrView<'_, T>) -> Option<Spy> {
    let (rows, cols) = a.shape();
    let longer = rows.max(cols);
    if rows == 0 || cols == 0 {
        return None;
    }
    let cells =
        |extent: usize| (extent * SPY_CELLS).div_ceil(longer).clamp(1, extent.min(SPY_CELLS));
    let (cell_rows, cell_cols) = (cells(rows), cells(cols));
    let mut counts = vec![vec![0; cell_cols]; cell_rows];
    for row in 0..rows {
        let line = &mut counts[row * cell_rows / rows];
        for &col in a.row(row).0 {
            line[col as usize * cell_cols / cols] += 1;
        }
    }
    Some(Spy { rows: cell_rows, cols: cell_cols, counts })
}

#[cfg(test)]
mod tests {
    use spm_formats::Csr;

    use super::*;

    /// Row `i` has `lengths[i]` entries in its first columns.
    fn rows(cols: usize, lengths: &[u32]) -> Csr<f64> {
        let mut row_ptr = vec![0];
        row_ptr.extend(lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        }));
        let indices: Vec<u32> = lengths.iter().flat_map(|&l| 0..l).collect();
        let values = vec![1.0; indices.len()];
        Csr::new((lengths.len(), cols), row_ptr, indices, values).unwrap()
    }

    #[test]
    fn bins_hold_their_lengths() {
        let a = rows(40, &[0, 8, 9, 16, 17, 32, 33]);
        let bins: Vec<_> = histogram(a.view()).into_iter().filter(|b| b.2 > 0).collect();
        assert_eq!(bins, [(0, 0, 1), (8, 8, 1), (9, 16, 2), (17, 32, 2), (33, 64, 1)]);
    }

    #[test]
    fn spy_counts_every_entry_once() {
        let a = rows(300, &vec![3; 100]);
        let spy = spy(a.view()).unwrap();
        assert_eq!((spy.rows, spy.cols), (22, 64));
        assert_eq!(spy.counts.iter().flatten().sum::<u64>(), 300);
        assert!(spy.counts.iter().all(|line| line[1..].iter().all(|&c| c == 0)));
        assert!(super::spy(rows(0, &[]).view()).is_none());
    }
}
