//! Statistics of a matrix's structure, for kernel selection and `cargo xtask info`.

use std::ops::Range;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::{CsrView, Scalar, parallel, partition};

/// Hack size at which [`Padding::hll`] is taken.
pub const HLL_HACK_SIZE: usize = 32;
/// Chunk C at which [`Padding::sell`] is taken.
pub const SELL_CHUNK: usize = 32;
/// Sorting window sigma at which [`Padding::sell`] is taken.
pub const SELL_SIGMA: usize = 1024;

/// Statistics of the row lengths (entries per row).
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct RowLengthStats {
    /// Number of rows.
    pub rows: usize,
    /// Number of entries.
    pub entries: usize,
    /// Shortest row.
    pub min: u32,
    /// First quartile, interpolated linearly between neighbouring ranks, as the others are.
    pub lower_quartile: f64,
    /// Second quartile.
    pub median: f64,
    /// Third quartile.
    pub upper_quartile: f64,
    /// Longest row.
    pub max: u32,
    /// Number of the first row of that length; 0 when there are no rows.
    pub longest_row: usize,
    /// Mean row length.
    pub mean: f64,
    /// Population variance of the row lengths.
    pub variance: f64,
    /// Third standardised moment; 0 when all rows are equally long.
    pub skewness: f64,
    /// Rows without entries.
    pub empty_rows: usize,
}

/// Lengths below this are counted in an array; longer rows, few by their nature, are listed.
const COUNTED: usize = 4096;

/// Minimum rows of a task, so that its histogram pays.
const ROWS_PER_TASK: usize = 4096;

/// Rows by length.
struct Histogram {
    counts: Vec<usize>,
    /// Lengths of the rows of [`COUNTED`] entries and more.
    long: Vec<u32>,
    max: u32,
    longest_row: usize,
}

impl Histogram {
    fn new() -> Self {
        Self { counts: vec![0; COUNTED], long: Vec::new(), max: 0, longest_row: usize::MAX }
    }

    fn add(&mut self, row: usize, length: u32) {
        match self.counts.get_mut(length as usize) {
            Some(count) => *count += 1,
            None => self.long.push(length),
        }
        if length > self.max || self.longest_row == usize::MAX {
            (self.max, self.longest_row) = (length, row);
        }
    }

    /// Takes in the rows after these.
    fn append(mut self, mut later: Self) -> Self {
        for (count, more) in self.counts.iter_mut().zip(&later.counts) {
            *count += more;
        }
        self.long.append(&mut later.long);
        if later.max > self.max || self.longest_row == usize::MAX {
            (self.max, self.longest_row) = (later.max, later.longest_row);
        }
        self
    }

    /// (length, rows) in ascending order of length.
    fn bins(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        let counted = self.counts.iter().enumerate().map(|(length, &count)| (length as u32, count));
        counted.filter(|&(_, count)| count > 0).chain(self.long.iter().map(|&length| (length, 1)))
    }

    /// Length of the row of rank `rank` (from 0) when rows are sorted by length.
    fn ranked(&self, rank: usize) -> u32 {
        let mut below = 0;
        for (length, count) in self.bins() {
            below += count;
            if rank < below {
                return length;
            }
        }
        0
    }
}

