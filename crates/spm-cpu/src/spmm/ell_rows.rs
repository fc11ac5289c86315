//! ELLPACK SpMM of R4 4.2 (`parallel_product_ellpack`): padding is multiplied, and (row, column)
//! iterations are distributed to threads.

use spm_formats::Scalar;
use spm_formats::convert::{EllOptions, csr_to_ell};
use spm_formats::kernel::KernelInfo;

use super::KERNEL;
use super::collapsed::Collapsed;
use super::plan::boxed;
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-rows",
    source: "R4 4.2 (parallel_product_ellpack)",
    summary: "ELLPACK, padding multiplied, (row, column) iterations distributed to threads, X \
              transposed in the run",
    parameters: &[],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, dense, options, .. } = problem;
    let a = csr_to_ell(a.view(), EllOptions::ROW_MAJOR, &options.budget)?;
    Ok(boxed(Collapsed::new(INFO.id, a, dense, options)?, dense))
}
