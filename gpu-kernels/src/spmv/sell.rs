//! SELL-32-sigma, one warp per chunk, one lane per row (own; Kreutzer et al., SIAM J. Sci. Comput.
//! 36(5), 2014).
//!
//! Chunk c holds the chunk columns starts[c] .. starts[c + 1] of 32 stored elements each; lane l is
//! position p = 32 c + l: y[row(p)] = sum over j of values[32 j + l] x[col_ind[32 j + l]]
//!
//! A warp reads whole lines. Four stored elements are loaded before the first is used, and two sums
//! hide the latency of the additions. Row lengths are read for a sum that is not finite only.

use super::compact::chunk_and_lane;
use super::padded::element_sum;
use crate::device::warp::WARP_SIZE;
use crate::device::{DevicePtr, Number, Output};
use crate::kernel::kernel;

/// The sum of position `32 chunk + lane`, which must be below `rows`.
#[inline(always)]
fn position_sum<T: Number>(
    chunk: u32,
    lane: u32,
    chunk_starts: DevicePtr<u32>,
    row_lengths: DevicePtr<u32>,
    (col_ind, values): (DevicePtr<u32>, DevicePtr<T>),
    x: DevicePtr<T>,
) -> T {
    let start = chunk_starts.load(chunk);
    let width = chunk_starts.load(chunk + 1) - start;
    let stride = u64::from(WARP_SIZE);
    let first = u64::from(start) * stride + u64::from(lane);
    let mut element = first;
    let (mut even, mut odd) = (T::ZERO, T::ZERO);
    let mut left = width;
    while left >= 4 {
        let columns = [0, 1, 2, 3].map(|j| col_ind.load(element + j * stride));
        let values = [0, 1, 2, 3].map(|j| values.load(element + j * stride));
        let x = columns.map(|column| x.load(column));
        even = values[0].mul_add(x[0], even);
        odd = values[1].mul_add(x[1], odd);
        even = values[2].mul_add(x[2], even);
        odd = values[3].mul_add(x[3], odd);
        element += 4 * stride;
        left -= 4;
    }
    while left > 0 {
        even = values.load(element).mul_add(x.load(col_ind.load(element)), even);
        element += stride;
        left -= 1;
    }
    let sum = even + odd;
    if sum.is_finite() {
        return sum;
    }
    let length = row_lengths.load(chunk * WARP_SIZE + lane);
    element_sum(col_ind, values, x, first, stride, length)
}

kernel! {
    /// `sell` with sorted rows. Block: a multiple of 32; grid: at least one warp per chunk.
    ///
    /// `chunk_starts` counts chunk columns: the chunk offsets of the format divided by 32.
    pub fn spmv_sell<T: Number>(
        rows: u32,
        chunk_starts: DevicePtr<u32>,
        permutation: DevicePtr<u32>,
        row_lengths: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        let position = chunk * WARP_SIZE + lane;
        if position < rows {
            let elements = (col_ind, values);
            let sum = position_sum(chunk, lane, chunk_starts, row_lengths, elements, x);
            y.store(permutation.load(position), sum);
        }
    }
    as SellSorted
}

kernel! {
    /// `sell` with the rows in their own order (sigma 1): no permutation is read.
    pub fn spmv_sell_unsorted<T: Number>(
        rows: u32,
        chunk_starts: DevicePtr<u32>,
        row_lengths: DevicePtr<u32>,
        col_ind: DevicePtr<u32>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let (chunk, lane) = chunk_and_lane();
        let position = chunk * WARP_SIZE + lane;
        if position < rows {
            let elements = (col_ind, values);
            y.store(position, position_sum(chunk, lane, chunk_starts, row_lengths, elements, x));
        }
    }
    as SellUnsorted
}
