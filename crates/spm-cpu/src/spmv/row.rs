//! The sparse dot product of a row: the sum of value * x[column], the inner loop of every row-wise
//! kernel.

use std::ops::Range;

use spm_formats::kernel::{ParameterSpec, Parameters, Value};
use spm_formats::{CsrView, Scalar, partition};

use super::load::{Load, Stored};
use crate::scaled::Update;
use crate::simd::{self, AHEAD, PREFETCH};

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

/// How the entries of a row are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summing {
    /// See [`SIMD`]; without it one after the other in storage order.
    simd: bool,
    /// Whether values and columns are prefetched, [`AHEAD`] entries before their use.
    ahead: bool,
}

impl Summing {
    pub(crate) const IN_ORDER: Self = Self { simd: false, ahead: false };
    pub(crate) const INTERLEAVED: Self = Self { simd: true, ahead: false };

    /// Interleaved, and prefetched or not.
    pub(crate) fn interleaved(ahead: bool) -> Self {
        Self { ahead, ..Self::INTERLEAVED }
    }

    /// What the parameters of a kernel say, where it has them.
    pub(crate) fn by(parameters: &Parameters) -> Self {
        let is_on = |of: &ParameterSpec| parameters.get(of.name) == Some(Value::Switch(true));
        Self { simd: is_on(&SIMD), ahead: is_on(&PREFETCH) }
    }

    /// Whether values and columns are prefetched.
    pub(crate) fn ahead(self) -> bool {
        self.ahead
    }

    /// How the rows of a matrix are gone through.
    pub(crate) fn walk(self, row_ptr: &[u32]) -> Walk {
        if self.simd { Walk::fitting(row_ptr) } else { Walk::Loops }
    }
}

/// The sum of `values[i] * x[cols[i]]`.
///
/// # Safety
/// Every element of `cols` is below `x.len()`.
#[inline(always)]
pub(crate) unsafe fn dot<T: Scalar>(cols: &[u32], values: &[T], x: &[T], summing: Summing) -> T {
    // SAFETY: the caller's promise.
    unsafe { dot_of(Stored, cols, values, x, summing) }
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
    summing: Summing,
) -> T {
    // SAFETY: the caller's promise.
    unsafe {
        match (summing.simd, cols.len()) {
            (false, _) if summing.ahead => dot_in_order::<true, _, _>(load, cols, values, x),
            (false, _) => dot_in_order::<false, _, _>(load, cols, values, x),
            // Short rows have the same bits in both: in order, with one branch in place of one for each entry.
            (_, 0) => T::ZERO,
            (_, 1) => dot_short::<1, _, _>(load, cols, values, x),
            (_, 2) => dot_short::<2, _, _>(load, cols, values, x),
            (_, 3) => dot_short::<3, _, _>(load, cols, values, x),
            (_, 4) => dot_short::<4, _, _>(load, cols, values, x),
            (_, 5) => dot_short::<5, _, _>(load, cols, values, x),
            (_, 6) => dot_short::<6, _, _>(load, cols, values, x),
            (_, 7) => dot_short::<7, _, _>(load, cols, values, x),
            _ if summing.ahead => dot_unrolled::<true, _, _>(load, cols, values, x),
            _ => dot_unrolled::<false, _, _>(load, cols, values, x),
        }
    }
}

/// # Safety
/// As [`dot`].
#[inline(always)]
unsafe fn dot_in_order<const PREFETCHED: bool, A: Copy, T: Scalar>(
    load: impl Load<A, T>,
    cols: &[u32],
    values: &[A],
    x: &[T],
) -> T {
    let mut sum = T::ZERO;
    for (entry, (col, &value)) in cols.iter().zip(values).enumerate() {
        if PREFETCHED && entry.is_multiple_of(ACCUMULATORS) {
            prefetch(col, &values[entry]);
        }
        // SAFETY: the caller's promise.
        sum += load.load(value) * unsafe { *x.get_unchecked(*col as usize) };
    }
    sum
}

/// Prefetches the column and the value [`AHEAD`] entries behind these, wherever that is.
#[inline(always)]
fn prefetch<A>(col: &u32, value: &A) {
    simd::prefetch(std::ptr::from_ref(value).wrapping_add(AHEAD));
    simd::prefetch(std::ptr::from_ref(col).wrapping_add(AHEAD));
}

/// The first `N` of both, in order.
///
/// # Safety
/// As [`dot`], and there are as many.
#[inline(always)]
unsafe fn dot_short<const N: usize, A: Copy, T: Scalar>(
    load: impl Load<A, T>,
    cols: &[u32],
    values: &[A],
    x: &[T],
) -> T {
    // SAFETY: the caller's promise.
    unsafe {
        dot_in_order::<false, _, _>(load, cols.get_unchecked(..N), values.get_unchecked(..N), x)
    }
}

