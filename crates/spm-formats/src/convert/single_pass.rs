//! R4's single-pass conversions: one loop over the triplets, each of which takes the next free
//! position of its row.
//!
//! R4 guards the row's cursor (`curr_idx_per_row`) with a critical section; here it is an atomic
//! addition. The order in which threads take positions varies. Each position therefore also stores
//! the index of its triplet, and each row is put into stored order and then sorted. The result is
//! the same for every number of threads.

use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};

use super::coo_csr::{compressed, merge_rows};
use super::row_scan::{count_rows, finish_row, unpadded};
use super::rows::GRAIN;
use crate::csr::pointers_of;
use crate::disjoint::Disjoint;
use crate::{Coo, Csr, Scalar, UnpaddedEll, parallel};

/// Sorts the positions of one row by the order in which their triplets are stored.
fn restore_order<T: Scalar>(
    positions: &[u32],
    cols: &mut [u32],
    values: &mut [T],
    scratch: &mut Vec<(u32, u32, T)>,
) {
    if positions.is_sorted() {
        return;
    }
    scratch.clear();
    scratch.extend((0..cols.len()).map(|i| (positions[i], cols[i], values[i])));
    scratch.sort_unstable_by_key(|&(position, ..)| position);
    for (i, &(_, col, value)) in scratch.iter().enumerate() {
        (cols[i], values[i]) = (col, value);
    }
}

/// COO to CSR with a single loop over the triplets, parallel over triplets (R4 3.1, the second).
pub fn coo_to_csr_single_pass<T: Scalar>(coo: &Coo<T>) -> Csr<T> {
    let entries = coo.entries();
    let row_ptr = pointers_of(count_rows(coo).into_iter());
    let cursors: Vec<AtomicU32> = row_ptr.iter().map(|&start| AtomicU32::new(start)).collect();
    let mut positions = vec![0; entries];
    let mut cols = vec![0; entries];
    let mut values = vec![T::ZERO; entries];
    let positions_out = Disjoint::new(&mut positions);
    let (cols_out, values_out) = (Disjoint::new(&mut cols), Disjoint::new(&mut values));
    parallel::for_each(entries, GRAIN, |entry| {
        let row = coo.row_ind()[entry] as usize;
        let place = cursors[row].fetch_add(1, Ordering::Relaxed) as usize;
        // SAFETY: the cursor gives each place once, and no more of them than the row has triplets.
        unsafe {
            positions_out.write_unchecked(place, entry as u32);
            cols_out.write_unchecked(place, coo.col_ind()[entry]);
            values_out.write_unchecked(place, coo.values()[entry]);
        }
    });
    parallel::for_each_range(coo.rows(), 1, &|rows| {
        let mut scratch = Vec::new();
        for row in rows {
            let range = row_ptr[row] as usize..row_ptr[row + 1] as usize;
            // SAFETY: rows own different ranges.
            let (positions, cols, values) = unsafe {
                (
                    positions_out.range(range.clone()),
                    cols_out.range(range.clone()),
                    values_out.range(range),
                )
            };
            restore_order(positions, cols, values, &mut scratch);
        }
    });
    compressed((coo.rows(), coo.cols()), merge_rows((row_ptr, cols, values)))
}

/// The arrays of one row while they are filled.
struct OpenRow<T> {
    positions: Vec<u32>,
    cols: Vec<u32>,
    values: Vec<T>,
}

/// Where the next entry of a row goes, and the row's arrays.
type Place<'a, T> = (AtomicU32, Disjoint<'a, u32>, Disjoint<'a, u32>, Disjoint<'a, T>);

/// Bytes that [`coo_to_ell_single_pass`] keeps for a row while it is filled.
pub(super) const fn open_row_bytes<T>() -> usize {
    size_of::<OpenRow<T>>() + size_of::<Place<'_, T>>()
}

/// COO to unpadded ELLPACK with a single loop, parallel over triplets (R4 4.1, the third).
pub fn coo_to_ell_single_pass<T: Scalar>(coo: &Coo<T>) -> UnpaddedEll<T> {
    let row_lengths = count_rows(coo);
    let mut rows: Vec<OpenRow<T>> = parallel::map(coo.rows(), 1, |row| {
        let length = row_lengths[row] as usize;
        OpenRow { positions: vec![0; length], cols: vec![0; length], values: vec![T::ZERO; length] }
    });
    let places: Vec<Place<'_, T>> = rows
        .iter_mut()
        .map(|row| {
            let cursor = AtomicU32::new(0);
            let positions = Disjoint::new(&mut row.positions);
            let cols = Disjoint::new(&mut row.cols);
            (cursor, positions, cols, Disjoint::new(&mut row.values))
        })
        .collect();
    parallel::for_each(coo.entries(), GRAIN, |entry| {
        let (cursor, positions, cols, values) = &places[coo.row_ind()[entry] as usize];
        let place = cursor.fetch_add(1, Ordering::Relaxed) as usize;
        // SAFETY: the cursor gives each place once, and no more of them than the row has triplets.
        unsafe {
            positions.write_unchecked(place, entry as u32);
            cols.write_unchecked(place, coo.col_ind()[entry]);
            values.write_unchecked(place, coo.values()[entry]);
        }
    });
    drop(places);
    let open = Disjoint::new(&mut rows);
    let rows = parallel::map_ranges(coo.rows(), 1, |range| {
        let (mut by_position, mut by_column) = (Vec::new(), Vec::new());
        // SAFETY: the ranges do not overlap.
        let rows = unsafe { open.range(range) };
        rows.iter_mut().map(move |row| {
            let positions = mem::take(&mut row.positions);
            let (mut cols, mut values) = (mem::take(&mut row.cols), mem::take(&mut row.values));
            restore_order(&positions, &mut cols, &mut values, &mut by_position);
            finish_row(cols, values, &mut by_column)
        })
    });
    unpadded(coo.cols(), rows)
}
