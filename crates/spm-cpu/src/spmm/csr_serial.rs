//! y_ic = sum_j a_ij x_jc, one row and one column after the other: R4 1.3.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrArrays, CsrView, DenseShape, Layout, Scalar};

use super::BoxedPlan;
use super::plan::{Memory, Product, boxed};
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-serial",
    operation: Operation::Spmm,
    backend: Backend::Cpu,
    source: "R4 1.3",
    summary: "one element of Y after the other on one thread; what speedups are counted from",
    parameters: &[],
};

struct Serial<'a, T> {
    a: CsrArrays<'a, T>,
    dense: DenseShape,
}

pub(super) fn plan<'a, T: Scalar>(
    a: &CsrView<'a, T>,
    dense: DenseShape,
    _: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(boxed(Serial { a: CsrArrays::new(a)?, dense }, dense))
}

impl<T: Scalar> Product<T> for Serial<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.a.rows(), self.a.cols())
    }

    fn memory(&self) -> Memory {
        Memory { matrix: self.a.bytes(), plan: 0 }
    }

    fn multiply(&mut self, x: &[T], y: &mut [T]) {
        let (rows, cols, k) = (self.a.rows(), self.a.cols(), self.dense.k);
        // Distance between neighbours in a row of X or Y, and in a column.
        let (next_x, below_x, next_y, below_y) = match self.dense.layout {
            Layout::RowMajor => (1, k, 1, k),
            Layout::ColumnMajor => (cols, 1, rows, 1),
        };
        for (row, ends) in self.a.pointers().windows(2).enumerate() {
            let entries = ends[0] as usize..ends[1] as usize;
            let (columns, values) =
                (&self.a.col_indices()[entries.clone()], &self.a.values()[entries]);
            for c in 0..k {
                let mut sum = T::ZERO;
                for (&col, &value) in columns.iter().zip(values) {
                    sum += value * x[col as usize * below_x + c * next_x];
                }
                y[row * below_y + c * next_y] = sum;
            }
        }
    }
}
