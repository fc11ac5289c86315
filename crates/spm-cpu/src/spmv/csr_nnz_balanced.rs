//! CSR SpMV with rows partitioned by entries (R2 V-A, algorithms 2 and 3): each thread has
//! consecutive rows with about the same number of entries; y_i = sum_j a_ij x_j.

use spm_formats::kernel::KernelInfo;
use spm_formats::{Scalar, partition};

use super::KERNEL;
use super::row;
use super::rows::{self, CsrRows, Partition};
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-nnz-balanced",
    source: "R2 V-A, algorithms 2 and 3",
    summary: "consecutive rows with about the same number of entries for each thread",
    parameters: &[row::SIMD],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let threads = options.threads.clone();
    let bounds = partition::by_entries(a.view().row_ptr(), threads.count());
    Ok(rows::plan(CsrRows::new(a, parameters), Partition::Bounds(threads, bounds)))
}
