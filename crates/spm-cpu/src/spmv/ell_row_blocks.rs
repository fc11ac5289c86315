//! ELLPACK SpMV of R1 1.2.1 (`spmvRowsBlocksELL`, OMP ELL 1): a fixed number of row blocks is
//! distributed to threads; y_i = sum_s value(i, s) x_column(i, s).

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, Scaling};
use spm_formats::{CsrSource, Scalar, partition};

use super::ell::{EllRows, ROW_LENGTHS};
use super::plan::{Memory, Product, boxed};
use super::schedule::{self, BLOCKS, FOLDING, Loop, SCHEDULE};
use super::{BoxedPlan, row};
use crate::PlanOptions;
use crate::disjoint::Disjoint;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-row-blocks",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R1 1.2.1, OMP ELL 1 (spmvRowsBlocksELL)",
    summary: "ELLPACK, a fixed number of equal row blocks, distributed to threads",
    parameters: &[BLOCKS, SCHEDULE, FOLDING, ROW_LENGTHS, row::SIMD],
};

struct RowBlocks<T> {
    a: EllRows<T>,
    blocks: usize,
    block_loop: Loop,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let a = EllRows::new(a.view(), parameters, options)?;
    let blocks = schedule::blocks(parameters, a.shape().0);
    let block_loop = Loop::new(&options.threads, blocks, parameters);
    Ok(boxed(RowBlocks { a, blocks, block_loop }))
}

impl<T: Scalar> Product<T> for RowBlocks<T> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }

    fn memory(&self) -> Memory {
        self.a.memory(0)
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        let (total, y) = (y.len(), Disjoint::new(y));
        self.block_loop.run(|blocks| {
            for block in blocks {
                let rows = partition::even(total, self.blocks, block);
                // SAFETY: the blocks of rows do not overlap.
                let y = unsafe { y.range(rows.clone()) };
                self.a.multiply(rows, scaling, x, y);
            }
        });
    }
}
