//! Serial CSR SpMV (R0 3.1, R2 algorithm 1): y_i = sum_j a_ij x_j, one row after the other.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, Scaling};
use spm_formats::{CsrSource, Scalar};

use super::plan::{Memory, Product, boxed};
use super::{BoxedPlan, row};
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-serial",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R0 3.1; R2 algorithm 1",
    summary: "one row after the other on one thread; the baseline of speedups",
    parameters: &[],
};

struct Serial<'a, T> {
    a: CsrSource<'a, T>,
    choice: Option<String>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    _: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(boxed(Serial { a, choice: None }))
}

/// The plan that `auto` returns for a tiny matrix, without a wrapper around it; a wrapper would
/// cost a tenth of the product.
pub(super) fn chosen<'a, T: Scalar>(a: CsrSource<'a, T>) -> BoxedPlan<'a, T> {
    boxed(Serial { a, choice: Some(INFO.id.to_owned()) })
}

impl<T: Scalar> Product<T> for Serial<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self) -> Memory {
        Memory::borrowed(&self.a.view(), 0)
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        let a = self.a.view();
        row::multiply_rows(&a, 0..a.rows(), scaling, x, y, false);
    }

    fn choice(&self) -> Option<String> {
        self.choice.clone()
    }
}
