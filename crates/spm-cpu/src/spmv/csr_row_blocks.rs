//! CSR SpMV of R1 1.1.1 (`spmvRowsBlocksCSR`, OMP CSR 2): a fixed number of row blocks is
//! distributed to threads; y_i = sum_j a_ij x_j.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, Scaling};
use spm_formats::{CsrSource, Scalar, partition};

use super::plan::{Memory, Product, boxed};
use super::schedule::{self, BLOCKS, FOLDING, Loop, SCHEDULE};
use super::{BoxedPlan, row};
use crate::PlanOptions;
use crate::disjoint::Disjoint;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-row-blocks",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R1 1.1.1, OMP CSR 2 (spmvRowsBlocksCSR)",
    summary: "a fixed number of equal row blocks, distributed to threads",
    parameters: &[BLOCKS, SCHEDULE, FOLDING, row::SIMD],
};

struct RowBlocks<'a, T> {
    a: CsrSource<'a, T>,
    blocks: usize,
    block_loop: Loop,
    simd: bool,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let blocks = schedule::blocks(parameters, a.view().rows());
    let block_loop = Loop::new(&options.threads, blocks, parameters);
    Ok(boxed(RowBlocks { a, blocks, block_loop, simd: parameters.switch(row::SIMD.name) }))
}

impl<T: Scalar> Product<T> for RowBlocks<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self) -> Memory {
        Memory::borrowed(&self.a.view(), 0)
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        let (a, y) = (self.a.view(), Disjoint::new(y));
        self.block_loop.run(|blocks| {
            for block in blocks {
                let rows = partition::even(a.rows(), self.blocks, block);
                // SAFETY: the blocks of rows do not overlap.
                let y = unsafe { y.range(rows.clone()) };
                row::multiply_rows(&a, rows, scaling, x, y, self.simd);
            }
        });
    }
}
