//! CSR SpMM by nonzero split: lanes across the columns of X, and equal numbers of entries for each
//! group of lanes (own; the partition is that of CSR-Adaptive's row blocks, Greathouse and Daga,
//! SC'14).
//!
//! An item is a run of whole rows with about the same number of entries as every other one, or a
//! part of one long row. A group of c lanes takes an item: lane l sums, entry after entry,
//! values[e] X[col_ind[e], j] for its columns j, and writes Y[i, j] where row i ends.
//! - Neighbouring lanes take neighbouring columns, two of them in one 16-byte load of f64: a row of
//!   X is read in whole lines.
//! - Four entries come in one load of columns and two of values, across the ends of rows. Four rows
//!   of X and the next four entries are in flight at once.
//! - Groups of a warp take neighbouring rows, which often read the same rows of X: L1 holds them.
//! - The parts of a long row go to a workspace; [`super::SplitSum`] adds them in a fixed order.

use super::columns::{Columns, Lane, multiply_add, zeros};
use super::csr::{Csr, QUAD};
use super::strides::Strides;
use crate::device::{DevicePtr, DevicePtrMut, Number, Output, thread};
use crate::kernel::kernel;

#[inline(always)]
fn product<T: Number, const N: usize, const W: usize>(
    a: Csr<T>,
    lanes: u32,
    items: (u32, DevicePtr<[u32; 4]>),
    k: u32,
    x: DevicePtr<T>,
    partial: DevicePtrMut<T>,
    y: Output<T>,
) {
    let shift = lanes.trailing_zeros();
    let me = thread::thread_idx_x();
    let item = thread::block_idx_x() * (thread::block_dim_x() >> shift) + (me >> shift);
    let columns = Lane::<T, N, W>::new(x, k, thread::block_idx_y(), lanes, me & (lanes - 1));
    if item >= items.0 {
        return;
    }
    let [start, end, mut row, last_row] = items.1.load(item);
    let strides = Strides { row: u64::from(k), column: 1 };
    // A part of a long row is a row beyond those of the matrix.
    let store = |row: u32, sum| {
        let (target, row) = if row < a.rows { (y, row) } else { (partial.into(), row - a.rows) };
        columns.store(target, strides, row, sum);
    };
    let row_end = |row: u32| if row < a.rows { a.row_ptr.load(row + 1) } else { end };
    let mut sum = zeros::<T, N>();
    let mut next_row = row_end(row);
    let mut quad = start & !(QUAD - 1);
    let mut next = if start < end { a.quad(quad) } else { ([0; 4], [T::ZERO; 4]) };
    while quad < end {
        let (col_ind, values) = next;
        // At the ends also those of other items' entries, which nobody adds.
        let rows_of_x: [Columns<T, N>; 4] = core::array::from_fn(|u| columns.load(col_ind[u]));
        if end - quad > QUAD {
            next = a.quad(quad + QUAD);
        }
        if quad >= start && next_row - quad >= QUAD {
            for u in 0..4 {
                sum = multiply_add(values[u], rows_of_x[u], sum);
            }
        } else {
            // Written out: a loop would be left as one, with its arrays in local memory.
            macro_rules! add {
                ($($u:literal)*) => {$(
                    if quad + $u >= start && $u < end - quad {
                        while quad + $u == next_row {
                            store(row, sum);
                            sum = zeros();
                            row += 1;
                            next_row = row_end(row);
                        }
                        sum = multiply_add(values[$u], rows_of_x[$u], sum);
                    }
                )*};
            }
            add!(0 1 2 3);
        }
        if end - quad <= QUAD {
            break;
        }
        quad += QUAD;
    }
    // The last row with entries, and the empty ones after it.
    while row < last_row {
        store(row, sum);
        sum = zeros();
        row += 1;
    }
}

macro_rules! widths {
    ($($(#[$meta:meta])* $name:ident $marker:ident $bound:ident $loads:literal $width:literal;)*) => {$(
        kernel! {
            $(#[$meta])*
            ///
            /// X and Y are row-major. An item is its first entry and the end of its entries, its first
            /// row and the end of its rows. Rows from `rows` on are
            /// parts of rows, which go to row - `rows` of `partial`, k elements each. Groups of
            /// `lanes` lanes, a power of two up to 32. Block: a multiple of 32; grid: at least as
            /// many groups as items in x, column tiles in y.
            pub fn $name<T: $bound>(
                rows: u32,
                entries: u32,
                k: u32,
                lanes: u32,
                item_count: u32,
                items: DevicePtr<[u32; 4]>,
                row_ptr: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                partial: DevicePtrMut<T>,
                y: Output<T>,
            ) {
                let a = Csr { rows, entries, row_ptr, col_ind, values };
                let items = (item_count, items);
                product::<T, $loads, $width>(a, lanes, items, k, x, partial, y);
            }
            as $marker
        }
    )*};
}

widths! {
    /// `csr-nonzero-split[columns=1]`: any k.
    spmm_csr_nonzero_split_1 CsrNonzeroSplit1 Number 1 1;
    /// `csr-nonzero-split[columns=2]`: k even.
    spmm_csr_nonzero_split_2 CsrNonzeroSplit2 Real 1 2;
    /// `csr-nonzero-split[columns=4]`: k even.
    spmm_csr_nonzero_split_4 CsrNonzeroSplit4 Real 2 2;
}
