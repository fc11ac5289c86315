//! Serial CSR SpMM of R4 1.3: one element of Y after the other.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, Scaling};
use spm_formats::{CsrSource, DenseShape, Scalar};

use super::plan::{Memory, Product, boxed};
use super::{BoxedPlan, serial};
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-serial",
    operation: Operation::Spmm,
    backend: Backend::Cpu,
    source: "R4 1.3",
    summary: "one element of Y after the other on one thread; the baseline of speedups",
    parameters: &[],
};

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    dense: DenseShape,
    _: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(boxed(Serial { a, dense, choice: None }, dense))
}

/// The plan that `auto` returns if no other kernel is faster, without a wrapper around it.
pub(super) fn chosen<'a, T: Scalar>(a: CsrSource<'a, T>, dense: DenseShape) -> BoxedPlan<'a, T> {
    boxed(Serial { a, dense, choice: Some(INFO.id.to_owned()) }, dense)
}

struct Serial<'a, T> {
    a: CsrSource<'a, T>,
    dense: DenseShape,
    /// The label that `auto` reports if it has chosen this plan.
    choice: Option<String>,
}

impl<T: Scalar> Product<T> for Serial<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self) -> Memory {
        Memory::borrowed(&self.a.view(), 0)
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        serial::multiply(&self.a.view(), self.dense, scaling, x, y);
    }

    fn choice(&self) -> Option<String> {
        self.choice.clone()
    }
}
