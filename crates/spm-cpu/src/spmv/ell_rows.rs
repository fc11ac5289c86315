//! ELLPACK SpMV of R0 3.2.2 and R1 1.2.1 (`spmvRowsBasicELL`, OMP ELL 0): chunks of rows are
//! distributed to threads; y_i = sum_s value(i, s) x_column(i, s).

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, Scaling};
use spm_formats::{CsrSource, Scalar};

use super::ell::{EllRows, ROW_LENGTHS};
use super::plan::{Memory, Product, boxed};
use super::schedule::{CHUNK, FOLDING, Loop, SCHEDULE};
use super::{BoxedPlan, row};
use crate::PlanOptions;
use crate::disjoint::Disjoint;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-rows",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R0 3.2.2; R1 1.2.1, OMP ELL 0 (spmvRowsBasicELL)",
    summary: "ELLPACK, chunks of rows, distributed to threads statically or dynamically",
    parameters: &[SCHEDULE, CHUNK, FOLDING, ROW_LENGTHS, row::SIMD],
};

struct Rows<T> {
    a: EllRows<T>,
    rows: Loop,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let a = EllRows::new(a.view(), parameters, options)?;
    let rows = Loop::new(&options.threads, a.shape().0, parameters);
    Ok(boxed(Rows { a, rows }))
}

impl<T: Scalar> Product<T> for Rows<T> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }

    fn memory(&self) -> Memory {
        self.a.memory(0)
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        let y = Disjoint::new(y);
        self.rows.run(|rows| {
            // SAFETY: the chunks of a loop do not overlap.
            let y = unsafe { y.range(rows.clone()) };
            self.a.multiply(rows, scaling, x, y);
        });
    }
}
