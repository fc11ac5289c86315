//! y_i = sum_j a_ij x_j, one row after the other: R0 3.1, R2 algorithm 1.

use spm_formats::kernel::{
    Backend, Footprint, KernelInfo, Operation, Parameters, PlanError, RunError, SpmvPlan,
    check_length,
};
use spm_formats::{CsrArrays, CsrView, Scalar};

use super::{BoxedPlan, csr_footprint, row};
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-serial",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R0 3.1; R2 algorithm 1",
    summary: "one row after the other on one thread; what speedups are counted from",
    parameters: &[],
};

struct Plan<'a, T> {
    a: CsrArrays<'a, T>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: &CsrView<'a, T>,
    _: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(Box::new(Plan { a: CsrArrays::new(a)? }))
}

impl<T: Scalar> SpmvPlan<T> for Plan<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.a.rows(), self.a.cols())
    }

    fn footprint(&self) -> Footprint {
        csr_footprint(&self.a, 0)
    }

    fn run(&mut self, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        check_length("x", self.a.cols(), x.len())?;
        check_length("y", self.a.rows(), y.len())?;
        row::multiply_rows(&self.a, 0..self.a.rows(), x, y, false);
        Ok(())
    }
}
