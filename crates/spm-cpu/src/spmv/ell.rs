//! The common part of the ELLPACK SpMV kernels: sums of rows of a row-major ELLPACK matrix, with or
//! without the array of row lengths (R1's `ROWLENS`).

use std::ops::Range;

use spm_formats::convert::{EllOptions, csr_to_ell};
use spm_formats::kernel::{ParameterSpec, Parameters, PlanError, Value};
use spm_formats::{CsrView, Ell, Scalar};

use super::plan::Memory;
use super::row::{self, Summing};
use super::rows::RowSums;
use crate::scaled::Update;
use crate::{PlanOptions, scaled};

/// Whether row lengths are used (R1's `ROWLENS`).
pub(super) const ROW_LENGTHS: ParameterSpec = ParameterSpec {
    name: "row-lengths",
    meaning: "stop at the end of each row instead of multiplying the padding",
    default: Value::Switch(true),
    studied: &[Value::Switch(false), Value::Switch(true)],
};

/// A row-major ELLPACK matrix, and how its rows are summed.
pub(super) struct EllRows<T> {
    ell: Ell<T>,
    row_lengths: bool,
    summing: Summing,
}

impl<T: Scalar> EllRows<T> {
    pub(super) fn new(
        a: CsrView<'_, T>,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<Self, PlanError> {
        let ell = csr_to_ell(a, EllOptions::ROW_MAJOR, &options.budget)?;
        // `ell-serial` has no such parameter: it sums in order.
        let summing = Summing::by(parameters);
        Ok(Self { ell, row_lengths: parameters.switch(ROW_LENGTHS.name), summing })
    }

    pub(super) fn entries(&self) -> usize {
        self.ell.entries()
    }

    /// Stored elements of each row.
    pub(super) fn width(&self) -> usize {
        self.ell.width()
    }

    /// The sum over some stored elements of a row, padding included unless the row lengths are
    /// used.
    #[inline(always)]
    pub(super) fn sum(&self, row: usize, elements: Range<usize>, x: &[T]) -> T {
        let end = if self.row_lengths { self.length(row).min(elements.end) } else { elements.end };
        self.dot(row, elements.start.min(end)..end, x)
    }

    /// The sum of a row, computed again without padding if it is not finite, because 0 x inf is
    /// NaN.
    #[inline(always)]
    pub(super) fn without_padding(&self, row: usize, sum: T, x: &[T]) -> T {
        if self.row_lengths || sum.is_finite() {
            sum
        } else {
            self.dot(row, 0..self.length(row), x)
        }
    }

    fn length(&self, row: usize) -> usize {
        self.ell.row_lengths()[row] as usize
    }

    #[inline(always)]
    fn dot(&self, row: usize, elements: Range<usize>, x: &[T]) -> T {
        assert!(x.len() >= self.ell.cols());
        let start = self.ell.position(row, 0);
        let elements = start + elements.start..start + elements.end;
        let cols = &self.ell.col_ind()[elements.clone()];
        // SAFETY: every column index of an Ell, padding included, is below cols <= x.len().
        unsafe { row::dot(cols, &self.ell.values()[elements], x, self.summing) }
    }
}

impl<T: Scalar> RowSums<T> for EllRows<T> {
    fn shape(&self) -> (usize, usize) {
        (self.ell.rows(), self.ell.cols())
    }

    fn memory(&self, rest: usize) -> Memory {
        let lengths = size_of_val(self.ell.row_lengths()) as u64;
        let all = self.ell.memory_bytes();
        let read = if self.row_lengths { all } else { all - lengths };
        Memory { matrix: read, plan: all + rest as u64 }
    }

    fn multiply(&self, rows: Range<usize>, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        for (y, row) in y.iter_mut().zip(rows) {
            let sum = self.sum(row, 0..self.width(), x);
            scaled::store(scaling, self.without_padding(row, sum, x), y);
        }
    }
}
