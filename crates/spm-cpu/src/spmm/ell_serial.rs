//! Serial ELLPACK SpMM of R4 1.3: padding is multiplied, one element of Y after the other.

use spm_formats::Scalar;
use spm_formats::convert::{EllOptions, csr_to_ell};
use spm_formats::kernel::KernelInfo;

use super::KERNEL;
use super::plan::boxed;
use super::serial::Serial;
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-serial",
    source: "R4 1.3",
    summary: "ELLPACK, padding multiplied, one element of Y after the other on one thread",
    parameters: &[],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, dense, options, .. } = problem;
    let a = csr_to_ell(a.view(), EllOptions::ROW_MAJOR, &options.budget)?;
    Ok(boxed(Serial { a, dense }, dense))
}
