//! SELL-32-sigma, a thread per row, X column-major (own; the format is that of Kreutzer et al., SIAM
//! J. Sci. Comput. 36(5), 2014).
//!
//! Lane l of a warp takes position p = 32 c + l of chunk c and up to N columns of X: a stored element is
//! loaded once for all of them. Where neighbouring rows have neighbouring columns, as in stencils
//! and bands, the 32 loads from a column of X fall into two or three lines.

use super::sell::Sell;
use super::strides::Strides;
use crate::device::{DevicePtr, Output, Real, divide, thread};
use crate::kernel::kernel;

/// Stored elements that are loaded at once.
const AT_ONCE: usize = 2;

#[inline(always)]
fn product<T: Real, const N: usize>(
    a: Sell<T>,
    cols: u32,
    k: u32,
    x: DevicePtr<T>,
    y: Output<T>,
    y_strides: Strides,
) {
    let column_groups = k.div_ceil(N as u32);
    let row_block = divide(thread::block_idx_x(), column_groups);
    let first_column = (thread::block_idx_x() - row_block * column_groups) * N as u32;
    let position = row_block * thread::block_dim_x() + thread::thread_idx_x();
    if position >= a.rows {
        return;
    }
    // Beyond the last column the first one is read, and nothing is stored.
    let columns: [DevicePtr<T>; N] = core::array::from_fn(|n| {
        let column = first_column + n as u32;
        x.offset(u64::from(if column < k { column } else { first_column }) * u64::from(cols))
    });
    let elements = a.elements(position);
    let mut sum = [T::ZERO; N];
    let (mut element, mut left) = (0, elements.length);
    let mut next = elements.load::<AT_ONCE>(element, left);
    while left >= AT_ONCE as u32 {
        let entries = next;
        let of_x: [[T; N]; AT_ONCE] =
            core::array::from_fn(|u| core::array::from_fn(|n| columns[n].load(entries[u].0)));
        element += AT_ONCE as u32;
        left -= AT_ONCE as u32;
        next = elements.load(element, left);
        for u in 0..AT_ONCE {
            sum = core::array::from_fn(|n| entries[u].1.mul_add(of_x[u][n], sum[n]));
        }
    }
    if left > 0 {
        // With two at once, one is left.
        let (column, value) = next[0];
        sum = core::array::from_fn(|n| value.mul_add(columns[n].load(column), sum[n]));
    }
    let row = a.row(position);
    for (n, &sum) in sum.iter().enumerate() {
        let column = first_column + n as u32;
        if column < k {
            y.store(y_strides.index(row, column), sum);
        }
    }
}

macro_rules! widths {
    ($($(#[$meta:meta])* $name:ident $marker:ident $columns:literal;)*) => {$(
        kernel! {
            $(#[$meta])*
            ///
            /// X is column-major. `permutation` is read where `sorted` is not 0;
            /// `chunk_starts` counts chunk columns: the chunk offsets of the format divided by 32;
            /// `row_lengths` has the length at each position. Block: a multiple of 32; grid: blocks
            /// for all rows x groups of columns, those of the same rows one after the other.
            pub fn $name<T: Real>(
                rows: u32,
                cols: u32,
                k: u32,
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
                product::<T, $columns>(a, cols, k, x, y, y_strides);
            }
            as $marker
        }
    )*};
}

widths! {
    /// `sell-thread-per-row[columns=2]`.
    spmm_sell_thread_per_row_2 SellThreadPerRow2 2;
    /// `sell-thread-per-row[columns=4]`.
    spmm_sell_thread_per_row_4 SellThreadPerRow4 4;
    /// `sell-thread-per-row[columns=8]`.
    spmm_sell_thread_per_row_8 SellThreadPerRow8 8;
}
