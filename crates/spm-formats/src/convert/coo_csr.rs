//! COO to CSR (and to CSC, with rows and columns exchanged) and back.

use std::ops::{AddAssign, Range};
use std::sync::atomic::{AtomicBool, Ordering};

use super::counting_sort::{Arrays, counting_sort};
use super::rows::GRAIN;
use crate::disjoint::Disjoint;
use crate::{Coo, Csc, Csr, CsrView, Scalar, parallel};

/// Sorts triplets by row, then column, and sums duplicates in their stored order; explicit zeros
/// and empty rows stay.
///
/// Triplets that come sorted by row are copied. All others go through a stable counting sort by
/// row, which alone does for triplets sorted by column, as Matrix Market files have them; rows
/// whose columns are then still out of order are sorted one by one.
pub fn coo_to_csr<T: Scalar>(coo: &Coo<T>) -> Csr<T> {
    let arrays = compress(coo.rows(), coo.row_ind(), coo.col_ind(), coo.values());
    compressed((coo.rows(), coo.cols()), arrays)
}

/// As [`coo_to_csr`], by column, then row.
pub fn coo_to_csc<T: Scalar>(coo: &Coo<T>) -> Csc<T> {
    let arrays = compress(coo.cols(), coo.col_ind(), coo.row_ind(), coo.values());
    compressed((coo.cols(), coo.rows()), arrays).into_transposed()
}

/// The triplets of a matrix, row after row.
pub fn csr_to_coo<T: Scalar>(matrix: CsrView<'_, T>) -> Coo<T> {
    let mut row_ind = vec![0; matrix.nnz()];
    let shared = Disjoint::new(&mut row_ind);
    parallel::for_each(matrix.rows(), GRAIN, |row| {
        // SAFETY: rows own different ranges.
        unsafe { shared.range(matrix.row_range(row)) }.fill(row as u32);
    });
    let (cols, values) = (copy(matrix.col_ind()), copy(matrix.values()));
    Coo::from_valid(matrix.shape(), row_ind, cols, values)
}

/// Assembles a matrix from arrays that are valid by construction.
pub(super) fn compressed<T: Scalar>(
    shape: (usize, usize),
    (row_ptr, indices, values): Arrays<T>,
) -> Csr<T> {
    // SAFETY: the callers count the pointers from the indices that they write: ascending, first 0,
    // last the number of entries; indices ascend strictly inside a row and come from a valid
    // matrix of this shape.
    unsafe { Csr::new_unchecked(shape, row_ptr, indices, values) }
}

/// Triplets in any order to `rows` compressed rows. (Rows stand for columns where they are
/// exchanged.)
fn compress<T: Scalar>(rows: usize, row_of: &[u32], col_of: &[u32], values: &[T]) -> Arrays<T> {
    if is_strictly_sorted(row_of, col_of) {
        (sorted_pointers(rows, row_of), copy(col_of), copy(values))
    } else {
        let cols = |range: Range<usize>| col_of[range].iter().copied();
        merge_rows(counting_sort(rows, row_of, cols, values))
    }
}

/// Whether entries are sorted by row, then column, without duplicates.
fn is_strictly_sorted(row_of: &[u32], col_of: &[u32]) -> bool {
    let sorted = AtomicBool::new(true);
    parallel::for_each(row_of.len().div_ceil(GRAIN), 1, |chunk| {
        if !sorted.load(Ordering::Relaxed) {
            return;
        }
        // Each chunk ends with the first entry of the next one.
        let range = chunk * GRAIN..row_of.len().min((chunk + 1) * GRAIN + 1);
        let (rows, cols) = (&row_of[range.clone()], &col_of[range]);
        if !rows.windows(2).zip(cols.windows(2)).all(|(r, c)| (r[0], c[0]) < (r[1], c[1])) {
            sorted.store(false, Ordering::Relaxed);
        }
    });
    sorted.into_inner()
}

/// A copy made by all threads: most of its time goes into first touches of new memory.
fn copy<T: Copy + Send + Sync>(from: &[T]) -> Vec<T> {
    parallel::map_ranges(from.len(), GRAIN, |range| from[range].iter().copied())
}

/// Row pointers of entries whose rows ascend.
fn sorted_pointers(rows: usize, row_of: &[u32]) -> Vec<u32> {
    let mut row_ptr = vec![0; rows + 1];
    let shared = Disjoint::new(&mut row_ptr);
    // Entry `at` that opens a row closes all rows since the one before it.
    let close = |after: u32, until: usize, at: usize| {
        // SAFETY: rows ascend, so each pointer belongs to exactly one pair of neighbours.
        unsafe { shared.range(after as usize + 1..until + 1) }.fill(at as u32);
    };
    parallel::for_each(row_of.len().saturating_sub(1), GRAIN, |before| {
        let at = before + 1;
        if row_of[at - 1] != row_of[at] {
            close(row_of[at - 1], row_of[at] as usize, at);
        }
    });
    if let Some(&last) = row_of.last() {
        close(last, rows, row_of.len());
    }
    row_ptr
}

/// Sorts every row by column where needed and sums duplicates in their stored order.
pub(crate) fn merge_rows<T: Copy + AddAssign + Send + Sync>(
    (mut row_ptr, mut cols, mut values): Arrays<T>,
) -> Arrays<T> {
    let merged = AtomicBool::new(false);
    let mut lengths: Vec<u32> = row_ptr.windows(2).map(|p| p[1] - p[0]).collect();
    let (cols_out, values_out) = (Disjoint::new(&mut cols), Disjoint::new(&mut values));
    parallel::for_each_part(&mut lengths, ROWS_PER_TASK, |first, lengths| {
        let mut scratch = Vec::new();
        for (row, length) in (first..).zip(lengths) {
            let range = row_ptr[row] as usize..row_ptr[row + 1] as usize;
            // SAFETY: rows own different ranges.
            let (cols, values) =
                unsafe { (cols_out.range(range.clone()), values_out.range(range)) };
            let kept = sort_row(cols, values, &mut scratch);
            if kept < cols.len() {
                *length = kept as u32;
                merged.store(true, Ordering::Relaxed);
            }
        }
    });
    if merged.into_inner() {
        let mut end = 0;
        for (row, &length) in lengths.iter().enumerate() {
            let start = std::mem::replace(&mut row_ptr[row], end as u32) as usize;
            let range = start..start + length as usize;
            cols.copy_within(range.clone(), end);
            values.copy_within(range, end);
            end += length as usize;
        }
        row_ptr[lengths.len()] = end as u32;
        cols.truncate(end);
        values.truncate(end);
    }
    (row_ptr, cols, values)
}

/// Rows that one task sorts at least.
const ROWS_PER_TASK: usize = 64;

/// Sorts one row by column, stable, and sums equal columns from left to right. Returns how many
/// entries are left, at the front.
pub(super) fn sort_row<T: Copy + AddAssign>(
    cols: &mut [u32],
    values: &mut [T],
    scratch: &mut Vec<(u32, T)>,
) -> usize {
    if cols.is_sorted_by(|a, b| a < b) {
        return cols.len();
    }
    scratch.clear();
    scratch.extend(cols.iter().copied().zip(values.iter().copied()));
    scratch.sort_by_key(|&(col, _)| col);
    let mut kept = 0;
    for &(col, value) in scratch.iter() {
        if kept > 0 && cols[kept - 1] == col {
            values[kept - 1] += value;
        } else {
            (cols[kept], values[kept]) = (col, value);
            kept += 1;
        }
    }
    kept
}
