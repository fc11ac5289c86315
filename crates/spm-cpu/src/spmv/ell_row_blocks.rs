//! ELLPACK SpMV of R1 1.2.1 (`spmvRowsBlocksELL`, OMP ELL 1): a fixed number of row blocks is
//! distributed to threads; y_i = sum_s value(i, s) x_column(i, s).

use spm_formats::Scalar;
use spm_formats::kernel::KernelInfo;

use super::KERNEL;
use super::ell::{EllRows, ROW_LENGTHS};
use super::row;
use super::rows::{self, Partition, RowSums};
use super::schedule::{BLOCKS, FOLDING, SCHEDULE};
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-row-blocks",
    source: "R1 1.2.1, OMP ELL 1 (spmvRowsBlocksELL)",
    summary: "ELLPACK, a fixed number of equal row blocks, distributed to threads",
    parameters: &[BLOCKS, SCHEDULE, FOLDING, ROW_LENGTHS, row::SIMD],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let a = EllRows::new(a.view(), parameters, options)?;
    let blocks = Partition::blocks(&options.threads, a.count(), parameters);
    Ok(rows::plan(a, blocks))
}
