//! The common part of all SpMM plans: checks of the operands around a kernel's product.

use spm_formats::kernel::{Footprint, RunError, Scaling, SpmmPlan, check_length};
use spm_formats::{DenseShape, Scalar};

use super::BoxedPlan;
pub(super) use crate::memory::Memory;

/// A kernel's product. The arguments of `multiply` have been checked and have the right lengths.
pub(super) trait Product<T>: Send + Sync {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Bytes of the matrix in the kernel's format, and bytes that the plan itself holds.
    fn memory(&self) -> Memory;

    /// `y` = alpha A `x` + beta `y`, or A `x` for `None`.
    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]);

    /// See [`SpmmPlan::choice`].
    fn choice(&self) -> Option<String> {
        None
    }
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
        self.product.memory().footprint::<T>((rows + cols) * self.dense.k)
    }

    fn run(&self, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        self.run_scaled(Scaling::OVERWRITE, x, y)
    }

    fn run_scaled(&self, scaling: Scaling<T>, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        let (rows, cols) = self.shape();
        check_length("X", cols * self.dense.k, x.len())?;
        check_length("Y", rows * self.dense.k, y.len())?;
        if scaling.alpha == T::ZERO {
            scaling.scale(y);
        } else {
            self.product.multiply(scaling.unless_overwrite(), x, y);
        }
        Ok(())
    }

    fn choice(&self) -> Option<String> {
        self.product.choice()
    }
}
