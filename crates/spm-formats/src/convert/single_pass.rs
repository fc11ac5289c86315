//! R4's single-pass conversions: one loop over the triplets, each of which takes the next free
//! position of its row.
//!
//! R4 guards the row's cursor (`curr_idx_per_row`) with a critical section; here it is an atomic
//! addition. The order in which threads take positions varies. Each position therefore also stores
//! the index of its triplet, and each row is put into stored order and then sorted. The result is
//! the same for every number of threads.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::coo_csr::{compressed, merge_rows};
use super::row_scan::{count_rows, finish_row, unpadded};
use super::rows::GRAIN;
use crate::csr::pointers_of;
use crate::disjoint::Disjoint;
use crate::{Coo, Csr, Scalar, UnpaddedEll};

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
    (0..entries).into_par_iter().with_min_len(GRAIN).for_each(|entry| {
        let row = coo.row_ind()[entry] as usize;
        let place = cursors[row].fetch_add(1, Ordering::Relaxed) as usize;
        // SAFETY: the cursor gives each place once, and no more of them than the row has triplets.
        unsafe {
            positions_out.write_unchecked(place, entry as u32);
            cols_out.write_unchecked(place, coo.col_ind()[entry]);
            values_out.write_unchecked(place, coo.values()[entry]);
        }
    });
    (0..coo.rows()).into_par_iter().for_each_init(Vec::new, |scratch, row| {
        let range = row_ptr[row] as usize..row_ptr[row + 1] as usize;
        // SAFETY: rows own different ranges.
        let (positions, cols, values) = unsafe {
            (
                positions_out.range(range.clone()),
                cols_out.range(range.clone()),
                values_out.range(range),
            )
        };
        restore_order(positions, cols, values, scratch);
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
    let mut rows: Vec<OpenRow<T>> = count_rows(coo)
        .into_par_iter()
        .map(|length| OpenRow {
            positions: vec![0; length as usize],
            cols: vec![0; length as usize],
            values: vec![T::ZERO; length as usize],
        })
        .collect();
    let places: Vec<Place<'_, T>> = rows
        .iter_mut()
        .map(|row| {
            let cursor = AtomicU32::new(0);
            let positions = Disjoint::new(&mut row.positions);
            let cols = Disjoint::new(&mut row.cols);
            (cursor, positions, cols, Disjoint::new(&mut row.values))
        })
        .collect();
    (0..coo.entries()).into_par_iter().with_min_len(GRAIN).for_each(|entry| {
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
    let rows = rows
        .into_par_iter()
        .map_init(
            || (Vec::new(), Vec::new()),
            |(by_position, by_column), mut row| {
                restore_order(&row.positions, &mut row.cols, &mut row.values, by_position);
                finish_row(row.cols, row.values, by_column)
            },
        )
        .collect();
    unpadded(coo.cols(), rows)
}
