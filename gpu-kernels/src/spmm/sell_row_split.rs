//! SELL-32-sigma, lanes across the columns of X (own; the format is that of Kreutzer et al., SIAM
//! J. Sci. Comput. 36(5), 2014).
//!
//! A group of c lanes takes position p of a chunk, whose stored elements are 32 apart: lane l sums
//! values[32 s + p] X[col_ind[32 s + p], j] over the stored elements s of its row for its columns j.
//! - Neighbouring groups take neighbouring positions: columns and values come in whole sectors.
//! - Neighbouring lanes take neighbouring columns of X, two in one 16-byte load of f64.
//! - Four rows of X and the next four stored elements are in flight at once.
//!
//! Padding is not read from X: a row ends at its length.

use super::columns::{Columns, Lane, multiply_add, zeros};
use super::sell::Sell;
use super::strides::Strides;
use crate::device::{DevicePtr, Output, Real, thread};
use crate::kernel::kernel;

/// Stored elements that are loaded at once.
const AT_ONCE: usize = 4;

#[inline(always)]
fn product<T: Real, const N: usize, const W: usize>(
    a: Sell<T>,
    lanes: u32,
    k: u32,
    x: DevicePtr<T>,
    y: Output<T>,
    y_strides: Strides,
) {
    let shift = lanes.trailing_zeros();
    let me = thread::thread_idx_x();
    let position = thread::block_idx_x() * (thread::block_dim_x() >> shift) + (me >> shift);
    if position >= a.rows {
        return;
    }
    let columns = Lane::<T, N, W>::new(x, k, thread::block_idx_y(), lanes, me & (lanes - 1));
    let elements = a.elements(position);
    let mut sum = zeros::<T, N>();
    let (mut element, mut left) = (0, elements.length);
    let mut next = elements.load::<AT_ONCE>(element, left);
    while left >= AT_ONCE as u32 {
        let entries = next;
        let rows_of_x: [Columns<T, N>; AT_ONCE] =
            core::array::from_fn(|u| columns.load(entries[u].0));
        element += AT_ONCE as u32;
        left -= AT_ONCE as u32;
        next = elements.load(element, left);
        for u in 0..AT_ONCE {
            sum = multiply_add(entries[u].1, rows_of_x[u], sum);
        }
    }
    let rows_of_x: [Columns<T, N>; AT_ONCE] =
        core::array::from_fn(|u| if (u as u32) < left { columns.load(next[u].0) } else { zeros() });
    for u in 0..AT_ONCE {
        sum = multiply_add(next[u].1, rows_of_x[u], sum);
    }
    columns.store(y, y_strides, a.row(position), sum);
}

macro_rules! widths {
    ($($(#[$meta:meta])* $name:ident $marker:ident $loads:literal $width:literal;)*) => {$(
        kernel! {
            $(#[$meta])*
            ///
            /// X is row-major. Groups of `lanes` lanes, a power of two up to 32. `permutation` is
            /// read where `sorted` is not 0; `chunk_starts` counts chunk columns: the chunk offsets
            /// of the format divided by 32; `row_lengths` has the length at each position. Block: a
            /// multiple of 32; grid: at least as many groups as rows in x, column tiles in y.
            pub fn $name<T: Real>(
                rows: u32,
                k: u32,
                lanes: u32,
                sorted: u32,
                chunk_starts: DevicePtr<u32>,
                permutation: DevicePtr<u32>,
                row_lengths: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                y: Output<T>,
                y_strides: Strides,
            ) {
                let a = Sell {
                    rows,
                    sorted: sorted != 0,
                    chunk_starts,
                    permutation,
                    row_lengths,
                    col_ind,
                    values,
                };
                product::<T, $loads, $width>(a, lanes, k, x, y, y_strides);
            }
            as $marker
        }
    )*};
}

widths! {
    /// `sell-row-split[columns=1]`: any k.
    spmm_sell_row_split_1 SellRowSplit1 1 1;
    /// `sell-row-split[columns=2]`: k even.
    spmm_sell_row_split_2 SellRowSplit2 1 2;
    /// `sell-row-split[columns=4]`: k even.
    spmm_sell_row_split_4 SellRowSplit4 2 2;
}