/// [`ACCUMULATORS`] interleaved sums of whole blocks, then what is left in order: a row of fewer entries
/// is summed in order.
///
/// # Safety
/// As [`dot`].
#[inline(always)]
unsafe fn dot_unrolled<const PREFETCHED: bool, A: Copy, T: Scalar>(
    load: impl Load<A, T>,
    cols: &[u32],
    values: &[A],
    x: &[T],
) -> T {
    let (col_blocks, col_rest) = cols.as_chunks::<ACCUMULATORS>();
    let (value_blocks, value_rest) = values.as_chunks::<ACCUMULATORS>();
    let mut sum = T::ZERO;
    if !col_blocks.is_empty() {
        let mut sums = [T::ZERO; ACCUMULATORS];
        for (cols, values) in col_blocks.iter().zip(value_blocks) {
            if PREFETCHED {
                prefetch(&cols[0], &values[0]);
            }
            for lane in 0..ACCUMULATORS {
                // SAFETY: the caller's promise.
                let x = unsafe { *x.get_unchecked(cols[lane] as usize) };
                sums[lane] += load.load(values[lane]) * x;
            }
        }
        let mut width = ACCUMULATORS;
        while width > 1 {
            width /= 2;
            for lane in 0..width {
                sums[lane] += sums[lane + width];
            }
        }
        sum = sums[0];
    }
    for (&col, &value) in col_rest.iter().zip(value_rest) {
        // SAFETY: the caller's promise.
        sum += load.load(value) * unsafe { *x.get_unchecked(col as usize) };
    }
    sum
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
    summing: Summing,
) -> T {
    assert!(x.len() >= a.cols());
    let (cols, values) = (&a.col_ind()[entries.clone()], &a.values()[entries]);
    // SAFETY: CsrView promises that every column index is below cols <= x.len().
    unsafe { dot(cols, values, x, summing) }
}

/// The sum of row `row`.
///
/// # Panics
/// When x is shorter than A is wide, or A does not have the row.
pub(crate) fn dot_row<T: Scalar>(a: &CsrView<'_, T>, row: usize, x: &[T]) -> T {
    dot_entries(a, a.row_range(row), x, Summing::IN_ORDER)
}

/// Branches of [`dot`] that a processor gets wrong: those that go another way for a row of `length` entries than for the row
/// before. They depend on the length of a short row, on the blocks of a long one and on the entries behind them.
pub(crate) fn mispredictions(before: usize, length: usize) -> usize {
    let differ = |of: fn(usize) -> usize| usize::from(of(before) != of(length));
    let of_long = || differ(|of| of / ACCUMULATORS) + differ(|of| of % ACCUMULATORS);
    differ(|of| of.min(ACCUMULATORS)) + if length < ACCUMULATORS { 0 } else { of_long() }
}

/// How the rows of a product are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Row after row, each with a loop over its entries.
    Loops,
    /// For short rows whose lengths a processor cannot predict: products first, then sums without a branch
    /// for rows of up to 4 entries.
    UpTo4,
    /// The same for up to 7 entries.
    UpTo7,
}

impl Walk {
    /// What suits a matrix, of which some rows are read. All give the same bits.
    pub(crate) fn fitting(row_ptr: &[u32]) -> Self {
        let rows = SampledRows::of(row_ptr);
        match rows.end_unpredictably() {
            true if 10 * rows.up_to_4 >= 9 * rows.seen => Self::UpTo4,
            true if 10 * rows.up_to_7 >= 9 * rows.seen => Self::UpTo7,
            _ => Self::Loops,
        }
    }

    /// y[rows] = alpha (A x)[rows] + beta y[rows] with what `load` takes for the values; `y` holds just these
    /// rows.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "a product and how it is computed")]
    pub(crate) fn multiply<A: Scalar, T: Scalar>(
        self,
        load: impl Load<A, T>,
        a: &CsrView<'_, A>,
        rows: Range<usize>,
        scaling: Option<Update<'_, T>>,
        x: &[T],
        y: &mut [T],
        summing: Summing,
    ) {
        match self {
            Self::Loops => multiply_rows_of(load, a, rows, scaling, x, y, summing),
            Self::UpTo4 => multiply_short_rows_of::<4, _, _>(load, a, rows, scaling, x, y),
            Self::UpTo7 => multiply_short_rows_of::<7, _, _>(load, a, rows, scaling, x, y),
        }
    }
}

/// What some rows of a matrix say of all.
#[derive(Debug, Default)]
pub(crate) struct SampledRows {
    seen: usize,
    empty: usize,
    /// Rows of another length than the row before.
    of_other_length: usize,
    up_to_4: usize,
    up_to_7: usize,
}

