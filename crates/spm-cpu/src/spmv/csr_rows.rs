//! CSR SpMV of R0 3.2.1 and R1 1.1.1 (`spmvRowsBasicCSR`, OMP CSR 1): chunks of rows are
//! distributed to threads; y_i = sum_j a_ij x_j.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, Scaling};
use spm_formats::{CsrSource, Scalar};

use super::plan::{Memory, Product, boxed};
use super::schedule::{CHUNK, FOLDING, Loop, SCHEDULE};
use super::{BoxedPlan, row};
use crate::PlanOptions;
use crate::disjoint::Disjoint;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-rows",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R0 3.2.1; R1 1.1.1, OMP CSR 1 (spmvRowsBasicCSR)",
    summary: "chunks of rows, distributed to threads statically or dynamically",
    parameters: &[SCHEDULE, CHUNK, FOLDING, row::SIMD],
};

struct Rows<'a, T> {
    a: CsrSource<'a, T>,
    rows: Loop,
    simd: bool,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let rows = Loop::new(&options.threads, a.view().rows(), parameters);
    Ok(boxed(Rows { a, rows, simd: parameters.switch(row::SIMD.name) }))
}

impl<T: Scalar> Product<T> for Rows<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self) -> Memory {
        Memory::borrowed(&self.a.view(), 0)
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        let y = Disjoint::new(y);
        let (a, simd) = (self.a.view(), self.simd);
        self.rows.run(|rows| {
            // SAFETY: the chunks of a loop do not overlap.
            let y = unsafe { y.range(rows.clone()) };
            row::multiply_rows(&a, rows, scaling, x, y, simd);
        });
    }
}
