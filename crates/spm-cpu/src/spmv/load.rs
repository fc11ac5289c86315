//! What a product straight from CSR takes for the stored values.

use spm_formats::kernel::PlanError;
use spm_formats::{CsrSource, NewValues, Scalar, WidensTo};

/// What a product with vectors of `T` takes for values of type `A`.
pub(crate) trait Load<A, T>: Copy + Send + Sync {
    /// The factor that a stored value stands for.
    fn load(self, value: A) -> T;

    /// Gives the matrix new values.
    fn set_values(a: &mut CsrSource<'_, A>, new: NewValues<'_, T>) -> Result<(), PlanError>;
}

/// The values as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored;

impl<T: Scalar> Load<T, T> for Stored {
    #[inline(always)]
    fn load(self, value: T) -> T {
        value
    }

    fn set_values(a: &mut CsrSource<'_, T>, new: NewValues<'_, T>) -> Result<(), PlanError> {
        a.set_values(new)
    }
}

/// Their complex conjugates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conjugate;

impl<T: Scalar> Load<T, T> for Conjugate {
    #[inline(always)]
    fn load(self, value: T) -> T {
        value.conj()
    }

    fn set_values(a: &mut CsrSource<'_, T>, new: NewValues<'_, T>) -> Result<(), PlanError> {
        a.set_values(new)
    }
}

/// The values in double precision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Widened;

impl<A: WidensTo<T>, T: Scalar> Load<A, T> for Widened {
    #[inline(always)]
    fn load(self, value: A) -> T {
        value.widen_to()
    }

    fn set_values(_: &mut CsrSource<'_, A>, _: NewValues<'_, T>) -> Result<(), PlanError> {
        Err(PlanError::Values("the vectors have another type than the matrix"))
    }
}