impl SampledRows {
    pub(crate) fn of(row_ptr: &[u32]) -> Self {
        let triples = row_ptr.len().saturating_sub(2);
        let mut rows = Self::default();
        let sample = (row_ptr.len() / ROWS_A_SAMPLE).clamp(LEAST_SAMPLE, MOST_SAMPLE);
        for first in partition::sampled(triples, (row_ptr.len() / sample).max(1)) {
            let ends = &row_ptr[first..first + 3];
            let (before, length) = (ends[1] - ends[0], ends[2] - ends[1]);
            rows.seen += 1;
            rows.empty += usize::from(length == 0);
            rows.of_other_length += usize::from(length != before);
            rows.up_to_4 += usize::from(length <= 4);
            rows.up_to_7 += usize::from(length <= 7);
        }
        rows
    }

    /// The share of rows that have no entries.
    pub(crate) fn empty(&self) -> f64 {
        self.empty as f64 / self.seen.max(1) as f64
    }

    /// Whether the branch at the end of a row goes wrong once in four rows or more.
    pub(crate) fn end_unpredictably(&self) -> bool {
        4 * self.of_other_length > self.seen
    }
}

/// Rows that are read to see how regular their lengths are: one of [`ROWS_A_SAMPLE`], so that reading them takes
/// little beside one product, but at least and at most so many.
const LEAST_SAMPLE: usize = 64;
const MOST_SAMPLE: usize = 256;
const ROWS_A_SAMPLE: usize = 32;
/// Entries whose products are computed before they are summed: they stay in the first-level cache.
pub(crate) const PRODUCTS: usize = 512;

