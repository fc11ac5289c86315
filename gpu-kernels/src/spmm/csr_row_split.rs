//! CSR SpMM by row split, with lanes across the columns of X and across the entries of a row (own).
//!
//! A group of c x e lanes takes a row: lane (a, b) computes, over every e-th quad of entries, its
//! partial sum of Y[i, j] for one, two or four columns j; the e partial sums are added in
//! registers.
//! - Columns lie next to each other on neighbouring lanes, two of them in one 16-byte load of f64:
//!   a row of X is read in whole lines.
//! - The entries of a row are cut at multiples of 4: columns and values of a quad come in one and
//!   two vector loads (the same address for all c lanes), and 4 rows of X are in flight at once.
//! - A row of more than `split` entries is cut into chunks, which are groups of their own and store
//!   to a workspace; [`SplitSum`] then adds them in a fixed order.

use super::columns::Lane;
use super::csr::{Csr, CutRows};
use super::strides::Strides;
use crate::device::shared::Pool;
use crate::device::warp::FULL_MASK;
use crate::device::{DevicePtr, DevicePtrMut, Number, Output, thread, warp};
use crate::kernel::kernel;

/// How a group is laid out, powers of two.
#[derive(Clone, Copy)]
struct Group {
    column_lanes: u32,
    entry_lanes: u32,
}

#[inline(always)]
fn product<T: Number, const N: usize, const W: usize>(
    (csr, rows): (Csr<T>, CutRows),
    group: Group,
    k: u32,
    x: DevicePtr<T>,
    partial: DevicePtrMut<T>,
    y: Output<T>,
    y_strides: Strides,
) {
    let lanes = group.column_lanes * group.entry_lanes;
    let shift = lanes.trailing_zeros();
    let me = thread::thread_idx_x();
    let item = thread::block_idx_x() * (thread::block_dim_x() >> shift) + (me >> shift);
    let lane = me & (lanes - 1);
    let entry_lane = lane >> group.column_lanes.trailing_zeros();
    let column_lane = lane & (group.column_lanes - 1);
    let own = Lane::<T, N, W>::new(x, k, thread::block_idx_y(), group.column_lanes, column_lane);

    let (start, end, stores) = rows.bounds(item);
    let mut sum = csr.sum(own, (start, end), entry_lane, group.entry_lanes);
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
    let target = rows.target(item, (partial, k), (y, y_strides));
    own.store(target.array, target.strides, target.row, sum);
}

macro_rules! widths {
    ($($(#[$meta:meta])* $name:ident $marker:ident $bound:ident $loads:literal $width:literal;)*) => {$(
        kernel! {
            $(#[$meta])*
            ///
            /// X is row-major. Groups of `column_lanes` x `entry_lanes` lanes, powers of two, at
            /// most 32 together. Block: a multiple of 32; grid: at least chunks + rows groups in x,
            /// column tiles in y. `chunk_bounds` has an element per chunk, `partial` k, both none
            /// where `chunks` is 0.
            pub fn $name<T: $bound>(
                rows: u32,
                entries: u32,
                k: u32,
                column_lanes: u32,
                entry_lanes: u32,
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
                let csr = Csr { rows, entries, row_ptr, col_ind, values };
                let cut = CutRows { rows, row_ptr, split, chunks, chunk_bounds };
                let group = Group { column_lanes, entry_lanes };
                product::<T, $loads, $width>((csr, cut), group, k, x, partial, y, y_strides);
            }
            as $marker
        }
    )*};
}

widths! {
    /// `csr-row-split[columns=1]`: any k.
    spmm_csr_row_split_1 CsrRowSplit1 Number 1 1;
    /// `csr-row-split[columns=2]`: k even.
    spmm_csr_row_split_2 CsrRowSplit2 Real 1 2;
    /// `csr-row-split[columns=4]`: k even.
    spmm_csr_row_split_4 CsrRowSplit4 Real 2 2;
}

/// The block of [`SplitSum`]: columns x chunks at once.
pub const SPLIT_SUM_BLOCK: (u32, u32) = (32, 8);

/// Bytes of dynamic shared memory of [`SplitSum`].
#[cfg(not(target_arch = "nvptx64"))]
pub fn split_sum_bytes<T: Number>() -> u32 {
    super::reduce::shared_sum_bytes::<T>(SPLIT_SUM_BLOCK.0 * SPLIT_SUM_BLOCK.1)
}

kernel! {
    /// `Y[split_rows[r], j]` = sum of `partial[c, j]` over the chunks `row_chunks[r]` to
    /// `row_chunks[r + 1]`: thread (j, s) sums every eighth chunk, thread (j, 0) the eight sums.
    /// Block: [`SPLIT_SUM_BLOCK`]; grid: split rows x column tiles of 32; shared memory:
    /// [`split_sum_bytes`].
    pub fn spmm_split_sum<T: Number>(
        k: u32,
        split_rows: DevicePtr<u32>,
        row_chunks: DevicePtr<u32>,
        partial: DevicePtr<T>,
        y: Output<T>,
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
