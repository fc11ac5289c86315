//! y_i = sum over the entries of row i of value * x[column]: the inner loop of every CSR kernel.

use std::ops::Range;

use spm_formats::kernel::{ParameterSpec, Value};
use spm_formats::{CsrArrays, Scalar};

/// Independent sums of the unrolled loop: enough to hide the latency of an addition (4 cycles at
/// two a cycle).
const ACCUMULATORS: usize = 8;

/// R1's `SIMD_ROWS_REDUCTION`.
pub(crate) const SIMD: ParameterSpec = ParameterSpec {
    name: "simd",
    meaning: "sum a row in several independent accumulators instead of in order",
    default: Value::Switch(true),
    studied: &[Value::Switch(false), Value::Switch(true)],
};

/// Sums the products of `entries` one after the other, in storage order.
#[inline(always)]
pub(crate) fn dot_in_order<T: Scalar>(a: &CsrArrays<'_, T>, entries: Range<usize>, x: &[T]) -> T {
    debug_assert!(x.len() >= a.cols());
    let mut sum = T::ZERO;
    for (&col, &value) in a.col_indices()[entries.clone()].iter().zip(&a.values()[entries]) {
        // SAFETY: CsrArrays has verified that every column index is below cols <= x.len().
        sum += value * unsafe { *x.get_unchecked(col as usize) };
    }
    sum
}

/// Sums the products of `entries` in [`ACCUMULATORS`] interleaved sums.
#[inline(always)]
pub(crate) fn dot_unrolled<T: Scalar>(a: &CsrArrays<'_, T>, entries: Range<usize>, x: &[T]) -> T {
    debug_assert!(x.len() >= a.cols());
    let (cols, values) = (&a.col_indices()[entries.clone()], &a.values()[entries]);
    let (col_blocks, col_rest) = cols.as_chunks::<ACCUMULATORS>();
    let (value_blocks, value_rest) = values.as_chunks::<ACCUMULATORS>();
    let mut sums = [T::ZERO; ACCUMULATORS];
    for (cols, values) in col_blocks.iter().zip(value_blocks) {
        for lane in 0..ACCUMULATORS {
            // SAFETY: CsrArrays has verified that every column index is below cols <= x.len().
            let x = unsafe { *x.get_unchecked(cols[lane] as usize) };
            sums[lane] += values[lane] * x;
        }
    }
    for (lane, (&col, &value)) in col_rest.iter().zip(value_rest).enumerate() {
        // SAFETY: as above.
        sums[lane] += value * unsafe { *x.get_unchecked(col as usize) };
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

/// y[rows] = (A x)[rows]; `y` holds just these rows.
#[inline(always)]
pub(crate) fn multiply_rows<T: Scalar>(
    a: &CsrArrays<'_, T>,
    rows: Range<usize>,
    x: &[T],
    y: &mut [T],
    simd: bool,
) {
    let dot = if simd { dot_unrolled } else { dot_in_order };
    let pointers = &a.pointers()[rows.start..=rows.end];
    for (y, ends) in y.iter_mut().zip(pointers.windows(2)) {
        *y = dot(a, ends[0] as usize..ends[1] as usize, x);
    }
}
