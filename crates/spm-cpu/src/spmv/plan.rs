//! What the plans of this module have in common.

use spm_formats::kernel::{Footprint, RunError, SpmvPlan, check_length};
use spm_formats::{CsrArrays, Scalar};

use super::BoxedPlan;

/// A prepared product, without the checks and the bookkeeping that are the same for each.
pub(super) trait Product<T>: Send {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Bytes of the matrix in the form that the product reads, and bytes that the plan holds.
    fn memory(&self) -> Memory;

    /// Overwrites `y` with A `x`; the lengths are those of [`Product::shape`].
    fn multiply(&mut self, x: &[T], y: &mut [T]);

    /// See [`SpmvPlan::choice`].
    fn choice(&self) -> Option<String> {
        None
    }
}

/// Where the bytes of a plan are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// The arrays that a product reads of the matrix.
    pub(super) matrix: u64,
    /// What the plan itself holds.
    pub(super) plan: u64,
}

impl Memory {
    /// The caller's CSR arrays as they are, and `plan` bytes beside them.
    pub(super) fn borrowed<T: Scalar>(a: &CsrArrays<'_, T>, plan: usize) -> Self {
        Self { matrix: a.bytes(), plan: plan as u64 }
    }

    /// A copy of the matrix in `matrix` bytes, and `rest` bytes beside it.
    pub(super) fn owned(matrix: usize, rest: usize) -> Self {
        Self { matrix: matrix as u64, plan: (matrix + rest) as u64 }
    }
}

struct Checked<P>(P);

/// Makes a product a plan.
pub(super) fn boxed<'a, T: Scalar>(product: impl Product<T> + 'a) -> BoxedPlan<'a, T> {
    Box::new(Checked(product))
}

impl<T: Scalar, P: Product<T>> SpmvPlan<T> for Checked<P> {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    fn footprint(&self) -> Footprint {
        let ((rows, cols), memory) = (self.0.shape(), self.0.memory());
        Footprint {
            bytes_moved: memory.matrix + ((rows + cols) * T::BYTES) as u64,
            plan_bytes: memory.plan,
            matrix_bytes: memory.matrix,
        }
    }

    fn run(&mut self, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        let (rows, cols) = self.0.shape();
        check_length("x", cols, x.len())?;
        check_length("y", rows, y.len())?;
        self.0.multiply(x, y);
        Ok(())
    }

    fn choice(&self) -> Option<String> {
        self.0.choice()
    }
}
