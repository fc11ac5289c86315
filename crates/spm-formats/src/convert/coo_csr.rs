//! COO to CSR and back.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::disjoint::DisjointSlice;
use super::rows::GRAIN;
use crate::{Coo, Csr, Scalar};

/// Sorts triplets by row, then column, and sums duplicates in their stored order; explicit zeros
/// and empty rows stay.
///
/// Triplets that come sorted by row are copied. All others go through a stable counting sort by
/// row, which alone does for triplets sorted by column, as Matrix Market files have them; rows
/// whose columns are then still out of order are sorted one by one.
pub fn coo_to_csr<T: Scalar>(coo: &Coo<T>) -> Csr<T> {
    let (pointers, col_indices, values) =
        if is_row_sorted(coo) { copy_sorted(coo) } else { merge_rows(sort_by_row(coo)) };
    compressed(sprs::CSR, coo.rows(), coo.cols(), pointers, col_indices, values)
}

/// Pointers, indices, values.
pub(super) type Arrays<T> = (Vec<u32>, Vec<u32>, Vec<T>);

/// Assembles a matrix whose arrays are right by construction.
pub(super) fn compressed<T: Scalar>(
    storage: sprs::CompressedStorage,
    rows: usize,
    cols: usize,
    pointers: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<T>,
) -> Csr<T> {
    // SAFETY: the callers count the pointers from the indices that they write: ascending, first 0,
    // last the number of entries; indices ascend strictly inside a row and come from a valid
    // matrix of this shape.
    let matrix = unsafe { Csr::new_unchecked(storage, (rows, cols), pointers, indices, values) };
    debug_assert_eq!(matrix.check_compressed_structure(), Ok(()));
    matrix
}

/// Whether the triplets are sorted by row, then column, without duplicates.
fn is_row_sorted<T: Scalar>(coo: &Coo<T>) -> bool {
    let (rows, cols) = (coo.row_indices(), coo.col_indices());
    let pairs = rows.par_windows(2).zip(cols.par_windows(2)).with_min_len(GRAIN);
    pairs.all(|(row, col)| (row[0], col[0]) < (row[1], col[1]))
}

/// The arrays of triplets that are in order already.
fn copy_sorted<T: Scalar>(coo: &Coo<T>) -> Arrays<T> {
    let rows = coo.row_indices();
    let mut pointers = vec![0; coo.rows() + 1];
    let shared = DisjointSlice::new(&mut pointers);
    // Entry `i` that opens a row closes all rows since the one before it.
    let close = |after: usize, until: usize, at: usize| {
        // SAFETY: rows ascend, so each pointer belongs to exactly one pair of neighbours.
        unsafe { shared.part(after + 1..until + 1) }.fill(at as u32);
    };
    (1..rows.len()).into_par_iter().with_min_len(GRAIN).for_each(|i| {
        if rows[i - 1] != rows[i] {
            close(rows[i - 1] as usize, rows[i] as usize, i);
        }
    });
    if let Some(&last) = rows.last() {
        close(last as usize, coo.rows(), rows.len());
    }
    let col_indices = coo.col_indices().par_iter().with_min_len(GRAIN).copied().collect();
    let values = coo.values().par_iter().with_min_len(GRAIN).copied().collect();
    (pointers, col_indices, values)
}

/// Stable counting sort by row; columns inside a row stay in their stored order.
fn sort_by_row<T: Scalar>(coo: &Coo<T>) -> Arrays<T> {
    let (rows, entries) = (coo.rows(), coo.entries());
    let chunks = counting_chunks(rows, entries);
    let chunk_range =
        |chunk: usize| -> Range<usize> { entries * chunk / chunks..entries * (chunk + 1) / chunks };
    // places[chunk][row]: entries of the row in the chunk, then where the next of them goes.
    let mut places = vec![0_u32; chunks * rows];
    places.par_chunks_mut(rows).enumerate().for_each(|(chunk, counts)| {
        for &row in &coo.row_indices()[chunk_range(chunk)] {
            counts[row as usize] += 1;
        }
    });
    let mut pointers = vec![0; rows + 1];
    let mut end = 0;
    for row in 0..rows {
        for chunk in 0..chunks {
            let place = &mut places[chunk * rows + row];
            end += std::mem::replace(place, end);
        }
        pointers[row + 1] = end;
    }
    let mut col_indices = vec![0; entries];
    let mut values = vec![T::ZERO; entries];
    let (cols_out, values_out) =
        (DisjointSlice::new(&mut col_indices), DisjointSlice::new(&mut values));
    places.par_chunks_mut(rows).enumerate().for_each(|(chunk, places)| {
        let range = chunk_range(chunk);
        let triplets = coo.row_indices()[range.clone()]
            .iter()
            .zip(&coo.col_indices()[range.clone()])
            .zip(&coo.values()[range]);
        for ((&row, &col), &value) in triplets {
            let place = &mut places[row as usize];
            // SAFETY: the scan gave every (row, chunk) a range of its own, as long as its count.
            unsafe {
                cols_out.write(*place as usize, col);
                values_out.write(*place as usize, value);
            }
            *place += 1;
        }
    });
    (pointers, col_indices, values)
}

/// Pieces of the entries that are counted independently: one per thread, as long as their
/// counters do not outweigh the entries.
pub(super) fn counting_chunks(counters: usize, entries: usize) -> usize {
    let affordable = (2 * entries / counters.max(1)).max(1);
    rayon::current_num_threads().min(entries.div_ceil(GRAIN)).min(affordable).max(1)
}

/// Sorts every row by column where needed and sums duplicates in their stored order.
pub(super) fn merge_rows<T: Scalar>(arrays: Arrays<T>) -> Arrays<T> {
    let (mut pointers, mut col_indices, mut values) = arrays;
    let rows = pointers.len() - 1;
    let merged = AtomicBool::new(false);
    let mut lengths: Vec<u32> = pointers.windows(2).map(|p| p[1] - p[0]).collect();
    let (cols_out, values_out) =
        (DisjointSlice::new(&mut col_indices), DisjointSlice::new(&mut values));
    lengths.par_iter_mut().enumerate().with_min_len(64).for_each_init(
        Vec::new,
        |scratch, (row, length)| {
            let range = pointers[row] as usize..pointers[row + 1] as usize;
            // SAFETY: rows own different ranges.
            let (cols, values) = unsafe { (cols_out.part(range.clone()), values_out.part(range)) };
            if !cols.is_sorted_by(|a, b| a < b) {
                let kept = sort_row(cols, values, scratch);
                if kept < cols.len() {
                    *length = kept as u32;
                    merged.store(true, Ordering::Relaxed);
                }
            }
        },
    );
    if merged.into_inner() {
        let mut end = 0;
        for row in 0..rows {
            let start = std::mem::replace(&mut pointers[row], end as u32) as usize;
            let range = start..start + lengths[row] as usize;
            col_indices.copy_within(range.clone(), end);
            values.copy_within(range.clone(), end);
            end += range.len();
        }
        pointers[rows] = end as u32;
        col_indices.truncate(end);
        values.truncate(end);
    }
    (pointers, col_indices, values)
}

/// Sorts one row by column, stable, and sums equal columns from left to right. Returns how many
/// entries are left, at the front.
fn sort_row<T: Scalar>(cols: &mut [u32], values: &mut [T], scratch: &mut Vec<(u32, T)>) -> usize {
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
