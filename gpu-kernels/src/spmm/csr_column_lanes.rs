//! CSR, lanes across the columns of X and across the entries of a row (own).
//!
//! A group of c x e lanes takes a row: lane (a, b) computes, over every e-th quad of entries, its
//! share of Y[i, j] for one, two or four columns j; the e shares are folded in registers.
//! - Columns lie next to each other on neighbouring lanes, two of them in one 16-byte load of f64:
//!   a row of X is read in whole lines.
//! - The entries of a row are cut at multiples of 4: columns and values of a quad come in one and
//!   two vector loads (the same address for all c lanes), and 4 rows of X are in flight at once.
//! - A row of more than `split` entries is cut into chunks, which are groups of their own and store
//!   to a workspace; [`SplitSum`] then adds them in a fixed order.

use super::strides::Strides;
use crate::device::shared::Pool;
use crate::device::warp::FULL_MASK;
use crate::device::{DevicePtr, DevicePtrMut, Real, thread, warp};
use crate::kernel::kernel;

/// Entries of a quad.
const QUAD: u32 = 4;

/// CSR with its long rows cut.
#[derive(Clone, Copy)]
struct Matrix<T> {
    rows: u32,
    pointers: DevicePtr<u32>,
    col_indices: DevicePtr<u32>,
    values: DevicePtr<T>,
    /// Longer rows are left to chunks; no chunks, no longer rows.
    split: u32,
    chunks: u32,
    /// First entry and end of each chunk.
    chunk_bounds: DevicePtr<u32>,
}

/// How a group is laid out, powers of two.
#[derive(Clone, Copy)]
struct Group {
    column_lanes: u32,
    entry_lanes: u32,
}

/// Columns of a lane: `N` loads of `W` neighbouring elements each.
type Columns<T, const N: usize> = [[T; 2]; N];

#[inline(always)]
fn multiply_add<T: Real, const N: usize>(
    value: T,
    x: Columns<T, N>,
    sum: Columns<T, N>,
) -> Columns<T, N> {
    core::array::from_fn(|n| [value.mul_add(x[n][0], sum[n][0]), value.mul_add(x[n][1], sum[n][1])])
}

#[inline(always)]
fn product<T: Real, const N: usize, const W: usize>(
    a: Matrix<T>,
    group: Group,
    k: u32,
    x: DevicePtr<T>,
    partial: DevicePtrMut<T>,
    y: DevicePtrMut<T>,
    y_strides: Strides,
) {
    let lanes = group.column_lanes * group.entry_lanes;
    let shift = lanes.trailing_zeros();
    let me = thread::thread_idx_x();
    let item = thread::block_idx_x() * (thread::block_dim_x() >> shift) + (me >> shift);
    let lane = me & (lanes - 1);
    let entry_lane = lane >> group.column_lanes.trailing_zeros();
    // Distance of a lane's loads in columns, and its first column.
    let stride = group.column_lanes * W as u32;
    let first =
        thread::block_idx_y() * stride * N as u32 + (lane & (group.column_lanes - 1)) * W as u32;
    // Lanes beyond the last column read where others read and store nothing.
    let readable: [u32; N] = core::array::from_fn(|n| {
        let column = first + n as u32 * stride;
        if column < k { column } else { 0 }
    });

    let (mut start, mut end, mut stores) = (0, 0, false);
    let row = item.wrapping_sub(a.chunks);
    if item < a.chunks {
        [start, end] = a.chunk_bounds.load_vector::<2>(2 * item);
        stores = true;
    } else if row < a.rows {
        (start, end) = (a.pointers.load(row), a.pointers.load(row + 1));
        stores = end - start <= a.split;
        if !stores {
            end = start;
        }
    }

    let mut sum: Columns<T, N> = [[T::ZERO; 2]; N];
    let read = |column: u32| -> Columns<T, N> {
        let row = u64::from(column) * u64::from(k);
        core::array::from_fn(|n| {
            let at = row + u64::from(readable[n]);
            if W == 2 { T::load_pair(x, at) } else { [x.load(at), T::ZERO] }
        })
    };
    let mut quad = (start & !(QUAD - 1)) + QUAD * entry_lane;
    while quad < end {
        let (columns, values, rows_of_x): ([u32; 4], [T; 4], [Columns<T, N>; 4]);
        if quad >= start && end - quad >= QUAD {
            columns = a.col_indices.load_vector::<4>(quad);
            let low = T::load_pair(a.values, u64::from(quad));
            let high = T::load_pair(a.values, u64::from(quad) + 2);
            values = [low[0], low[1], high[0], high[1]];
            rows_of_x = core::array::from_fn(|u| read(columns[u]));
        } else {
            let inside = |u: usize| {
                let entry = quad + u as u32;
                entry >= start && entry < end
            };
            columns = core::array::from_fn(|u| {
                if inside(u) { a.col_indices.load(quad + u as u32) } else { 0 }
            });
            values = core::array::from_fn(|u| {
                if inside(u) { a.values.load(quad + u as u32) } else { T::ZERO }
            });
            rows_of_x =
                core::array::from_fn(
                    |u| {
                        if inside(u) { read(columns[u]) } else { [[T::ZERO; 2]; N] }
                    },
                );
        }
        for u in 0..4 {
            sum = multiply_add(values[u], rows_of_x[u], sum);
        }
        quad = quad.saturating_add(QUAD * group.entry_lanes);
    }

    let mut distance = lanes / 2;
    while distance >= group.column_lanes {
        sum = core::array::from_fn(|n| {
            let other = |w: usize| warp::shuffle_xor(FULL_MASK, sum[n][w], distance, lanes);
            [sum[n][0] + other(0), if W == 2 { sum[n][1] + other(1) } else { T::ZERO }]
        });
        distance /= 2;
    }
    if !stores || entry_lane != 0 {
        return;
    }
    let (target, row, strides) = if item < a.chunks {
        (partial, item, Strides { row: u64::from(k), column: 1 })
    } else {
        (y, row, y_strides)
    };
    for (n, &[left, right]) in sum.iter().enumerate() {
        let column = first + n as u32 * stride;
        if column < k {
            let at = strides.index(row, column);
            if W == 2 && strides.column == 1 {
                T::store_pair(target, at, [left, right]);
            } else {
                target.store(at, left);
                if W == 2 {
                    target.store(at + strides.column, right);
                }
            }
        }
    }
}

