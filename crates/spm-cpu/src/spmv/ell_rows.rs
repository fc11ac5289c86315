//! ELLPACK SpMV of R0 3.2.2 and R1 1.2.1 (`spmvRowsBasicELL`, OMP ELL 0): chunks of rows are
//! distributed to threads; y_i = sum_s value(i, s) x_column(i, s).

use spm_formats::Scalar;
use spm_formats::kernel::KernelInfo;

use super::KERNEL;
use super::ell::{EllRows, ROW_LENGTHS};
use super::row;
use super::rows::{self, Partition, RowSums};
use super::schedule::{CHUNK, FOLDING, SCHEDULE};
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-rows",
    source: "R0 3.2.2; R1 1.2.1, OMP ELL 0 (spmvRowsBasicELL)",
    summary: "ELLPACK, chunks of rows, distributed to threads statically or dynamically",
    parameters: &[SCHEDULE, CHUNK, FOLDING, ROW_LENGTHS, row::SIMD],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let a = EllRows::new(a.view(), parameters, options)?;
    let chunks = Partition::scheduled(&options.threads, a.count(), parameters);
    Ok(rows::plan(a, chunks))
}