/// y[rows] = alpha (A x)[rows] + beta y[rows]; `y` holds just these rows.
#[inline(always)]
pub(crate) fn multiply_rows<T: Scalar>(
    a: &CsrView<'_, T>,
    rows: Range<usize>,
    scaling: Option<Update<'_, T>>,
    x: &[T],
    y: &mut [T],
    summing: Summing,
) {
    multiply_rows_of(Stored, a, rows, scaling, x, y, summing);
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
    summing: Summing,
) {
    match scaling {
        None => each_row(load, a, rows, x, y, summing, |sum, y| *y = sum),
        Some(scaling) => scaled_rows(load, a, rows, scaling, x, y, summing),
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
    summing: Summing,
) {
    each_row(load, a, rows, x, y, summing, |sum, y| scaling.apply(sum, y));
}

/// [`multiply_rows_of`] interleaved, for rows of up to `MOST` entries most of which have fewer than
/// [`ACCUMULATORS`]: no branch depends on the length of these.
pub(crate) fn multiply_short_rows_of<const MOST: usize, A: Scalar, T: Scalar>(
    load: impl Load<A, T>,
    a: &CsrView<'_, A>,
    rows: Range<usize>,
    scaling: Option<Update<'_, T>>,
    x: &[T],
    y: &mut [T],
) {
    match scaling {
        None => each_short_row::<MOST, A, T>(load, a, rows, x, y, |sum, y| *y = sum),
        Some(scaling) => {
            let store = |sum, y: &mut T| scaling.apply(sum, y);
            each_short_row::<MOST, A, T>(load, a, rows, x, y, store);
        }
    }
}

/// As [`each_row`], with the same bits.
#[inline(always)]
fn each_short_row<const MOST: usize, A: Scalar, T: Scalar>(
    load: impl Load<A, T>,
    a: &CsrView<'_, A>,
    rows: Range<usize>,
    x: &[T],
    y: &mut [T],
    store: impl Fn(T, &mut T),
) {
    const { assert!(MOST < ACCUMULATORS, "longer rows are not summed in order") };
    assert!(x.len() >= a.cols());
    let (cols, values) = (a.col_ind(), a.values());
    let row_ptr = &a.row_ptr()[rows.start..=rows.end];
    // Behind them a zero, which is added for entries that a row does not have.
    let mut products = [T::ZERO; PRODUCTS + 1];
    let (mut row, rows) = (0, y.len());
    while row < rows {
        let begin = row_ptr[row] as usize;
        let ends = &row_ptr[row + 1..rows.min(row + PRODUCTS) + 1];
        let count = ends.partition_point(|&end| end as usize - begin <= PRODUCTS);
        // A row of more entries than there is room for is summed alone.
        let last = row + count.max(1);
        let entries = if count > 0 { begin..row_ptr[last] as usize } else { begin..begin };
        let of_entries = values[entries.clone()].iter().zip(&cols[entries]);
        for (product, (&value, &col)) in products.iter_mut().zip(of_entries) {
            // SAFETY: CsrView promises that every column index is below cols <= x.len().
            *product = load.load(value) * unsafe { *x.get_unchecked(col as usize) };
        }
        for (y, ends) in y[row..last].iter_mut().zip(row_ptr[row..=last].windows(2)) {
            let (from, length) = (ends[0] as usize - begin, (ends[1] - ends[0]) as usize);
            let sum = if length <= MOST {
                let mut sum = T::ZERO;
                for entry in 0..MOST {
                    let at = if entry < length { from + entry } else { PRODUCTS };
                    sum += products[at.min(PRODUCTS)];
                }
                sum
            } else {
                let entries = ends[0] as usize..ends[1] as usize;
                let (cols, values) = (&cols[entries.clone()], &values[entries]);
                // SAFETY: as above.
                unsafe { dot_unrolled::<false, _, _>(load, cols, values, x) }
            };
            store(sum, y);
        }
        row = last;
    }
}

/// Calls `store` with the sum of each row and its element of `y`, which holds just these rows.
#[inline(always)]
fn each_row<A: Scalar, T: Scalar>(
    load: impl Load<A, T>,
    a: &CsrView<'_, A>,
    rows: Range<usize>,
    x: &[T],
    y: &mut [T],
    summing: Summing,
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
            dot_of(load, cols, values.get_unchecked(entries), x, summing)
        };
        store(sum, y);
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::Csr;
    use spm_formats::kernel::Scaling;
    use spm_testing::generate;

    use super::*;

    fn matrix(name: &str) -> Csr<f64> {
        generate::named(name).unwrap().generate().unwrap()
    }

    #[test]
    fn short_rows_of_unpredictable_lengths_are_summed_without_branches() {
        for (name, expected) in [
            ("road[n=4000,edges=5650]", Walk::UpTo4),
            ("uniform[rows=5000,cols=500,entries=4000]", Walk::UpTo4),
            ("uniform[rows=5000,cols=5000,entries=16000]", Walk::UpTo7),
            // Too many longer rows, and rows of nearly one length.
            ("uniform[rows=5000,cols=5000,entries=40000]", Walk::Loops),
            ("stencil5[n=70]", Walk::Loops),
            // A line has as many rows as the mean distance of two that are read.
            ("stencil7[n=64]", Walk::Loops),
            ("banded[n=4000,lower=1,upper=1]", Walk::Loops),
        ] {
            assert_eq!(Walk::fitting(matrix(name).row_ptr()), expected, "{name}");
        }
        for row_ptr in [&[0][..], &[0, 3]] {
            assert_eq!(Walk::fitting(row_ptr), Walk::Loops);
        }
    }

    /// Rows of 0 to more than [`PRODUCTS`] entries; and parts of the rows.
    #[test]
    fn all_walks_give_the_same_bits() {
        for name in [
            "uniform[rows=1500,cols=300,entries=900]",
            "uniform[rows=900,cols=3000,entries=3000]",
            "powerlaw[rows=3000,cols=3000,entries=9000,longest=1400]",
            "uniform[rows=40,cols=2000,entries=22000]",
        ] {
            let a = matrix(name);
            let (a, x) =
                (a.view(), (0..a.cols()).map(|j| 1.0 / (j + 3) as f64).collect::<Vec<_>>());
            for rows in [0..a.rows(), 7..a.rows() - 3, 5..6, 9..9] {
                for scaling in [None, Some(Update::in_place(Scaling::new(2.0, -3.0)))] {
                    let filled = vec![0.7; rows.len()];
                    let (mut y, mut prefetched) = (filled.clone(), filled.clone());
                    let (mut up_to_4, mut up_to_7) = (filled.clone(), filled);
                    let range = || rows.clone();
                    let interleaved = Summing::INTERLEAVED;
                    multiply_rows_of(Stored, &a, range(), scaling, &x, &mut y, interleaved);
                    let ahead = Summing::interleaved(true);
                    multiply_rows_of(Stored, &a, range(), scaling, &x, &mut prefetched, ahead);
                    multiply_short_rows_of::<4, _, _>(
                        Stored,
                        &a,
                        range(),
                        scaling,
                        &x,
                        &mut up_to_4,
                    );
                    multiply_short_rows_of::<7, _, _>(
                        Stored,
                        &a,
                        range(),
                        scaling,
                        &x,
                        &mut up_to_7,
                    );
                    let bits = |y: &[f64]| y.iter().map(|y| y.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&y), bits(&prefetched), "{name}, {rows:?}");
                    assert_eq!(bits(&y), bits(&up_to_4), "{name}, {rows:?}");
                    assert_eq!(bits(&y), bits(&up_to_7), "{name}, {rows:?}");
                }
            }
        }
    }
}
