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
}

/// A procedure with the checks of the output, which makes it a plan.
pub(super) struct Checked<P> {
    pub(super) procedure: P,
    /// The label, if `auto` has chosen the procedure.
    pub(super) choice: Option<String>,
}

pub(super) fn boxed<'a, T: Scalar>(procedure: impl Procedure<T> + 'a) -> BoxedPlan<'a, T> {
    Box::new(Checked { procedure, choice: None })
}

impl<T: Scalar, P: Procedure<T>> TransposePlan<T> for Checked<P> {
    fn shape(&self) -> (usize, usize) {
        (self.procedure.matrix().rows(), self.procedure.matrix().cols())
    }

    fn entries(&self) -> usize {
        self.procedure.matrix().nnz()
    }

    fn footprint(&self) -> Footprint {
        let a = self.procedure.matrix();
        let col_ptr = ((a.cols() + 1) * size_of::<u32>()) as u64;
        let entries = (a.nnz() * (size_of::<u32>() + T::BYTES)) as u64;
        Footprint {
            bytes_moved: a.memory_bytes() + col_ptr + entries,
            plan_bytes: self.procedure.workspace_bytes(),
            matrix_bytes: a.memory_bytes(),
        }
    }

    fn run(&mut self, output: &mut TransposeOutput<T>) -> Result<(), RunError> {
        output.check(self.shape().1, self.entries())?;
        self.procedure.transpose(output);
        Ok(())
    }

    fn choice(&self) -> Option<String> {
        self.choice.clone()
    }
}

/// A plan that `auto` has chosen, and its label.
pub(super) struct Chosen<'a, T>(pub(super) BoxedPlan<'a, T>, pub(super) String);

impl<T: Scalar> TransposePlan<T> for Chosen<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    fn entries(&self) -> usize {
        self.0.entries()
    }

    fn footprint(&self) -> Footprint {
        self.0.footprint()
    }

    fn run(&mut self, output: &mut TransposeOutput<T>) -> Result<(), RunError> {
        self.0.run(output)
    }

    fn choice(&self) -> Option<String> {
        Some(self.1.clone())
    }
}
