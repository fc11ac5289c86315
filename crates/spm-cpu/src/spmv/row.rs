//! The sparse dot product of a row: the sum of value * x[column], the inner loop of every row-wise
//! kernel.

use std::ops::Range;

use crate::scaled::Update;
use spm_formats::kernel::{ParameterSpec, Value};
use spm_formats::{CsrView, Scalar};

use super::load::{Load, Stored};

/// Independent accumulators of the unrolled loop, enough to hide the latency of an addition (4
/// cycles, at two additions a cycle).
const ACCUMULATORS: usize = 8;

/// Whether a row is summed in several accumulators (R1's `SIMD_ROWS_REDUCTION`).
pub(crate) const SIMD: ParameterSpec = ParameterSpec {
    name: "simd",
    meaning: "sum a row in several independent accumulators instead of in order",
    default: Value::Switch(true),
    studied: &[Value::Switch(false), Value::Switch(true)],
};

/// The sum of `values[i] * x[cols[i]]`: one after the other in storage order, or with `simd` in
/// [`ACCUMULATORS`] interleaved sums.
///
/// # Safety
/// Every element of `cols` is below `x.len()`.
#[inline(always)]
pub(crate) unsafe fn dot<T: Scalar>(cols: &[u32], values: &[T], x: &[T], simd: bool) -> T {
    // SAFETY: the caller's promise.
    unsafe { dot_of(Stored, cols, values, x, simd) }
}

/// [`dot`] with what `load` takes for the values.
///
/// # Safety
/// As [`dot`].
#[inline(always)]
unsafe fn dot_of<A: Copy, T: Scalar>(
    load: impl Load<A, T>,
    cols: &[u32],
    values: &[A],
    x: &[T],
    simd: bool,
) -> T {
    // SAFETY: the caller's promise.
    unsafe {
        if simd { dot_unrolled(load, cols, values, x) } else { dot_in_order(load, cols, values, x) }
    }
}

/// # Safety
/// As [`dot`].
#[inline(always)]
unsafe fn dot_in_order<A: Copy, T: Scalar>(
    load: impl Load<A, T>,
    cols: &[u32],
    values: &[A],
    x: &[T],
) -> T {
    let mut sum = T::ZERO;
    for (&col, &value) in cols.iter().zip(values) {
        // SAFETY: the caller's promise.
        sum += load.load(value) * unsafe { *x.get_unchecked(col as usize) };
    }
    sum
}

/// # Safety
/// As [`dot`].
#[inline(always)]
unsafe fn dot_unrolled<A: Copy, T: Scalar>(
    load: impl Load<A, T>,
    cols: &[u32],
    values: &[A],
    x: &[T],
) -> T {
    let (col_blocks, col_rest) = cols.as_chunks::<ACCUMULATORS>();
    let (value_blocks, value_rest) = values.as_chunks::<ACCUMULATORS>();
    let mut sums = [T::ZERO; ACCUMULATORS];
    for (cols, values) in col_blocks.iter().zip(value_blocks) {
        for lane in 0..ACCUMULATORS {
            // SAFETY: the caller's promise.
            let x = unsafe { *x.get_unchecked(cols[lane] as usize) };
            sums[lane] += load.load(values[lane]) * x;
        }
    }
    for (lane, (&col, &value)) in col_rest.iter().zip(value_rest).enumerate() {
        // SAFETY: the caller's promise.
        sums[lane] += load.load(value) * unsafe { *x.get_unchecked(col as usize) };
    }
    let mut width = ACCUMULATORS;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
    }
    sums[0]
}

/// The sum over `entries` of a CSR matrix.
///
/// # Panics
/// When `x` is shorter than A is wide, or `entries` is outside the matrix.
#[inline(always)]
pub(crate) fn dot_entries<T: Scalar>(
    a: &CsrView<'_, T>,
    entries: Range<usize>,
    x: &[T],
    simd: bool,
) -> T {
    assert!(x.len() >= a.cols());
    let (cols, values) = (&a.col_ind()[entries.clone()], &a.values()[entries]);
    // SAFETY: CsrView promises that every column index is below cols <= x.len().
    unsafe { dot(cols, values, x, simd) }
}

/// The sum of row `row`.
///
/// # Panics
/// When x is shorter than A is wide, or A does not have the row.
pub(crate) fn dot_row<T: Scalar>(a: &CsrView<'_, T>, row: usize, x: &[T]) -> T {
    dot_entries(a, a.row_range(row), x, false)
}

/// y[rows] = alpha (A x)[rows] + beta y[rows]; `y` holds just these rows.
#[inline(always)]
pub(crate) fn multiply_rows<T: Scalar>(
    a: &CsrView<'_, T>,
    rows: Range<usize>,
    scaling: Option<Update<'_, T>>,
    x: &[T],
    y: &mut [T],
    simd: bool,
) {
    multiply_rows_of(Stored, a, rows, scaling, x, y, simd);
}

/// [`multiply_rows`] with what `load` takes for the values.
#[inline(always)]
pub(crate) fn multiply_rows_of<A: Scalar, T: Scalar>(
    load: impl Load<A, T>,
    a: &CsrView<'_, A>,
    rows: Range<usize>,
    scaling: Option<Update<'_, T>>,
    x: &[T],
    y: &mut [T],
    simd: bool,
) {
    match scaling {
        None => each_row(load, a, rows, x, y, simd, |sum, y| *y = sum),
        Some(scaling) => scaled_rows(load, a, rows, scaling, x, y, simd),
    }
}

#[inline(never)]
fn scaled_rows<A: Scalar, T: Scalar>(
    load: impl Load<A, T>,
    a: &CsrView<'_, A>,
    rows: Range<usize>,
    scaling: Update<'_, T>,
    x: &[T],
    y: &mut [T],
    simd: bool,
) {
    each_row(load, a, rows, x, y, simd, |sum, y| scaling.apply(sum, y));
}

/// Calls `store` with the sum of each row and its element of `y`, which holds just these rows.
#[inline(always)]
fn each_row<A: Scalar, T: Scalar>(
    load: impl Load<A, T>,
    a: &CsrView<'_, A>,
    rows: Range<usize>,
    x: &[T],
    y: &mut [T],
    simd: bool,
    store: impl Fn(T, &mut T),
) {
    assert!(x.len() >= a.cols());
    let (cols, values) = (a.col_ind(), a.values());
    let row_ptr = &a.row_ptr()[rows.start..=rows.end];
    for (y, ends) in y.iter_mut().zip(row_ptr.windows(2)) {
        let entries = ends[0] as usize..ends[1] as usize;
        // SAFETY: CsrView promises that the pointers ascend up to the number of entries, and
        // that every column index is below cols <= x.len().
        let sum = unsafe {
            let cols = cols.get_unchecked(entries.clone());
            dot_of(load, cols, values.get_unchecked(entries), x, simd)
        };
        store(sum, y);
    }
}
