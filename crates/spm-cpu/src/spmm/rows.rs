//! Row-wise access to a matrix in any format, for the SpMM kernels of the reports.

use spm_formats::{CsrView, DenseShape, Ell, Layout, Scalar, UnpaddedEll};

/// A matrix whose rows can be read as column indices and values.
pub(super) trait RowWise<T>: Send + Sync {
    /// (rows, columns).
    fn shape(&self) -> (usize, usize);

    /// Bytes of all arrays.
    fn bytes(&self) -> u64;

    /// Bytes of the arrays that the plan itself holds.
    fn held_bytes(&self) -> u64 {
        self.bytes()
    }

    /// The column indices and values that a product reads for row `row`, padding included.
    fn elements(&self, row: usize) -> (&[u32], &[T]);

    /// The number of entries of row `row`, which are the first of its stored elements.
    fn entries(&self, row: usize) -> usize;
}

impl<T: Scalar> RowWise<T> for CsrView<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows(), self.cols())
    }

    fn bytes(&self) -> u64 {
        self.memory_bytes()
    }

    fn held_bytes(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn elements(&self, row: usize) -> (&[u32], &[T]) {
        self.row(row)
    }

    fn entries(&self, row: usize) -> usize {
        self.row_range(row).len()
    }
}

/// Row-major ELLPACK; its kernels multiply the padding.
impl<T: Scalar> RowWise<T> for Ell<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows(), self.cols())
    }

    fn bytes(&self) -> u64 {
        self.memory_bytes()
    }

    #[inline(always)]
    fn elements(&self, row: usize) -> (&[u32], &[T]) {
        let start = self.position(row, 0);
        let elements = start..start + self.width();
        (&self.col_ind()[elements.clone()], &self.values()[elements])
    }

    fn entries(&self, row: usize) -> usize {
        self.row_lengths()[row] as usize
    }
}

impl<T: Scalar> RowWise<T> for UnpaddedEll<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows(), self.cols())
    }

    fn bytes(&self) -> u64 {
        self.memory_bytes()
    }

    #[inline(always)]
    fn elements(&self, row: usize) -> (&[u32], &[T]) {
        let row = &self.row_arrays()[row];
        (&row.col_ind, &row.values)
    }

    fn entries(&self, row: usize) -> usize {
        self.row_arrays()[row].values.len()
    }
}

/// Strides of a dense matrix: element (i, j) is at `i * down + j * across`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strides {
    pub(super) down: usize,
    pub(super) across: usize,
}

impl Strides {
    /// The strides of a matrix of `rows` rows with the columns and layout of `dense`.
    pub(super) fn new(rows: usize, dense: DenseShape) -> Self {
        match dense.layout {
            Layout::RowMajor => Self::leading(dense.k, dense.layout),
            Layout::ColumnMajor => Self::leading(rows, dense.layout),
        }
    }

    /// The strides of a matrix with a leading dimension.
    pub(super) fn leading(leading: usize, layout: Layout) -> Self {
        match layout {
            Layout::RowMajor => Self { down: leading, across: 1 },
            Layout::ColumnMajor => Self { down: 1, across: leading },
        }
    }
}

/// y_ic = sum_j a_ij x_jc in storage order.
///
/// Padding contributes 0 x x_jc, which is NaN if x_jc is infinite. A sum that is not finite is
/// computed again without the padding.
#[inline(always)]
pub(super) fn element<T: Scalar>(
    a: &impl RowWise<T>,
    row: usize,
    x: &[T],
    c: usize,
    strides: Strides,
) -> T {
    let (columns, values) = a.elements(row);
    let sum = dot(columns, values, x, c, strides);
    let entries = a.entries(row);
    if sum.is_finite() || entries == columns.len() {
        sum
    } else {
        dot(&columns[..entries], &values[..entries], x, c, strides)
    }
}

#[inline(always)]
fn dot<T: Scalar>(columns: &[u32], values: &[T], x: &[T], c: usize, strides: Strides) -> T {
    let mut sum = T::ZERO;
    for (&col, &value) in columns.iter().zip(values) {
        sum += value * x[col as usize * strides.down + c * strides.across];
    }
    sum
}

/// Rows for each thread as in R4 3.2: rounded down to a multiple of 16, so that two threads rarely
/// write to one cache line, and at least 16.
pub(super) fn static_chunk(rows: usize, threads: usize) -> usize {
    (rows / threads / 16 * 16).max(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_multiples_of_16() {
        let chunk = |rows| static_chunk(rows, 4);
        assert_eq!([0, 63, 64, 127, 128, 1000].map(chunk), [16, 16, 16, 16, 32, 240]);
    }
}
