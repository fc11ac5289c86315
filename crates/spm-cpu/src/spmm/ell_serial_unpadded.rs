//! Serial ELLPACK SpMM without padding of R4 1.3: one element of Y after the other.

use spm_formats::convert::csr_to_unpadded_ell;
use spm_formats::kernel::KernelInfo;
use spm_formats::{Scalar, UnpaddedEll};

use super::KERNEL;
use super::plan::boxed;
use super::serial::Serial;
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-serial-unpadded",
    source: "R4 1.3",
    summary: "ELLPACK, two arrays for each row, one element of Y after the other on one thread",
    parameters: &[],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, dense, options, .. } = problem;
    let view = a.view();
    let bytes = UnpaddedEll::<T>::bytes_of(view.rows(), view.nnz());
    options.budget.check_bytes(INFO.id, bytes.into())?;
    Ok(boxed(Serial { a: csr_to_unpadded_ell(view), dense }, dense))
}
