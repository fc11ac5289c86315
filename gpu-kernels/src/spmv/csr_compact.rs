//! CSR SpMV with 16-bit column offsets, a sub-warp per row (own).
//!
//! Column of entry k of row i = bases[i] + col_offsets[k], where the base is the smallest column of
//! the row: 2 bytes per entry instead of 4, for 4 bytes per row. Fits where no row spans 2^16
//! columns; [`compact_columns`] makes the two arrays.

use super::csr_subwarp_per_row::strided_sum;
use super::entries::{Entries, Short, ShortEqual};
use crate::collective::warp_sum;
use crate::device::warp::FULL_MASK;
use crate::device::{DevicePtr, Output, Real, thread};
use crate::kernel::kernel;

/// Bases (one per row, 0 for a row without entries) and offsets (one per entry) of the columns, or
/// none when a row spans more than 2^16 columns. The columns may be in any order.
#[cfg(not(target_arch = "nvptx64"))]
pub fn compact_columns(row_ptr: &[u32], col_ind: &[u32]) -> Option<(Vec<u32>, Vec<u16>)> {
    let mut bases = Vec::with_capacity(row_ptr.len().saturating_sub(1));
    let mut offsets = Vec::with_capacity(col_ind.len());
    for bounds in row_ptr.windows(2) {
        let row = &col_ind[bounds[0] as usize..bounds[1] as usize];
        let base = row.iter().copied().min().unwrap_or(0);
        for &column in row {
            offsets.push(u16::try_from(column - base).ok()?);
        }
        bases.push(base);
    }
    Some((bases, offsets))
}

#[inline(always)]
fn product<T: Real, E: Entries<T>>(
    rows: u32,
    lanes: u32,
    row_ptr: DevicePtr<u32>,
    bases: DevicePtr<u32>,
    entries: impl FnOnce(u32) -> E,
    x: DevicePtr<T>,
    y: Output<T>,
) {
    let thread = thread::index_1d();
    let row = thread >> lanes.trailing_zeros();
    let lane = thread & (lanes - 1);
    let mut sum = T::ZERO;
    if row < rows {
        let (start, end) = (row_ptr.load(row), row_ptr.load(row + 1));
        sum = strided_sum(entries(bases.load(row)), x, start + lane, end, lanes);
    }
    let sum = warp_sum(FULL_MASK, sum, lanes);
    if row < rows && lane == 0 {
        y.store(row, sum);
    }
}

kernel! {
    /// `csr-compact`: `lanes` (a power of two up to 32) per row. Block: a multiple of 32; grid: at
    /// least rows x lanes threads, one-dimensional, less than 2^32.
    pub fn spmv_csr_compact<T: Real>(
        rows: u32,
        lanes: u32,
        row_ptr: DevicePtr<u32>,
        bases: DevicePtr<u32>,
        col_offsets: DevicePtr<u16>,
        values: DevicePtr<T>,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let entries = |base| Short { base, col_offsets, values };
        product(rows, lanes, row_ptr, bases, entries, x, y);
    }
    as CsrCompact
}

kernel! {
    /// [`CsrCompact`] of a matrix whose entries all have the value `value`.
    pub fn spmv_csr_compact_equal<T: Real>(
        rows: u32,
        lanes: u32,
        row_ptr: DevicePtr<u32>,
        bases: DevicePtr<u32>,
        col_offsets: DevicePtr<u16>,
        value: T,
        x: DevicePtr<T>,
        y: Output<T>,
    ) {
        let entries = |base| ShortEqual { base, col_offsets, value };
        product(rows, lanes, row_ptr, bases, entries, x, y);
    }
    as CsrCompactEqual
}
