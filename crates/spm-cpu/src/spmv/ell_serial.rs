//! Serial ELLPACK SpMV: y_i = sum_s value(i, s) x_column(i, s) over the stored elements of row i.

use spm_formats::Scalar;
use spm_formats::kernel::KernelInfo;

use super::KERNEL;
use super::ell::{EllRows, ROW_LENGTHS};
use super::rows::{self, Partition};
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-serial",
    source: "R0 2.3.1; R1 1.2",
    summary: "ELLPACK, one row after the other on one thread",
    parameters: &[ROW_LENGTHS],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    Ok(rows::plan(EllRows::new(a.view(), parameters, options)?, Partition::Serial))
}