impl RowLengthStats {
    /// From the `rows + 1` row pointers, in one parallel pass: O(rows).
    ///
    /// # Panics
    /// When `row_ptr` is empty or descends.
    pub fn of(row_ptr: &[u32]) -> Self {
        let rows = row_ptr.len().checked_sub(1).expect("rows + 1 pointers");
        let tasks = rayon::current_num_threads().min(rows / ROWS_PER_TASK + 1);
        let histograms = parallel::map(tasks, 1, |task| {
            let mut histogram = Histogram::new();
            for row in partition::even(rows, tasks, task) {
                let length = row_ptr[row + 1].checked_sub(row_ptr[row]);
                histogram.add(row, length.expect("row pointers ascend"));
            }
            histogram
        });
        let mut histogram = histograms.into_iter().fold(Histogram::new(), Histogram::append);
        histogram.long.sort_unstable();
        let entries = (row_ptr[rows] - row_ptr[0]) as usize;
        let count = rows.max(1) as f64;
        let mean = entries as f64 / count;
        // Summed over lengths in ascending order, so that the thread count changes no bit.
        let moment = |power| {
            let terms = histogram.bins().map(|(l, n)| (f64::from(l) - mean).powi(power) * n as f64);
            terms.sum::<f64>() / count
        };
        let variance = moment(2);
        let quantile = |quarters: usize| {
            let position = rows.saturating_sub(1) as f64 * quarters as f64 / 4.0;
            let rank = position.floor() as usize;
            let low = f64::from(histogram.ranked(rank));
            let high = f64::from(histogram.ranked((rank + 1).min(rows.saturating_sub(1))));
            low + (high - low) * (position - rank as f64)
        };
        Self {
            rows,
            entries,
            min: histogram.ranked(0),
            lower_quartile: quantile(1),
            median: quantile(2),
            upper_quartile: quantile(3),
            max: histogram.max,
            longest_row: if rows == 0 { 0 } else { histogram.longest_row },
            mean,
            variance,
            skewness: if variance > 0.0 { moment(3) / variance.powf(1.5) } else { 0.0 },
            empty_rows: histogram.counts[0],
        }
    }

    /// Standard deviation over mean; 0 for a matrix without entries.
    pub fn coefficient_of_variation(&self) -> f64 {
        if self.entries == 0 { 0.0 } else { self.variance.sqrt() / self.mean }
    }
}

/// Stored elements per entry in padded formats: 1 means no padding. A matrix without entries has
/// ratio 1.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct Padding {
    /// ELLPACK, without pitch.
    pub ell: f64,
    /// HLL with hacks of [`HLL_HACK_SIZE`] rows.
    pub hll: f64,
    /// SELL-C-sigma with C = [`SELL_CHUNK`], sigma = [`SELL_SIGMA`].
    pub sell: f64,
}

impl Padding {
    /// From the `rows + 1` ascending row pointers: O(rows log sigma), parallel.
    ///
    /// # Panics
    /// When `row_ptr` is empty.
    pub fn of(row_ptr: &[u32]) -> Self {
        let rows = row_ptr.len() - 1;
        let entries = row_ptr[rows] - row_ptr[0];
        let ratio = |elements: u64| {
            if entries == 0 { 1.0 } else { elements as f64 / f64::from(entries) }
        };
        let longest = |rows: Range<usize>| {
            u64::from(lengths(&row_ptr[rows.start..=rows.end]).max().unwrap_or(0))
        };
        let longest = parallel::reduce(rows, 1, 0, &longest, u64::max);
        Self {
            ell: ratio(rows as u64 * longest),
            hll: ratio(hll_stored_elements(row_ptr, HLL_HACK_SIZE)),
            sell: ratio(sell_stored_elements(row_ptr, SELL_CHUNK, SELL_SIGMA)),
        }
    }
}

fn lengths(row_ptr: &[u32]) -> impl Iterator<Item = u32> + '_ {
    row_ptr.windows(2).map(|pair| pair[1] - pair[0])
}

/// Stored elements of HLL with hacks of `hack_size` rows, from the `rows + 1` ascending row
/// pointers.
///
/// # Panics
/// When `hack_size` is 0 or `row_ptr` is empty.
pub fn hll_stored_elements(row_ptr: &[u32], hack_size: usize) -> u64 {
    let rows = row_ptr.len() - 1;
    let elements = |block: usize| {
        let first = block * hack_size;
        let last = rows.min(first + hack_size);
        let width = lengths(&row_ptr[first..=last]).max().unwrap_or(0);
        (last - first) as u64 * u64::from(width)
    };
    let elements = |blocks: Range<usize>| blocks.map(elements).sum();
    parallel::reduce(rows.div_ceil(hack_size), 1, 0, &elements, |a, b| a + b)
}