macro_rules! widths {
    ($($(#[$meta:meta])* $name:ident $marker:ident $loads:literal $width:literal;)*) => {$(
        kernel! {
            $(#[$meta])*
            ///
            /// X is row-major. Groups of `column_lanes` x `entry_lanes` lanes, powers of two, at
            /// most 32 together. Block: a multiple of 32; grid: at least chunks + rows groups in x,
            /// column tiles in y. `chunk_bounds` has two elements per chunk, `partial` k, both none
            /// where `chunks` is 0.
            pub fn $name<T: Real>(
                rows: u32,
                k: u32,
                column_lanes: u32,
                entry_lanes: u32,
                split: u32,
                chunks: u32,
                chunk_bounds: DevicePtr<u32>,
                partial: DevicePtrMut<T>,
                pointers: DevicePtr<u32>,
                col_indices: DevicePtr<u32>,
                values: DevicePtr<T>,
                x: DevicePtr<T>,
                y: DevicePtrMut<T>,
                y_strides: Strides,
            ) {
                let a = Matrix { rows, pointers, col_indices, values, split, chunks, chunk_bounds };
                let group = Group { column_lanes, entry_lanes };
                product::<T, $loads, $width>(a, group, k, x, partial, y, y_strides);
            }
            as $marker
        }
    )*};
}

widths! {
    /// `csr-column-lanes[columns=1]`: any k.
    spmm_csr_column_lanes_1 CsrColumnLanes1 1 1;
    /// `csr-column-lanes[columns=2]`: k even.
    spmm_csr_column_lanes_2 CsrColumnLanes2 1 2;
    /// `csr-column-lanes[columns=4]`: k even.
    spmm_csr_column_lanes_4 CsrColumnLanes4 2 2;
}

/// The block of [`SplitSum`]: columns x chunks at once.
pub const SPLIT_SUM_BLOCK: (u32, u32) = (32, 8);

/// Bytes of dynamic shared memory of [`SplitSum`].
#[cfg(not(target_arch = "nvptx64"))]
pub fn split_sum_bytes<T: Real>() -> u32 {
    super::reduce::shared_sum_bytes::<T>(SPLIT_SUM_BLOCK.0 * SPLIT_SUM_BLOCK.1)
}

kernel! {
    /// `Y[split_rows[r], j]` = sum of `partial[c, j]` over the chunks `row_chunks[r]` to
    /// `row_chunks[r + 1]`: thread (j, s) sums every eighth chunk, thread (j, 0) the eight sums.
    /// Block: [`SPLIT_SUM_BLOCK`]; grid: split rows x column tiles of 32; shared memory:
    /// [`split_sum_bytes`].
    pub fn spmm_split_sum<T: Real>(
        k: u32,
        split_rows: DevicePtr<u32>,
        row_chunks: DevicePtr<u32>,
        partial: DevicePtr<T>,
        y: DevicePtrMut<T>,
        y_strides: Strides,
    ) {
        let (columns, shares) = SPLIT_SUM_BLOCK;
        let sums = Pool::new().array::<T>(columns * shares);
        let (c, s) = (thread::thread_idx_x(), thread::thread_idx_y());
        let column = thread::block_idx_y() * columns + c;
        let at = thread::block_idx_x();
        let mut sum = T::ZERO;
        if column < k {
            let end = row_chunks.load(at + 1);
            let mut chunk = row_chunks.load(at) + s;
            while chunk < end {
                sum += partial.load(u64::from(chunk) * u64::from(k) + u64::from(column));
                chunk += shares;
            }
        }
        sums.store(s * columns + c, sum);
        thread::sync_threads();
        if s == 0 && column < k {
            for share in 1..shares {
                sum += sums.load(share * columns + c);
            }
            y.store(y_strides.index(split_rows.load(at), column), sum);
        }
    }
    as SplitSum
}
