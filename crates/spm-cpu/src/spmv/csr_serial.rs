//! Serial CSR SpMV (R0 3.1, R2 algorithm 1): y_i = sum_j a_ij x_j, one row after the other.

use spm_formats::kernel::{KernelInfo, PlanError};
use spm_formats::{CsrSource, NewValues, Scalar};

use super::KERNEL;
use super::plan::{Memory, Product, boxed, checked};
use super::row::{self, Summing};
use crate::kernel::{Planned, Problem};
use crate::plan::BoxedOwnPlan;
use crate::scaled::Update;
use crate::values;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-serial",
    source: "R0 3.1; R2 algorithm 1",
    summary: "one row after the other on one thread; the baseline of speedups",
    parameters: &[],
    ..KERNEL
};

struct Serial<'a, T>(CsrSource<'a, T>);

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    Ok(serial(problem.a))
}

/// The plan that `auto` compares with.
pub(super) fn serial<'a, T: Scalar>(a: CsrSource<'a, T>) -> BoxedOwnPlan<'a, T> {
    boxed(Serial(a))
}

/// The plan that `auto` returns for a tiny matrix.
pub(super) fn chosen<'a, T: Scalar>(a: CsrSource<'a, T>) -> BoxedOwnPlan<'a, T> {
    Box::new(checked(Serial(a)).chosen(INFO.id))
}

impl<T: Scalar> Product<T> for Serial<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.0.view().shape()
    }

    fn memory(&self) -> Memory {
        Memory::borrowed(&self.0.view(), 0)
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let a = self.0.view();
        row::multiply_rows(&a, 0..a.rows(), scaling, x, y, Summing::IN_ORDER);
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        values::set(&mut self.0, new, None)
    }
}
