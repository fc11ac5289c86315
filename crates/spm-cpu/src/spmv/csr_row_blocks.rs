//! CSR SpMV of R1 1.1.1 (`spmvRowsBlocksCSR`, OMP CSR 2): a fixed number of row blocks is
//! distributed to threads; y_i = sum_j a_ij x_j.

use spm_formats::Scalar;
use spm_formats::kernel::KernelInfo;

use super::KERNEL;
use super::row;
use super::rows::{self, CsrRows, Partition};
use super::schedule::{BLOCKS, FOLDING, SCHEDULE};
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-row-blocks",
    source: "R1 1.1.1, OMP CSR 2 (spmvRowsBlocksCSR)",
    summary: "a fixed number of equal row blocks, distributed to threads",
    parameters: &[BLOCKS, SCHEDULE, FOLDING, row::SIMD],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let blocks = Partition::blocks(&options.threads, a.view().rows(), parameters);
    Ok(rows::plan(CsrRows::new(a, parameters), blocks))
}
