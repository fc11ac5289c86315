//! CSR SpMV of R0 3.2.1 and R1 1.1.1 (`spmvRowsBasicCSR`, OMP CSR 1): chunks of rows are
//! distributed to threads; y_i = sum_j a_ij x_j.

use spm_formats::Scalar;
use spm_formats::kernel::KernelInfo;

use super::KERNEL;
use super::row;
use super::rows::{self, CsrRows, Partition};
use super::schedule::{CHUNK, FOLDING, SCHEDULE};
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-rows",
    source: "R0 3.2.1; R1 1.1.1, OMP CSR 1 (spmvRowsBasicCSR)",
    summary: "chunks of rows, distributed to threads statically or dynamically",
    parameters: &[SCHEDULE, CHUNK, FOLDING, row::SIMD],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let chunks = Partition::scheduled(&options.threads, a.view().rows(), parameters);
    Ok(rows::plan(CsrRows::new(a, parameters), chunks))
}
