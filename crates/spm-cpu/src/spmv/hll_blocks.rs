//! HLL SpMV of R2 V-B, algorithms 4 and 5: each thread has consecutive blocks; y_i is the sum over
//! the stored elements of row i in its block.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, Scaling};
use spm_formats::{CsrSource, Scalar, partition};

use super::BoxedPlan;
use super::hll::{HACK, HllBlocks, SIMD};
use super::plan::{Memory, Product, boxed};
use crate::disjoint::Disjoint;
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "hll-blocks",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R2 V-B, algorithms 4 and 5",
    summary: "HLL, equal partitions of consecutive blocks for each thread",
    parameters: &[HACK, SIMD],
};

struct Blocks<T> {
    a: HllBlocks<T>,
    threads: Threads,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let a = HllBlocks::new(a.view(), parameters, options)?;
    Ok(boxed(Blocks { a, threads: options.threads.clone() }))
}

impl<T: Scalar> Product<T> for Blocks<T> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }

    fn memory(&self) -> Memory {
        self.a.memory(0)
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        let y = Disjoint::new(y);
        self.threads.run(|part| {
            let blocks = partition::even(self.a.count(), self.threads.count(), part);
            // SAFETY: the shares of blocks, and so their rows, do not overlap.
            let y = unsafe { y.range(self.a.rows(&blocks)) };
            self.a.multiply(blocks, scaling, x, y);
        });
    }
}
