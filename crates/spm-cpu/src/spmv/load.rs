//! What a product straight from CSR takes for the stored values.

use spm_formats::kernel::PlanError;
use spm_formats::{NewValues, Scalar, WidensTo};

/// What a product with vectors of `T` takes for values of type `A`.
pub(crate) trait Load<A, T>: Copy + Send + Sync {
    /// The factor that a stored value stands for.
    fn load(self, value: A) -> T;

    /// New values as the matrix stores them.
    fn to_store(new: NewValues<'_, T>) -> Result<NewValues<'_, A>, PlanError>;
}

/// The values as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored;

impl<T: Scalar> Load<T, T> for Stored {
    #[inline(always)]
    fn load(self, value: T) -> T {
        value
    }

    fn to_store(new: NewValues<'_, T>) -> Result<NewValues<'_, T>, PlanError> {
        Ok(new)
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

    fn to_store(new: NewValues<'_, T>) -> Result<NewValues<'_, T>, PlanError> {
        Ok(new)
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

    fn to_store(_: NewValues<'_, T>) -> Result<NewValues<'_, A>, PlanError> {
        Err(PlanError::Values("the vectors have another type than the matrix"))
    }
}
