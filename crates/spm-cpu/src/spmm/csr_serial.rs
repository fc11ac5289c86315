//! Serial CSR SpMM of R4 1.3: one element of Y after the other.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrView, DenseShape, Scalar};

use super::BoxedPlan;
use super::plan::boxed;
use super::serial::Serial;
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
    a: CsrView<'a, T>,
    dense: DenseShape,
    _: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(boxed(Serial { a, dense, choice: None }, dense))
}

/// The plan that `auto` returns if no other kernel is faster, without a wrapper around it.
pub(super) fn chosen<'a, T: Scalar>(a: CsrView<'a, T>, dense: DenseShape) -> BoxedPlan<'a, T> {
    boxed(Serial { a, dense, choice: Some(INFO.id.to_owned()) }, dense)
}
