//! ELLPACK SpMM without padding of R4 4.2 (`parallel_product_ellpack_no_zero_padding`): (row,
//! column) iterations are distributed to threads.

use spm_formats::convert::csr_to_unpadded_ell;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrSource, DenseShape, Scalar, UnpaddedEll};

use super::BoxedPlan;
use super::collapsed::Collapsed;
use super::plan::boxed;
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-rows-unpadded",
    operation: Operation::Spmm,
    backend: Backend::Cpu,
    source: "R4 4.2 (parallel_product_ellpack_no_zero_padding)",
    summary: "ELLPACK, two arrays for each row, (row, column) iterations distributed to threads, X \
              transposed in the run",
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
    let a = csr_to_unpadded_ell(view);
    Ok(boxed(Collapsed::new(INFO.id, a, dense, options)?, dense))
}
