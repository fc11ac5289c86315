//! Serial HLL SpMV (R2 V-B on one thread): y_i is the sum over the stored elements of row i in its
//! block.

use spm_formats::Scalar;
use spm_formats::kernel::KernelInfo;

use super::KERNEL;
use super::hll::{HACK, HllBlocks, SIMD};
use super::rows::{self, Partition};
use crate::kernel::{Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "hll-serial",
    source: "R2 III-B",
    summary: "HLL, one block after the other on one thread",
    parameters: &[HACK, SIMD],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    Ok(rows::plan(HllBlocks::new(a.view(), parameters, options)?, Partition::Serial))
}
