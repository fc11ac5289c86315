//! Serial HLL SpMV (R2 V-B on one thread): y_i is the sum over the stored elements of row i in its
//! block.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, Scaling};
use spm_formats::{CsrSource, Scalar};

use super::BoxedPlan;
use super::hll::{HACK, HllBlocks, SIMD};
use super::plan::{Memory, Product, boxed};
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "hll-serial",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R2 III-B",
    summary: "HLL, one block after the other on one thread",
    parameters: &[HACK, SIMD],
};

struct Serial<T> {
    a: HllBlocks<T>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(boxed(Serial { a: HllBlocks::new(a.view(), parameters, options)? }))
}

impl<T: Scalar> Product<T> for Serial<T> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }

    fn memory(&self) -> Memory {
        self.a.memory(0)
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        self.a.multiply(0..self.a.count(), scaling, x, y);
    }
}