/// Stored elements of SELL-C-sigma with `chunk` C and sorting window `sigma`, from the `rows + 1`
/// ascending row pointers; saturates at `u64::MAX`.
///
/// # Panics
/// When `chunk` is 0 or `row_ptr` is empty.
pub fn sell_stored_elements(row_ptr: &[u32], chunk: usize, sigma: usize) -> u64 {
    assert!(chunk > 0, "a chunk of 0 rows");
    let rows = row_ptr.len() - 1;
    let sigma = sigma.clamp(1, rows.max(1));
    // A chunk has no more rows of the matrix than there are, however many lanes it has.
    let chunk_rows = chunk.min(rows.max(1));
    // Tasks begin where a sorting window and a chunk begin together.
    let task = (1..=chunk_rows).map(|windows| windows * sigma).find(|task| task % chunk_rows == 0);
    let task = task.expect("as many windows as a chunk has rows end with a chunk");
    let elements = |index: usize| {
        let first = index * task;
        let last = rows.min(first + task);
        let mut lengths: Vec<u32> = lengths(&row_ptr[first..=last]).collect();
        for window in lengths.chunks_mut(sigma) {
            window.sort_unstable_by(|a, b| b.cmp(a));
        }
        let widths = lengths.chunks(chunk_rows).map(|rows| rows.iter().copied().max().unwrap_or(0));
        (chunk as u64).saturating_mul(widths.map(u64::from).sum())
    };
    let elements = |tasks: Range<usize>| tasks.map(elements).fold(0, u64::saturating_add);
    parallel::reduce(rows.div_ceil(task), 1, 0, &elements, u64::saturating_add)
}

/// Statistics of a matrix: sizes, row lengths, padding, bandwidth, symmetry.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct MatrixStats {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Stored entries, explicit zeros included.
    pub entries: usize,
    /// Row lengths.
    pub row_lengths: RowLengthStats,
    /// Padding of the padded formats.
    pub padding: Padding,
    /// Largest row - column over the entries; 0 when none is below the diagonal.
    pub lower_bandwidth: usize,
    /// Largest column - row over the entries; 0 when none is above the diagonal.
    pub upper_bandwidth: usize,
    /// Mean of |row - column| over the entries; 0 without entries.
    pub mean_distance: f64,
    /// Entries on the diagonal.
    pub diagonal_entries: usize,
    /// Stored entries whose value is 0.
    pub explicit_zeros: usize,
    /// All stored values are the same number, so that one suffices; true without entries.
    pub all_values_equal: bool,
    /// Square, and entry (j, i) is stored wherever (i, j) is.
    pub pattern_symmetric: bool,
    /// Pattern symmetric, and both have the same value.
    pub numerically_symmetric: bool,
}

/// Sums and extremes that one pass over the entries collects.
#[derive(Debug, Clone, Copy)]
struct Pass {
    lower: usize,
    upper: usize,
    distance: u128,
    diagonal: usize,
    zeros: usize,
    equal: bool,
}

impl Pass {
    const START: Self =
        Self { lower: 0, upper: 0, distance: 0, diagonal: 0, zeros: 0, equal: true };

    fn merge(self, other: Self) -> Self {
        Self {
            lower: self.lower.max(other.lower),
            upper: self.upper.max(other.upper),
            distance: self.distance + other.distance,
            diagonal: self.diagonal + other.diagonal,
            zeros: self.zeros + other.zeros,
            equal: self.equal && other.equal,
        }
    }
}

