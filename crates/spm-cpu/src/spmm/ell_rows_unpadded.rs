//! ELLPACK SpMM without padding of R4 4.2 (`parallel_product_ellpack_no_zero_padding`): (row,
//! column) iterations are distributed to threads.

use spm_formats::convert::csr_to_unpadded_ell;
use spm_formats::kernel::KernelInfo;
use spm_formats::{Scalar, UnpaddedEll};

use super::KERNEL;
use super::collapsed::Collapsed;
use super::plan::boxed;
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-rows-unpadded",
    source: "R4 4.2 (parallel_product_ellpack_no_zero_padding)",
    summary: "ELLPACK, two arrays for each row, (row, column) iterations distributed to threads, X \
              transposed in the run",
    parameters: &[],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, dense, options, .. } = problem;
    let view = a.view();
    let bytes = UnpaddedEll::<T>::bytes_of(view.rows(), view.nnz());
    options.budget.check_bytes(INFO.id, bytes.into())?;
    let a = csr_to_unpadded_ell(view);
    Ok(boxed(Collapsed::new(INFO.id, a, dense, options)?, dense))
}
