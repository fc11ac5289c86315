//! The shape that all SpMM plans share: a product with its sizes, wrapped once with the checks.

use spm_formats::kernel::{Footprint, RunError, SpmmPlan, check_length};
use spm_formats::{DenseShape, Scalar};

use super::BoxedPlan;

/// What a kernel provides; arguments of `multiply` have the right lengths.
pub(super) trait Product<T>: Send {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Bytes of the matrix in the kernel's format, and bytes that the plan itself holds.
    fn memory(&self) -> Memory;

    /// Overwrites `y` with A `x`.
    fn multiply(&mut self, x: &[T], y: &mut [T]);

    /// See [`SpmmPlan::choice`].
    fn choice(&self) -> Option<String> {
        None
    }
}

/// Sizes in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// The matrix in the kernel's format, wherever it lies.
    pub(super) matrix: u64,
    /// What the plan holds besides the caller's matrix.
    pub(super) plan: u64,
}

struct Checked<P> {
    product: P,
    dense: DenseShape,
}

pub(super) fn boxed<'a, T: Scalar>(
    product: impl Product<T> + 'a,
    dense: DenseShape,
) -> BoxedPlan<'a, T> {
    Box::new(Checked { product, dense })
}

impl<T: Scalar, P: Product<T>> SpmmPlan<T> for Checked<P> {
    fn shape(&self) -> (usize, usize) {
        self.product.shape()
    }

    fn dense(&self) -> DenseShape {
        self.dense
    }

    fn footprint(&self) -> Footprint {
        let (rows, cols) = self.shape();
        let memory = self.product.memory();
        let dense = ((rows + cols) * self.dense.k * T::BYTES) as u64;
        Footprint {
            bytes_moved: memory.matrix + dense,
            plan_bytes: memory.plan,
            matrix_bytes: memory.matrix,
        }
    }

    fn run(&mut self, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        let (rows, cols) = self.shape();
        check_length("X", cols * self.dense.k, x.len())?;
        check_length("Y", rows * self.dense.k, y.len())?;
        self.product.multiply(x, y);
        Ok(())
    }

    fn choice(&self) -> Option<String> {
        self.product.choice()
    }
}