impl MatrixStats {
    /// One parallel pass over the entries, one serial pass for symmetry: O(rows + entries), and
    /// four bytes a row of memory.
    pub fn of<T: Scalar>(matrix: CsrView<'_, T>) -> Self {
        let (row_ptr, indices, values) = (matrix.row_ptr(), matrix.col_ind(), matrix.values());
        let parts = 8 * rayon::current_num_threads();
        let bounds = partition::by_entries(row_ptr, parts);
        let passes = parallel::map(parts, 1, |part| {
            let mut pass = Pass::START;
            for row in bounds[part]..bounds[part + 1] {
                let entries = row_ptr[row] as usize..row_ptr[row + 1] as usize;
                // Columns ascend: the first and the last are the farthest from the diagonal.
                if let (Some(&first), Some(&last)) =
                    (indices[entries.clone()].first(), indices[entries.clone()].last())
                {
                    pass.lower = pass.lower.max(row.saturating_sub(first as usize));
                    pass.upper = pass.upper.max((last as usize).saturating_sub(row));
                }
                for (&column, &value) in indices[entries.clone()].iter().zip(&values[entries]) {
                    let distance = row.abs_diff(column as usize);
                    pass.distance += distance as u128;
                    pass.diagonal += usize::from(distance == 0);
                    pass.zeros += usize::from(value == T::ZERO);
                    pass.equal &= value == values[0];
                }
            }
            pass
        });
        let pass = passes.into_iter().fold(Pass::START, Pass::merge);
        let (pattern_symmetric, numerically_symmetric) = if matrix.rows() == matrix.cols() {
            symmetry(row_ptr, indices, values)
        } else {
            (false, false)
        };
        Self {
            rows: matrix.rows(),
            cols: matrix.cols(),
            entries: values.len(),
            row_lengths: RowLengthStats::of(row_ptr),
            padding: Padding::of(row_ptr),
            lower_bandwidth: pass.lower,
            upper_bandwidth: pass.upper,
            mean_distance: pass.distance as f64 / values.len().max(1) as f64,
            diagonal_entries: pass.diagonal,
            explicit_zeros: pass.zeros,
            all_values_equal: pass.equal,
            pattern_symmetric,
            numerically_symmetric,
        }
    }
}

