//! The rows of a tile that are multiplied together.

use std::ops::Range;

use spm_formats::Scalar;

use crate::simd::{self, Isa, LANES};

/// Rows of a tile, in order: all of them at once, or one by one those that have entries.
pub(super) struct Groups<'a> {
    /// The pointers of the rows that were not looked at yet, the first of which is `next` in the tile.
    row_ptr: &'a [u32],
    next: usize,
    /// Bit i: row `next` - 64 + i has entries and is still to come.
    with_entries: u64,
    /// The rows that are taken at once.
    all: Range<usize>,
}

const ROWS: usize = u64::BITS as usize;

impl<'a> Groups<'a> {
    /// All rows of a tile with so many.
    pub(super) fn all(rows: usize) -> Self {
        Self { row_ptr: &[], next: 0, with_entries: 0, all: 0..rows }
    }

    /// Those with entries, of a tile with these row pointers.
    pub(super) fn with_entries(row_ptr: &'a [u32]) -> Self {
        Self { row_ptr, next: 0, with_entries: 0, all: 0..0 }
    }
}

impl Iterator for Groups<'_> {
    type Item = Range<usize>;

    #[inline(always)]
    fn next(&mut self) -> Option<Range<usize>> {
        if !self.all.is_empty() {
            return Some(std::mem::take(&mut self.all));
        }
        while self.with_entries == 0 {
            let left = self.row_ptr.len().saturating_sub(1);
            if left == 0 {
                return None;
            }
            self.with_entries = match self.row_ptr.first_chunk() {
                Some(rows) => simd::changes(rows),
                None => {
                    let at = |i: usize| self.row_ptr[i.min(left)];
                    simd::changes(&std::array::from_fn(at))
                }
            };
            self.row_ptr = &self.row_ptr[left.min(ROWS)..];
            self.next += ROWS;
        }
        let row = self.next - ROWS + self.with_entries.trailing_zeros() as usize;
        self.with_entries &= self.with_entries - 1;
        Some(row..row + 1)
    }
}

/// Overwrites `rows` rows of `k` elements with 0, `pitch` elements from one to the next.
///
/// # Safety
/// `to` has room for the rows; the processor has the instructions of `I`.
#[inline(always)]
pub(super) unsafe fn zero<T: Scalar, I: Isa<T>>(to: *mut T, rows: usize, k: usize, pitch: usize) {
    // Rows without a gap are one.
    let (rows, k) = if pitch == k { (1, rows * k) } else { (rows, k) };
    // SAFETY: the caller's promise.
    unsafe {
        let none = I::splat(T::ZERO);
        for row in 0..rows {
            let to = to.add(row * pitch);
            for vector in 0..k / LANES {
                I::store(to.add(vector * LANES), none);
            }
            if !k.is_multiple_of(LANES) {
                I::store_first(k % LANES, to.add(k / LANES * LANES), none);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::convert::coo_to_csr;
    use spm_formats::kernel::Scaling;
    use spm_formats::{Coo, DenseShape, Layout};

    use super::*;
    use crate::PlanOptions;

    #[test]
    fn rows_with_entries_one_by_one() {
        let of = |filled: &[usize], rows: usize| {
            let mut row_ptr = vec![7];
            row_ptr.extend(
                (0..rows).map(|row| 7 + filled.iter().filter(|&&at| at <= row).count() as u32),
            );
            Groups::with_entries(&row_ptr).map(|of| of.start).collect::<Vec<_>>()
        };
        assert_eq!(of(&[], 200), []);
        assert_eq!(of(&[], 0), []);
        for rows in [1, 63, 64, 65, 128, 200] {
            let filled: Vec<_> = [0, 1, 5, 62, 63, 64, 126, 127, 199]
                .into_iter()
                .filter(|&row| row < rows)
                .collect();
            assert_eq!(of(&filled, rows), filled, "{rows}");
        }
        assert_eq!((Groups::all(9).next(), Groups::all(9).count()), (Some(0..9), 1));
        assert_eq!(Groups::all(0).count(), 0);
    }

    /// Into a Y that is written directly, streamed, combined with what it has, and column-major, on more threads than there
    /// are tiles, too; numbers that have no rounding.
    #[test]
    fn products_of_mostly_empty_rows() {
        let (rows, cols) = (1200, 80);
        let filled = [0, 1, 63, 64, 300, 301, 302, 767, 1150, 1199];
        let entry = |at: usize, entry: usize| {
            (filled[at] as u32, (7 * at + entry) as u32, (1 + at + entry) as f64)
        };
        let entries = (0..filled.len()).flat_map(|at| (0..=at % 3).map(move |of| entry(at, of)));
        let (row_ind, rest): (Vec<_>, Vec<_>) =
            entries.map(|(row, col, value)| (row, (col, value))).unzip();
        let (col_ind, values) = rest.into_iter().unzip();
        let a = coo_to_csr(&Coo::new(rows, cols, row_ind, col_ind, values).unwrap());
        let kernel = crate::spmm::find::<f64>("csr-blocked").unwrap();
        for (k, threads) in [(3, 1), (8, 2), (9, 40), (16, 1), (40, 3)] {
            for (layout, label) in
                [(Layout::RowMajor, ""), (Layout::RowMajor, "stream=on"), (Layout::ColumnMajor, "")]
            {
                let at = |size: usize, row: usize, col: usize| match layout {
                    Layout::RowMajor => row * k + col,
                    Layout::ColumnMajor => col * size + row,
                };
                let mut x = vec![0.0; cols * k];
                for row in 0..cols {
                    (0..k).for_each(|col| x[at(cols, row, col)] = (row * 3 + col) as f64);
                }
                let options = PlanOptions::with_threads(threads);
                let parameters = kernel.info.parse_parameters(label).unwrap();
                let plan =
                    kernel.plan(&a, DenseShape { k, layout }, &parameters, &options).unwrap();
                for scaling in [Scaling::OVERWRITE, Scaling::new(2.0, -1.0)] {
                    let mut y = vec![5.0; rows * k];
                    plan.run_scaled(scaling, &x, &mut y).unwrap();
                    for (row, col) in (0..rows).flat_map(|row| (0..k).map(move |col| (row, col))) {
                        let (columns, values) = a.view().row(row);
                        let product =
                            |(&of, value): (&u32, &f64)| value * x[at(cols, of as usize, col)];
                        let sum: f64 = columns.iter().zip(values).map(product).sum();
                        let expected = scaling.alpha * sum + scaling.beta * 5.0;
                        assert_eq!(
                            y[at(rows, row, col)],
                            expected,
                            "{k}, {layout:?}, {label}: {row}, {col}"
                        );
                    }
                }
            }
        }
    }
}
