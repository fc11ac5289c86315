//! Transposition on CPU cores: CSR to CSC, which is also the CSR of the transpose.
//!
//! ```
//! use spm_cpu::{PlanOptions, transpose};
//! use spm_formats::{Csr, kernel::TransposeOutput};
//!
//! // | 1 0 2 |
//! // | 0 3 0 |
//! let a = Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
//! let kernel = transpose::find("auto").expect("auto is always there");
//! let mut plan = kernel.plan(a.view(), &kernel.info.defaults(), &PlanOptions::default())?;
//! let mut csc = TransposeOutput::new(a.cols(), a.nnz());
//! plan.run(&mut csc)?;
//! assert_eq!(csc.col_ptr, [0, 1, 2, 3]);
//! assert_eq!(csc.row_ind, [0, 1, 0]);
//! assert_eq!(csc.values, [1.0, 3.0, 2.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reproducibility
//! Every kernel gives the same arrays on any number of threads, with ascending rows in each column.

mod auto;
mod column_blocks;
mod counting;
mod merge_trans;
mod plan;
pub mod procedures;
mod radix;
mod scan_trans;
mod serial;
mod symmetric_pattern;

use spm_formats::kernel::{
    self, Backend, KernelInfo, Operation, Parameters, PlanError, TransposePlan,
};
use spm_formats::{Complex, CsrView, Scalar};

use crate::PlanOptions;

/// What the kernels of this module have in common.
const KERNEL: KernelInfo = KernelInfo::of(Operation::Transpose, Backend::Cpu);

/// A boxed plan that borrows the matrix it was made from.
pub type BoxedPlan<'a, T> = Box<dyn TransposePlan<T> + 'a>;

type PlanFn<T> =
    for<'a> fn(CsrView<'a, T>, &Parameters, &PlanOptions) -> Result<BoxedPlan<'a, T>, PlanError>;

/// One entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct TransposeKernel<T> {
    /// Id, source and parameters.
    pub info: KernelInfo,
    plan: PlanFn<T>,
}

impl<T: Scalar> TransposeKernel<T> {
    /// Plans the transposition of one matrix: allocates the workspace.
    ///
    /// # Errors
    /// A matrix that is not CSR or not sound, or a slice of a larger one; a workspace beyond the
    /// budget; parameters of another kernel, or that make no sense for this matrix.
    pub fn plan<'a>(
        &self,
        a: CsrView<'a, T>,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<BoxedPlan<'a, T>, PlanError> {
        self.info.check_parameters(parameters)?;
        (self.plan)(a, parameters, options)
    }
}

kernel::registry! {
    /// Every transposition for CPU cores, in the order of the reports, then our own.
    TransposeKernel<T: Scalar>
    f32, f64, Complex<f32>, Complex<f64>: Scalar [
        TransposeKernel { info: serial::INFO, plan: serial::plan },
        TransposeKernel { info: scan_trans::INFO, plan: scan_trans::plan },
        TransposeKernel { info: merge_trans::INFO, plan: merge_trans::plan },
        TransposeKernel { info: counting::INFO, plan: counting::plan },
        TransposeKernel { info: radix::INFO, plan: radix::plan },
        TransposeKernel { info: column_blocks::INFO, plan: column_blocks::plan },
        TransposeKernel { info: symmetric_pattern::INFO, plan: symmetric_pattern::plan },
        TransposeKernel { info: auto::INFO, plan: auto::plan },
    ]
}
