//! Serial ELLPACK SpMV: y_i = sum_s value(i, s) x_column(i, s) over the stored elements of row i.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, Scaling};
use spm_formats::{CsrSource, Scalar};

use super::BoxedPlan;
use super::ell::{EllRows, ROW_LENGTHS};
use super::plan::{Memory, Product, boxed};
use crate::PlanOptions;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-serial",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "R0 2.3.1; R1 1.2",
    summary: "ELLPACK, one row after the other on one thread",
    parameters: &[ROW_LENGTHS],
};

struct Serial<T> {
    a: EllRows<T>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrSource<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    Ok(boxed(Serial { a: EllRows::new(a.view(), parameters, options)? }))
}

impl<T: Scalar> Product<T> for Serial<T> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }

    fn memory(&self) -> Memory {
        self.a.memory(0)
    }

    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]) {
        self.a.multiply(0..y.len(), scaling, x, y);
    }
}
