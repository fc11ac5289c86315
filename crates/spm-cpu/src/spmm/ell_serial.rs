//! Serial ELLPACK SpMM of R4 1.3: padding is multiplied, one element of Y after the other.

use spm_formats::convert::{EllOptions, csr_to_ell};
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrSource, DenseShape, Scalar};

use super::BoxedPlan;
use super::plan::boxed;
use super::serial::Serial;
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-serial",
    operation: Operation::Spmm,
    backend: Backend::Cpu,
    source: "R4 1.3",
    summary: "ELLPACK, padding multiplied, one element of Y after the other on one thread",
    parameters: &[],
};

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    dense: DenseShape,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let a = csr_to_ell(a.view(), EllOptions::ROW_MAJOR, &options.budget)?;
    Ok(boxed(Serial { a, dense }, dense))
}
