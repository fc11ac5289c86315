//! CSR SpMV with a sub-warp per row: 1 to 32 lanes, a power of two near the mean row length (own;
//! after "CSR-vector" of Bell and Garland, SC'09, and its sub-warp variants).
//!
//! Lane l of w sums the entries l, l + w, ... of its row; the w sums are folded in registers.

use super::entries::{Entries, Equal, Stored};
use crate::collective::warp_sum;
use crate::device::warp::FULL_MASK;
use crate::device::{DevicePtr, DevicePtrMut, Number, Output, Sums, thread};
use crate::kernel::kernel;

#[inline(always)]
fn product<T: Number>(
    rows: u32,
    lanes: u32,
    row_ptr: DevicePtr<u32>,
    entries: impl Entries<T>,
    x: DevicePtr<T>,
    y: impl Sums<T>,
) {
    let thread = thread::index_1d();
    let row = thread >> lanes.trailing_zeros();
    let lane = thread & (lanes - 1);
    let (mut sum, mut addend) = (T::ZERO, T::ZERO);
    if row < rows {
        if lane == 0 {
            addend = y.addend(row);
        }
        let (start, end) = (row_ptr.load(row), row_ptr.load(row + 1));
        sum = strided_sum(entries, x, start + lane, end, lanes);
    }
    // Outside of the branch: a warp may hold the last row and lanes beyond it.
    let sum = warp_sum(FULL_MASK, sum, lanes);
    if row < rows && lane == 0 {
        y.store_with(row, sum, addend);
    }
}

/// The sum of the products of entries `first`, `first + stride`, ... below `end`; four of them are
/// loaded before the first is used. `stride` is at most 1024.
#[inline(always)]
pub(crate) fn strided_sum<T: Number>(
    entries: impl Entries<T>,
    x: DevicePtr<T>,
    first: u32,
    end: u32,
    stride: u32,
) -> T {
    let (mut even, mut odd) = (T::ZERO, T::ZERO);
    let mut k = first;
    while k < end {
        let left = end - k;
        // Beyond the end the last entry is loaded again, and left out: no branch between loads.
        let entries = [0, 1, 2, 3].map(|j| entries.entry(k + (j * stride).min(left - 1)));
        let x = entries.map(|(_, column)| x.load(column));
        even = entries[0].0.mul_add(x[0], even);
        if stride < left {
            odd = entries[1].0.mul_add(x[1], odd);
        }
        if 2 * stride < left {
            even = entries[2].0.mul_add(x[2], even);
        }
        if 3 * stride < left {
            odd = entries[3].0.mul_add(x[3], odd);
        }
        if left <= 4 * stride {
            break;
        }
        k += 4 * stride;
    }
    even + odd
}

kernel! {
    /// `csr-subwarp-per-row`: `lanes` (a power of two up to 32) per row. Block: a multiple of 32;
    /// grid: at least rows x lanes threads, one-dimensional, less than 2^32.
    pub fn spmv_csr_subwarp_per_row<T: Number>(
        rows: u32,
        lanes: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: DevicePtrMut<T>,
    ) {
        product(rows, lanes, row_ptr, Stored { col_ind, values }, x, y);
    }
    as CsrSubwarpPerRow
}

kernel! {
    /// [`CsrSubwarpPerRow`] with alpha and beta.
    pub fn spmv_csr_subwarp_per_row_scaled<T: Number>(
        rows: u32,
        lanes: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        product(rows, lanes, row_ptr, Stored { col_ind, values }, x, y);
    }
    as CsrSubwarpPerRowScaled
}

kernel! {
    /// [`CsrSubwarpPerRow`] of a matrix whose entries all have the value `value`.
    pub fn spmv_csr_subwarp_per_row_equal<T: Real>(
        rows: u32,
        lanes: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        value: T,
        x: DevicePtr<T>,
        y: DevicePtrMut<T>,
    ) {
        product(rows, lanes, row_ptr, Equal { col_ind, value }, x, y);
    }
    as CsrSubwarpPerRowEqual
}

kernel! {
    /// [`CsrSubwarpPerRowEqual`] with alpha and beta.
    pub fn spmv_csr_subwarp_per_row_equal_scaled<T: Real>(
        rows: u32,
        lanes: u32,
        row_ptr: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        value: T,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        product(rows, lanes, row_ptr, Equal { col_ind, value }, x, y);
    }
    as CsrSubwarpPerRowEqualScaled
}
