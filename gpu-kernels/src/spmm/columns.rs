//! The assignment of columns of a row-major X to the lanes of a group.

use super::strides::Strides;
use crate::device::{DevicePtr, DevicePtrMut, Number, Output};

/// Threads of a block of the kernels whose lanes take different columns, at most: with 1024 there would be fewer
/// registers than a lane has loads and sums for.
pub const COLUMN_THREADS: u32 = 512;

/// One number for each of them: `N` loads of `W` (1 or 2) neighbouring elements; without a second
/// element it is 0.
pub(super) type Columns<T, const N: usize> = [[T; 2]; N];

/// 0 for each column.
#[inline(always)]
pub(super) fn zeros<T: Number, const N: usize>() -> Columns<T, N> {
    [[T::ZERO; 2]; N]
}

/// value x + sum.
#[inline(always)]
pub(super) fn multiply_add<T: Number, const N: usize>(
    value: T,
    x: Columns<T, N>,
    sum: Columns<T, N>,
) -> Columns<T, N> {
    core::array::from_fn(|n| [value.mul_add(x[n][0], sum[n][0]), value.mul_add(x[n][1], sum[n][1])])
}

/// The columns of a lane.
#[derive(Clone, Copy)]
pub(super) struct Lane<T, const N: usize, const W: usize> {
    k: u32,
    first: u32,
    /// From a load to the next, in columns.
    stride: u32,
    /// Bytes of a row of X.
    pitch: u32,
    /// X from the first column of each load on; from column 0 for a load beyond k.
    x: [DevicePtr<T>; N],
}

impl<T: Number, const N: usize, const W: usize> Lane<T, N, W> {
    /// Lane `lane` of `lanes`, in the `tile`-th part of the k columns of `x`, a row-major matrix
    /// whose rows have less than 2^32 bytes; k is even for W = 2.
    #[inline(always)]
    pub(super) fn new(x: DevicePtr<T>, k: u32, tile: u32, lanes: u32, lane: u32) -> Self {
        let stride = lanes * W as u32;
        let first = tile * stride * N as u32 + lane * W as u32;
        let x = core::array::from_fn(|n| {
            let column = first + n as u32 * stride;
            x.offset(if column < k { column } else { 0 })
        });
        Self { k, first, stride, pitch: k * size_of::<T>() as u32, x }
    }

    /// Its columns of a row of X.
    #[inline(always)]
    pub(super) fn load(self, row: u32) -> Columns<T, N> {
        // One multiplication with addition for each load.
        let row = u64::from(row) * u64::from(self.pitch);
        core::array::from_fn(|n| {
            let x = self.x[n].byte_offset(row);
            match (W, N) {
                (1, _) => [x.load(0_u32), T::ZERO],
                // Of one load of each lane, with few columns: the rest of a line has other rows of X.
                (_, 1) => T::load_pair(x, 0),
                _ => T::load_pair_with_line(x, 0),
            }
        })
    }

    /// Overwrites its columns of a row of Y.
    #[inline(always)]
    pub(super) fn store(self, y: Output<T>, strides: Strides, row: u32, sum: Columns<T, N>) {
        for (n, &[left, right]) in sum.iter().enumerate() {
            let column = self.first + n as u32 * self.stride;
            if column < self.k {
                let at = strides.index(row, column);
                if W == 2 && strides.column == 1 {
                    y.store_pair(at, [left, right]);
                } else {
                    y.store(at, left);
                    if W == 2 {
                        y.store(at + strides.column, right);
                    }
                }
            }
        }
    }

    /// Overwrites its columns of row `part` of `partial`, a row-major matrix of k columns.
    #[inline(always)]
    pub(super) fn store_part(self, partial: DevicePtrMut<T>, part: u32, sum: Columns<T, N>) {
        let strides = Strides { row: u64::from(self.k), column: 1 };
        self.store(partial.into(), strides, part, sum);
    }

    /// Its columns of such a row as other blocks have stored it, 0 beyond k.
    #[inline(always)]
    pub(super) fn load_part(self, partial: DevicePtrMut<T>, part: u32) -> Columns<T, N> {
        core::array::from_fn(|n| {
            let column = self.first + n as u32 * self.stride;
            let at = u64::from(part) * u64::from(self.k) + u64::from(column);
            let load = |w: u64| {
                if column < self.k { partial.load_relaxed(at + w) } else { T::ZERO }
            };
            [load(0), if W == 2 { load(1) } else { T::ZERO }]
        })
    }
}
