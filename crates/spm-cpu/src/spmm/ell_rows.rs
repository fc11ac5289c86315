//! ELLPACK SpMM of R4 4.2 (`parallel_product_ellpack`): padding is multiplied, and (row, column)
//! iterations are distributed to threads.

use spm_formats::convert::{EllOptions, csr_to_ell};
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrSource, DenseShape, Scalar};

use super::BoxedPlan;
use super::collapsed::Collapsed;
use super::plan::boxed;
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-rows",
    operation: Operation::Spmm,
    backend: Backend::Cpu,
    source: "R4 4.2 (parallel_product_ellpack)",
    summary: "ELLPACK, padding multiplied, (row, column) iterations distributed to threads, X \
              transposed in the run",
    parameters: &[],
};

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    dense: DenseShape,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let a = csr_to_ell(a.view(), EllOptions::ROW_MAJOR, &options.budget)?;
    Ok(boxed(Collapsed::new(INFO.id, a, dense, options)?, dense))
}
