//! CSR, one element of Y after the other: R4 1.3.

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
    summary: "one element of Y after the other on one thread; what speedups are counted from",
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

/// The plan that `auto` has chosen where nothing is faster: the same, with no other plan around it.
pub(super) fn chosen<'a, T: Scalar>(a: CsrView<'a, T>, dense: DenseShape) -> BoxedPlan<'a, T> {
    boxed(Serial { a, dense, choice: Some(INFO.id.to_owned()) }, dense)
}
