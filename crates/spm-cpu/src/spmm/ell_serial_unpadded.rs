//! Serial ELLPACK SpMM without padding of R4 1.3: one element of Y after the other.

use spm_formats::convert::csr_to_unpadded_ell;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrSource, DenseShape, Scalar, UnpaddedEll};

use super::BoxedPlan;
use super::plan::boxed;
use super::serial::Serial;
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-serial-unpadded",
    operation: Operation::Spmm,
    backend: Backend::Cpu,
    source: "R4 1.3",
    summary: "ELLPACK, two arrays for each row, one element of Y after the other on one thread",
    parameters: &[],
};

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    dense: DenseShape,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let view = a.view();
    let bytes = UnpaddedEll::<T>::bytes_of(view.rows(), view.nnz());
    options.budget.check_bytes(INFO.id, bytes.into())?;
    Ok(boxed(Serial { a: csr_to_unpadded_ell(view), dense }, dense))
}
