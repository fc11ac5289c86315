//! R4's row-scan conversions: for each row, all triplets are searched; O(rows x entries).

use super::coo_csr::{compressed, merge_rows, sort_row};
use super::csr_ell::{EllOptions, extent};
use super::tile::padding_column;
use crate::csr::pointers_of;
use crate::disjoint::Disjoint;
use crate::{
    Coo, Csr, Ell, FormatError, Layout, MemoryBudget, Scalar, UnpaddedEll, UnpaddedRow, parallel,
};

/// Triplets of each row, duplicates counted (R4's `nz_per_row`).
pub(super) fn count_rows<T: Scalar>(coo: &Coo<T>) -> Vec<u32> {
    let mut counts = vec![0; coo.rows()];
    for &row in coo.row_ind() {
        counts[row as usize] += 1;
    }
    counts
}

/// Copies the triplets of `row` into `cols` and `values`, which have their number of elements, in
/// stored order.
fn search_row<T: Scalar>(coo: &Coo<T>, row: usize, cols: &mut [u32], values: &mut [T]) {
    let mut elements = cols.iter_mut().zip(values);
    let found = coo.row_ind().iter().enumerate().filter(|&(_, &r)| r as usize == row);
    for (entry, _) in found {
        let (col, value) = elements.next().expect("as many stored elements as the row was counted");
        (*col, *value) = (coo.col_ind()[entry], coo.values()[entry]);
    }
}

/// COO to CSR with a double loop over rows and triplets, parallel over rows (R4 3.1, the first).
pub fn coo_to_csr_row_scan<T: Scalar>(coo: &Coo<T>) -> Csr<T> {
    let row_ptr = pointers_of(count_rows(coo).into_iter());
    let mut cols = vec![0; coo.entries()];
    let mut values = vec![T::ZERO; coo.entries()];
    let (cols_out, values_out) = (Disjoint::new(&mut cols), Disjoint::new(&mut values));
    parallel::for_each(coo.rows(), 1, |row| {
        let range = row_ptr[row] as usize..row_ptr[row + 1] as usize;
        // SAFETY: rows own different ranges.
        let (cols, values) = unsafe { (cols_out.range(range.clone()), values_out.range(range)) };
        search_row(coo, row, cols, values);
    });
    compressed((coo.rows(), coo.cols()), merge_rows((row_ptr, cols, values)))
}

/// COO to row-major ELLPACK with a double loop, parallel over rows (R4 4.1, the first algorithm).
///
/// Padding follows the rule of [`Ell`]; R4 stored column 0 and value 0. The width is that of the
/// longest row before duplicates are summed.
///
/// # Errors
/// More memory than `budget` allows (no stored element is allocated then).
pub fn coo_to_ell_padded<T: Scalar>(
    coo: &Coo<T>,
    budget: &MemoryBudget,
) -> Result<Ell<T>, FormatError> {
    let mut row_lengths = count_rows(coo);
    let width = row_lengths.iter().copied().max().unwrap_or(0) as usize;
    let (pitch, elements) =
        extent::<T>(coo.rows(), width, coo.entries(), EllOptions::ROW_MAJOR, budget)?;
    let mut col_ind = vec![0; elements];
    let mut values = vec![T::ZERO; elements];
    let (cols_out, values_out) = (Disjoint::new(&mut col_ind), Disjoint::new(&mut values));
    parallel::for_each_part(&mut row_lengths, 1, |first, lengths| {
        let mut scratch = Vec::new();
        for (row, length) in (first..).zip(lengths) {
            let range = row * width..(row + 1) * width;
            // SAFETY: rows own different ranges.
            let (cols, values) =
                unsafe { (cols_out.range(range.clone()), values_out.range(range)) };
            let counted = *length as usize;
            search_row(coo, row, &mut cols[..counted], &mut values[..counted]);
            let kept = sort_row(&mut cols[..counted], &mut values[..counted], &mut scratch);
            let padding = padding_column(&cols[..kept]);
            cols[kept..].fill(padding);
            values[kept..].fill(T::ZERO);
            *length = kept as u32;
        }
    });
    let entries = row_lengths.iter().map(|&length| length as usize).sum();
    Ok(Ell {
        rows: coo.rows(),
        cols: coo.cols(),
        entries,
        width,
        pitch,
        layout: Layout::RowMajor,
        row_lengths,
        col_ind,
        values,
    })
}

/// COO to unpadded ELLPACK with a double loop, parallel over rows (R4 4.1, the second).
pub fn coo_to_ell_unpadded<T: Scalar>(coo: &Coo<T>) -> UnpaddedEll<T> {
    let row_lengths = &count_rows(coo);
    let rows = parallel::map_ranges(coo.rows(), 1, |rows| {
        let mut scratch = Vec::new();
        rows.map(move |row| {
            let mut cols = vec![0; row_lengths[row] as usize];
            let mut values = vec![T::ZERO; row_lengths[row] as usize];
            search_row(coo, row, &mut cols, &mut values);
            finish_row(cols, values, &mut scratch)
        })
    });
    unpadded(coo.cols(), rows)
}

/// Sorts a row, sums its duplicates and boxes what is left.
pub(super) fn finish_row<T: Scalar>(
    mut cols: Vec<u32>,
    mut values: Vec<T>,
    scratch: &mut Vec<(u32, T)>,
) -> UnpaddedRow<T> {
    let kept = sort_row(&mut cols, &mut values, scratch);
    cols.truncate(kept);
    values.truncate(kept);
    UnpaddedRow { col_ind: cols.into(), values: values.into() }
}

/// Assembles finished rows.
pub(super) fn unpadded<T: Scalar>(cols: usize, rows: Vec<UnpaddedRow<T>>) -> UnpaddedEll<T> {
    let entries = rows.iter().map(|row| row.values.len()).sum();
    UnpaddedEll { cols, entries, rows }
}
