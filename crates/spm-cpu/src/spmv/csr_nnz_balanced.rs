//! CSR SpMV with rows partitioned by entries (R2 V-A, algorithms 2 and 3): each thread has
//! consecutive rows with about the same number of entries; y_i = sum_j a_ij x_j.

use spm_formats::kernel::KernelInfo;
use spm_formats::{CsrSource, Scalar, WidensTo};

use super::load::{Conjugate, Stored, Widened};
use super::row::{self, Summing};
use super::{BoxedPlan, KERNEL, rows};
use crate::PlanOptions;
use crate::kernel::{Planned, Problem};
use crate::simd::PREFETCH;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-nnz-balanced",
    source: "R2 V-A, algorithms 2 and 3",
    summary: "consecutive rows with about the same number of entries for each thread",
    parameters: &[row::SIMD, PREFETCH],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    Ok(rows::plan_of(Stored, a, Summing::by(parameters), &options.threads))
}

/// y = conj(A) x, otherwise as the kernel with its defaults.
pub(crate) fn conjugate<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    options: &PlanOptions,
) -> BoxedPlan<'a, T> {
    rows::plan_of(Conjugate, a, Summing::INTERLEAVED, &options.threads)
}

/// y = A x with vectors in double precision, otherwise as the kernel with its defaults.
pub(crate) fn widened<'a, A: WidensTo<T>, T: Scalar>(
    a: CsrSource<'a, A>,
    options: &PlanOptions,
) -> BoxedPlan<'a, T> {
    rows::plan_of(Widened, a, Summing::INTERLEAVED, &options.threads)
}
