//! HLL SpMV of R2 V-B, algorithms 4 and 5: each thread has consecutive blocks; y_i is the sum over
//! the stored elements of row i in its block.

use spm_formats::Scalar;
use spm_formats::kernel::KernelInfo;

use super::KERNEL;
use super::hll::{HACK, HllBlocks, SIMD};
use super::rows::{self, Partition};
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "hll-blocks",
    source: "R2 V-B, algorithms 4 and 5",
    summary: "HLL, equal partitions of consecutive blocks for each thread",
    parameters: &[HACK, SIMD],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let a = HllBlocks::new(a.view(), parameters, options)?;
    Ok(rows::plan(a, Partition::Even(options.threads.clone())))
}