/// (pattern, numerically) symmetric, for a square matrix with ascending columns.
///
/// Rows are visited in order. The entries of row j left of its diagonal are then looked up in
/// ascending order, so that one cursor per row finds each without a search.
fn symmetry<T: Scalar>(row_ptr: &[u32], indices: &[u32], values: &[T]) -> (bool, bool) {
    let rows = row_ptr.len() - 1;
    let mut cursors = row_ptr[..rows].to_vec();
    let mut same_values = true;
    for row in 0..rows {
        let start = cursors[row] as usize;
        for entry in start..row_ptr[row + 1] as usize {
            let column = indices[entry] as usize;
            if column == row {
                continue;
            }
            // Left of the diagonal and not yet asked for: the mirror image is missing.
            if column < row {
                return (false, false);
            }
            let mirror = cursors[column];
            if mirror == row_ptr[column + 1] || indices[mirror as usize] as usize != row {
                return (false, false);
            }
            same_values &= values[mirror as usize] == values[entry];
            cursors[column] += 1;
        }
    }
    (true, same_values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Csr;

    fn csr(n: usize, row_ptr: &[u32], columns: &[u32], values: &[f64]) -> Csr<f64> {
        let shape = (row_ptr.len() - 1, n);
        Csr::new(shape, row_ptr.to_vec(), columns.to_vec(), values.to_vec()).unwrap()
    }

    #[test]
    fn row_lengths_by_hand() {
        // Lengths 2 0 1 5.
        let stats = RowLengthStats::of(&[0, 2, 2, 3, 8]);
        assert_eq!((stats.rows, stats.entries, stats.min, stats.max), (4, 8, 0, 5));
        assert_eq!((stats.longest_row, stats.empty_rows), (3, 1));
        assert_eq!((stats.lower_quartile, stats.median, stats.upper_quartile), (0.75, 1.5, 2.75));
        assert_eq!((stats.mean, stats.variance), (2.0, 3.5));
        // Third central moment (0 - 8 - 1 + 27) / 4.
        assert!((stats.skewness - 4.5 / 3.5f64.powf(1.5)).abs() < 1e-15);
        assert!((stats.coefficient_of_variation() - 3.5f64.sqrt() / 2.0).abs() < 1e-15);
    }

    #[test]
    fn degenerate_row_lengths() {
        let none = RowLengthStats::of(&[0]);
        assert_eq!((none.rows, none.max, none.longest_row, none.mean), (0, 0, 0, 0.0));
        let empty = RowLengthStats::of(&[0, 0, 0]);
        assert_eq!((empty.empty_rows, empty.skewness, empty.median), (2, 0.0, 0.0));
        let one = RowLengthStats::of(&[0, 100_000]);
        assert_eq!((one.min, one.max, one.median, one.variance), (100_000, 100_000, 1e5, 0.0));
    }

    #[test]
    fn long_rows_and_many_rows() {
        let mut row_ptr = vec![0u32];
        for row in 0..50_000u32 {
            let length = if row == 31_000 {
                70_000
            } else if row % 1000 == 7 {
                5000
            } else {
                3
            };
            row_ptr.push(row_ptr[row as usize] + length);
        }
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| RowLengthStats::of(&row_ptr))
        };
        let stats = on(1);
        assert_eq!(stats, on(4));
        assert_eq!((stats.max, stats.longest_row, stats.median), (70_000, 31_000, 3.0));
        let mean = (70_000.0 + 50.0 * 5000.0 + 49_949.0 * 3.0) / 50_000.0;
        assert!((stats.mean - mean).abs() < 1e-12 * mean);
    }

    #[test]
    fn padding_by_hand() {
        // Lengths 2 0 1 5 3.
        let row_ptr = [0, 2, 2, 3, 8, 11];
        assert_eq!(hll_stored_elements(&row_ptr, 5), 25);
        assert_eq!(hll_stored_elements(&row_ptr, 2), 2 * 2 + 2 * 5 + 3);
        assert_eq!(hll_stored_elements(&row_ptr, 1), 11);
        // Windows of 4 sorted: 5 2 | 1 0 | 3 -.
        assert_eq!(sell_stored_elements(&row_ptr, 2, 4), 10 + 2 + 6);
        assert_eq!(sell_stored_elements(&row_ptr, 2, 1), 4 + 10 + 6);
        assert_eq!(sell_stored_elements(&row_ptr, 2, 3), 4 + 10 + 6);
        // A chunk beyond the last row is padded to its size too.
        assert_eq!(sell_stored_elements(&row_ptr, 1 << 40, 3), 5 << 40);
        assert_eq!(sell_stored_elements(&row_ptr, usize::MAX, usize::MAX), u64::MAX, "saturates");
        let padding = Padding::of(&row_ptr);
        assert_eq!(padding.ell, 25.0 / 11.0);
        assert_eq!(padding.hll, padding.ell);
        assert_eq!(padding.sell, 160.0 / 11.0);
        assert_eq!(Padding::of(&[0, 0]), Padding { ell: 1.0, hll: 1.0, sell: 1.0 });
    }

    #[test]
    fn a_matrix_by_hand() {
        // 1 . 2 .
        // . 0 . .
        // 2 . . 3
        // . . 4 .
        let matrix = csr(4, &[0, 2, 3, 5, 6], &[0, 2, 1, 0, 3, 2], &[1.0, 2.0, 0.0, 2.0, 3.0, 4.0]);
        let stats = MatrixStats::of(matrix.view());
        assert_eq!((stats.lower_bandwidth, stats.upper_bandwidth), (2, 2));
        assert_eq!(stats.mean_distance, 1.0);
        assert_eq!((stats.diagonal_entries, stats.explicit_zeros), (2, 1));
        assert!(stats.pattern_symmetric && !stats.numerically_symmetric);
        assert!(!stats.all_values_equal);
        #[cfg(feature = "serde")]
        {
            let json = serde_json::to_string(&stats).unwrap();
            assert_eq!(serde_json::from_str::<MatrixStats>(&json).unwrap(), stats);
        }
    }

    #[test]
    fn symmetry_is_not_claimed_too_easily() {
        let pattern = |n, row_ptr: &[u32], columns: &[u32]| {
            let matrix = csr(n, row_ptr, columns, &vec![1.0; columns.len()]);
            let stats = MatrixStats::of(matrix.view());
            assert!(stats.all_values_equal);
            assert_eq!(stats.pattern_symmetric, stats.numerically_symmetric);
            stats.pattern_symmetric
        };
        assert!(!pattern(2, &[0, 1, 1], &[1]), "upper entry alone");
        assert!(!pattern(2, &[0, 0, 1], &[0]), "lower entry alone");
        assert!(!pattern(3, &[0, 1, 2, 3], &[1, 2, 0]), "a cycle");
        assert!(!pattern(3, &[0, 1, 3, 3], &[1, 0, 2]), "one of two pairs");
        assert!(!pattern(3, &[0, 2, 3], &[0, 1, 0]), "rectangular");
        assert!(pattern(3, &[0, 1, 2, 3], &[2, 1, 0]), "an exchange");
        assert!(pattern(0, &[0], &[]), "nothing");
    }
}
