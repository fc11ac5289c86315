//! The common part of all transposition plans: checks of the output around a kernel's procedure.

use spm_formats::kernel::{Footprint, RunError, TransposeOutput, TransposePlan};
use spm_formats::{CsrView, Scalar};

use super::BoxedPlan;

/// A kernel's procedure. The arrays of `output` have been checked and have the right lengths.
pub(super) trait Procedure<T>: Send {
    /// The matrix.
    fn matrix(&self) -> &CsrView<'_, T>;

    /// Bytes of workspace that the plan holds.
    fn workspace_bytes(&self) -> u64;

    /// Overwrites all three arrays.
    fn transpose(&mut self, output: &mut TransposeOutput<T>);

    /// See [`TransposePlan::choice`].
    fn choice(&self) -> Option<String> {
        None
    }
}

struct Checked<P>(P);

pub(super) fn boxed<'a, T: Scalar>(procedure: impl Procedure<T> + 'a) -> BoxedPlan<'a, T> {
    Box::new(Checked(procedure))
}

impl<T: Scalar, P: Procedure<T>> TransposePlan<T> for Checked<P> {
    fn shape(&self) -> (usize, usize) {
        (self.0.matrix().rows(), self.0.matrix().cols())
    }

    fn entries(&self) -> usize {
        self.0.matrix().nnz()
    }

    fn footprint(&self) -> Footprint {
        let a = self.0.matrix();
        let pointers = ((a.cols() + 1) * size_of::<u32>()) as u64;
        let entries = (a.nnz() * (size_of::<u32>() + T::BYTES)) as u64;
        Footprint {
            bytes_moved: a.memory_bytes() + pointers + entries,
            plan_bytes: self.0.workspace_bytes(),
            matrix_bytes: a.memory_bytes(),
        }
    }

    fn run(&mut self, output: &mut TransposeOutput<T>) -> Result<(), RunError> {
        output.check(self.shape().1, self.entries())?;
        self.0.transpose(output);
        Ok(())
    }

    fn choice(&self) -> Option<String> {
        self.0.choice()
    }
}
