//! ELLPACK, HLL and SELL-C-sigma to CSR.

use super::coo_csr::compressed;
use crate::csr::pointers_of;
use crate::disjoint::Disjoint;
use crate::huge_pages::zeroed;
use crate::{Csr, Ell, Hll, Layout, Scalar, Sell, UnpaddedEll, parallel};

/// Drops the padding.
pub fn ell_to_csr<T: Scalar>(ell: &Ell<T>) -> Csr<T> {
    let stride = match ell.layout {
        Layout::RowMajor => 1,
        Layout::ColumnMajor => ell.pitch,
    };
    gather((ell.rows, ell.cols), &ell.row_lengths, &ell.col_ind, &ell.values, |row| Lane {
        row,
        start: ell.position(row, 0),
        stride,
    })
}

/// Drops the padding.
pub fn hll_to_csr<T: Scalar>(hll: &Hll<T>) -> Csr<T> {
    gather((hll.rows, hll.cols), &hll.row_lengths, &hll.col_ind, &hll.values, |row| {
        let block = row / hll.hack_size;
        let rows = hll.block_rows(block);
        let start = hll.block_offsets[block] + (row - rows.start);
        Lane { row, start, stride: rows.len() }
    })
}

/// Drops the padding and restores the order of rows.
pub fn sell_to_csr<T: Scalar>(sell: &Sell<T>) -> Csr<T> {
    gather((sell.rows, sell.cols), &sell.row_lengths, &sell.col_ind, &sell.values, |position| {
        let (chunk, lane) = (position / sell.chunk, position % sell.chunk);
        Lane {
            row: sell.permutation[position] as usize,
            start: sell.chunk_offsets[chunk] + lane,
            stride: sell.chunk,
        }
    })
}

/// Concatenates the rows.
pub fn unpadded_ell_to_csr<T: Scalar>(ell: &UnpaddedEll<T>) -> Csr<T> {
    let row_ptr = pointers_of(ell.rows.iter().map(|arrays| arrays.values.len() as u32));
    let mut col_ind = Vec::with_capacity(ell.entries);
    let mut values = Vec::with_capacity(ell.entries);
    for arrays in &ell.rows {
        col_ind.extend_from_slice(&arrays.col_ind);
        values.extend_from_slice(&arrays.values);
    }
    compressed((ell.rows.len(), ell.cols), (row_ptr, col_ind, values))
}

/// The positions of one row's entries in the arrays of a padded format.
struct Lane {
    row: usize,
    start: usize,
    stride: usize,
}

/// Minimum number of rows that one task gathers.
const ROWS_PER_TASK: usize = 256;

/// Collects the rows of a padded format; `lane_of` is a bijection from positions (0..rows) to rows,
/// `lengths` are by position.
fn gather<T: Scalar>(
    (rows, cols): (usize, usize),
    lengths: &[u32],
    col_ind: &[u32],
    values: &[T],
    lane_of: impl Fn(usize) -> Lane + Sync,
) -> Csr<T> {
    let mut row_ptr = vec![0; rows + 1];
    for (position, &length) in lengths.iter().enumerate() {
        row_ptr[lane_of(position).row + 1] = length;
    }
    for row in 0..rows {
        row_ptr[row + 1] += row_ptr[row];
    }
    let entries = row_ptr[rows] as usize;
    let mut cols_out = zeroed(0, entries);
    let mut values_out = zeroed(T::ZERO, entries);
    let (cols_to, values_to) = (Disjoint::new(&mut cols_out), Disjoint::new(&mut values_out));
    parallel::for_each_range(rows, ROWS_PER_TASK, &|positions| {
        // In variables of its own, which the writes do not change: they are not loaded again behind each.
        let (col_ind, values) = (col_ind, values);
        for (position, &length) in positions.clone().zip(&lengths[positions]) {
            let Lane { row, start, stride } = lane_of(position);
            let range = row_ptr[row] as usize..row_ptr[row] as usize + length as usize;
            // SAFETY: positions have different rows, so different ranges.
            let (cols, values_to) =
                unsafe { (cols_to.range(range.clone()), values_to.range(range)) };
            for (element, (col, value)) in cols.iter_mut().zip(values_to).enumerate() {
                *col = col_ind[start + element * stride];
                *value = values[start + element * stride];
            }
        }
    });
    compressed((rows, cols), (row_ptr, cols_out, values_out))
}
