//! The common part of all SpMV plans: checks of the operands around a kernel's product.

use spm_formats::Scalar;
use spm_formats::kernel::{Footprint, RunError, Scaling, SpmvPlan, check_length};

use super::BoxedPlan;
pub(super) use crate::memory::Memory;

/// A kernel's product, without the checks of operands.
pub(super) trait Product<T>: Send + Sync {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Bytes of the matrix in the format that the product reads, and bytes that the plan holds.
    fn memory(&self) -> Memory;

    /// `y` = alpha A `x` + beta `y`, or A `x` for `None`; the lengths are those of [`Product::shape`].
    fn multiply(&self, scaling: Option<Scaling<T>>, x: &[T], y: &mut [T]);

    /// See [`SpmvPlan::choice`].
    fn choice(&self) -> Option<String> {
        None
    }
}

struct Checked<P>(P);

/// Makes a plan of a product.
pub(super) fn boxed<'a, T: Scalar>(product: impl Product<T> + 'a) -> BoxedPlan<'a, T> {
    Box::new(Checked(product))
}

impl<T: Scalar, P: Product<T>> SpmvPlan<T> for Checked<P> {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    fn footprint(&self) -> Footprint {
        let (rows, cols) = self.0.shape();
        self.0.memory().footprint::<T>(rows + cols)
    }

    fn run(&self, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        self.run_scaled(Scaling::OVERWRITE, x, y)
    }

    fn run_scaled(&self, scaling: Scaling<T>, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        let (rows, cols) = self.0.shape();
        check_length("x", cols, x.len())?;
        check_length("y", rows, y.len())?;
        if scaling.alpha == T::ZERO {
            scaling.scale(y);
        } else {
            self.0.multiply(scaling.unless_overwrite(), x, y);
        }
        Ok(())
    }

    fn choice(&self) -> Option<String> {
        self.0.choice()
    }
}
