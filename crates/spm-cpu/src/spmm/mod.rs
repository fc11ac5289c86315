//! SpMM on CPU cores: Y = A X, where X and Y are dense with k columns.
//!
//! ```
//! use spm_cpu::{PlanOptions, spmm};
//! use spm_formats::{Csr, DenseShape, Layout};
//!
//! // | 1 0 2 |
//! // | 0 3 0 |
//! let a = Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
//! let kernel = spmm::find("auto").expect("auto is always there");
//! let dense = DenseShape { k: 2, layout: Layout::RowMajor };
//! let options = PlanOptions::default();
//! let plan = kernel.plan(a.view(), dense, &kernel.info.defaults(), &options)?;
//! let mut y = [0.0; 4];
//! plan.run(&[1.0, 4.0, 10.0, 40.0, 100.0, 400.0], &mut y)?;
//! assert_eq!(y, [201.0, 804.0, 30.0, 120.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reproducibility
//! Every run of a plan gives the same bits. Two plans of one kernel with the same parameters give
//! the same bits on any number of threads, with two exceptions: `csr-blocked` splits rows at the
//! ends of the threads' partitions, and `auto` may choose another kernel.

mod auto;
mod blocked;
mod collapsed;
mod csr_rows;
mod csr_serial;
mod ell_rows;
mod ell_rows_unpadded;
mod ell_serial;
mod ell_serial_unpadded;
mod plan;
mod rows;
mod serial;
mod vector;

use std::any::Any;

use spm_formats::kernel::{KernelInfo, Parameters, PlanError, SpmmPlan, registry_of};
use spm_formats::{CsrSource, DenseShape, Scalar};

use crate::PlanOptions;

/// A boxed plan that borrows its matrix or shares it. One that shares is `BoxedPlan<'static, T>`.
pub type BoxedPlan<'a, T> = Box<dyn SpmmPlan<T> + 'a>;

type PlanFn<T> = for<'a> fn(
    CsrSource<'a, T>,
    DenseShape,
    &Parameters,
    &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError>;

/// One entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct SpmmKernel<T> {
    /// Id, source and parameters.
    pub info: KernelInfo,
    plan: PlanFn<T>,
}

impl<T: Scalar> SpmmKernel<T> {
    /// Plans Y = A X for one matrix, borrowed or shared, and one shape of X.
    ///
    /// # Errors
    /// A matrix that is not CSR or not valid, or (except for ELLPACK) a slice of a larger one;
    /// padding beyond the budget; parameters of another kernel, or parameters that this matrix does
    /// not allow; more elements of X than the address space has. For 0 columns the plan does
    /// nothing.
    pub fn plan<'a>(
        &self,
        a: impl Into<CsrSource<'a, T>>,
        dense: DenseShape,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<BoxedPlan<'a, T>, PlanError> {
        self.info.check_parameters(parameters)?;
        let a = a.into();
        dense.check::<T>(a.view().shape())?;
        (self.plan)(a, dense, parameters, options)
    }
}

/// Every SpMM kernel for CPU cores, in the order of the reports, then our own.
pub fn registry<T: Scalar>() -> Vec<SpmmKernel<T>> {
    registry_of::<T, _>(single, double)
}

#[inline(never)]
fn single() -> Box<dyn Any> {
    Box::new(kernels::<f32>())
}

#[inline(never)]
fn double() -> Box<dyn Any> {
    Box::new(kernels::<f64>())
}

fn kernels<T: Scalar>() -> Vec<SpmmKernel<T>> {
    vec![
        SpmmKernel { info: csr_serial::INFO, plan: csr_serial::plan },
        SpmmKernel { info: ell_serial::INFO, plan: ell_serial::plan },
        SpmmKernel { info: ell_serial_unpadded::INFO, plan: ell_serial_unpadded::plan },
        SpmmKernel { info: csr_rows::INFO, plan: csr_rows::plan },
        SpmmKernel { info: ell_rows::INFO, plan: ell_rows::plan },
        SpmmKernel { info: ell_rows_unpadded::INFO, plan: ell_rows_unpadded::plan },
        SpmmKernel { info: blocked::INFO, plan: blocked::plan },
        SpmmKernel { info: auto::INFO, plan: auto::plan },
    ]
}

/// The kernel with this id.
pub fn find<T: Scalar>(id: &str) -> Option<SpmmKernel<T>> {
    registry().into_iter().find(|kernel| kernel.info.id == id)
}
