//! Serial CSR SpMM of R4 1.3: one element of Y after the other.

use spm_formats::kernel::{KernelInfo, PlanError};
use spm_formats::{CsrSource, DenseShape, NewValues, Scalar};

use super::KERNEL;
use super::plan::{Memory, Product, boxed, checked};
use super::serial;
use crate::kernel::{Planned, Problem};
use crate::plan::BoxedOwnPlan;
use crate::scaled::Update;
use crate::values;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-serial",
    source: "R4 1.3",
    summary: "one element of Y after the other on one thread; the baseline of speedups",
    parameters: &[],
    ..KERNEL
};

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    Ok(serial(problem.a, problem.dense))
}

/// The plan that `auto` compares with.
pub(super) fn serial<'a, T: Scalar>(a: CsrSource<'a, T>, dense: DenseShape) -> BoxedOwnPlan<'a, T> {
    boxed(Serial { a, dense }, dense)
}

/// The plan that `auto` returns if no other kernel is faster.
pub(super) fn chosen<'a, T: Scalar>(a: CsrSource<'a, T>, dense: DenseShape) -> BoxedOwnPlan<'a, T> {
    Box::new(checked(Serial { a, dense }, dense).chosen(INFO.id))
}

struct Serial<'a, T> {
    a: CsrSource<'a, T>,
    dense: DenseShape,
}

impl<T: Scalar> Product<T> for Serial<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self) -> Memory {
        Memory::borrowed(&self.a.view(), 0)
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        serial::multiply(&self.a.view(), self.dense, scaling, x, y);
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        values::set(&mut self.a, new, None)
    }
}
