//! CSR SpMM with a column-major X: lanes across the entries of a row (own; after "CSR-vector" of
//! Bell and Garland, SC'09).
//!
//! A group of w lanes takes a row and N columns of X: lane l sums values[e] X[col_ind[e], j]
//! over every w-th entry e from the l-th on; an entry is loaded once for the N columns. The w x N
//! sums are folded in registers.
//! - The lanes of a group read neighbouring entries. Where their columns are neighbours too, as in
//!   blocks of finite elements, so are the elements of X.
//! - U entries of a lane are in flight at once; N x U is 8 or 16.
//! - While a fold leaves a lane more than one column, it also halves them: half the lanes go on
//!   with each half. So N columns take N - 1 shuffles more than one, not N times as many.
//! - Long rows are cut, as in `csr-row-split`.

use super::csr::{Csr, CutRows};
use super::strides::Strides;
use crate::collective::warp_sum;
use crate::device::warp::FULL_MASK;
use crate::device::{DevicePtr, DevicePtrMut, Output, Real, divide, thread, warp};
use crate::kernel::kernel;

/// The matrix, and X and Y.
#[derive(Clone, Copy)]
struct Operands<T> {
    csr: Csr<T>,
    rows: CutRows,
    cols: u32,
    k: u32,
    x: DevicePtr<T>,
    partial: DevicePtrMut<T>,
    y: Output<T>,
    y_strides: Strides,
}

/// One of the sums of two halves of the columns: a lane whose bit `distance` is not set gets the
/// one of the first half, its partner that of the second.
#[inline(always)]
fn fold_halves<T: Real>(first: T, second: T, lane: u32, distance: u32, lanes: u32) -> T {
    let upper = lane & distance != 0;
    let (own, other) = if upper { (second, first) } else { (first, second) };
    own + warp::shuffle_xor(FULL_MASK, other, distance, lanes)
}

#[inline(always)]
fn product<T: Real, const N: usize, const U: usize>(a: Operands<T>, lanes: u32) {
    let Operands { csr, rows, cols, k, x, partial, y, y_strides } = a;
    let columns = N as u32;
    let column_groups = k.div_ceil(columns);
    let item_block = divide(thread::block_idx_x(), column_groups);
    let first_column = (thread::block_idx_x() - item_block * column_groups) * columns;
    let (me, shift) = (thread::thread_idx_x(), lanes.trailing_zeros());
    let item = item_block * (thread::block_dim_x() >> shift) + (me >> shift);
    let lane = me & (lanes - 1);
    let (start, end, stores) = rows.bounds(item);

    // Beyond the last column the first one is read, and nothing is stored.
    let x: [DevicePtr<T>; N] = core::array::from_fn(|n| {
        let column = first_column + n as u32;
        x.offset(u64::from(if column < k { column } else { first_column }) * u64::from(cols))
    });
    let mut sum = [T::ZERO; N];
    let mut entry = start + lane;
    while entry < end {
        let left = end - entry;
        // Beyond the end the first one is loaded again, and left out: no branch between loads.
        let inside = |u: usize| u as u32 * lanes < left;
        let entries: [(u32, T); U] = core::array::from_fn(|u| {
            let at = entry + if inside(u) { u as u32 * lanes } else { 0 };
            (csr.col_ind.load(at), csr.values.load(at))
        });
        let elements: [[T; N]; U] =
            core::array::from_fn(|u| core::array::from_fn(|n| x[n].load(entries[u].0)));
        for u in 0..U {
            if inside(u) {
                sum = core::array::from_fn(|n| entries[u].1.mul_add(elements[u][n], sum[n]));
            }
        }
        if left <= U as u32 * lanes {
            break;
        }
        entry += U as u32 * lanes;
    }

    let target = rows.target(item, (partial, k), (y, y_strides));
    if lanes < columns {
        sum = core::array::from_fn(|n| warp_sum(FULL_MASK, sum[n], lanes));
        if stores && lane == 0 {
            for (n, &sum) in sum.iter().enumerate() {
                let column = first_column + n as u32;
                if column < k {
                    target.store(column, sum);
                }
            }
        }
        return;
    }
    let mut distance = lanes / 2;
    // Written out: a loop would keep the sums in local memory.
    macro_rules! fold {
        ($half:literal: $($n:literal)*) => {
            if N > $half {
                $(sum[$n % N] = fold_halves(sum[$n % N], sum[($n + $half) % N], lane, distance, lanes);)*
                distance /= 2;
            }
        };
    }
    fold!(4: 0 1 2 3);
    fold!(2: 0 1);
    fold!(1: 0);
    // The columns are the upper bits of the lane; the lanes of a column lie next to each other.
    let share = (2 * distance).max(1);
    let sum = warp_sum(FULL_MASK, sum[0], share);
    let column = first_column + (lane >> share.trailing_zeros());
    if stores && lane & (share - 1) == 0 && column < k {
        target.store(column, sum);
    }
}

macro_rules! widths {
    ($($(#[$meta:meta])* $name:ident $marker:ident $columns:literal $at_once:literal;)*) => {$(
        kernel! {
            $(#[$meta])*
            ///
            /// X is column-major. Groups of `lanes` lanes, a power of two up to 32. Block: a
            /// multiple of 32; grid: blocks for chunks + rows groups x groups of columns, those of
            /// the same rows one after the other. `chunk_bounds` has an element per chunk,
            /// `partial` k, both none where `chunks` is 0.
            pub fn $name<T: Real>(
                rows: u32,
                cols: u32,
                k: u32,
                lanes: u32,
                split: u32,
                chunks: u32,
                chunk_bounds: DevicePtr<[u32; 2]>,
                partial: DevicePtrMut<T>,
                row_ptr: DevicePtr<u32>,
                col_ind: DevicePtr<u32>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                y: Output<T>,
                y_strides: Strides,
            ) {
                // The number of entries is not looked at.
                let csr = Csr { rows, entries: 0, row_ptr, col_ind, values };
                let rows = CutRows { rows, row_ptr, split, chunks, chunk_bounds };
                let a = Operands { csr, rows, cols, k, x, partial, y, y_strides };
                product::<T, $columns, $at_once>(a, lanes);
            }
            as $marker
        }
    )*};
}

widths! {
    /// `csr-vector[columns=2]`.
    spmm_csr_vector_2 CsrVector2 2 4;
    /// `csr-vector[columns=4]`.
    spmm_csr_vector_4 CsrVector4 4 2;
    /// `csr-vector[columns=8]`.
    spmm_csr_vector_8 CsrVector8 8 2;
}
