//! SpMV on CPU cores: y = A x.
//!
//! # Reproducibility
//! Every run of a plan gives the same bits. Two plans of one kernel with the same parameters give
//! the same bits on any number of threads and with any schedule, with these exceptions:
//! - `csr-merge` splits rows at the ends of the threads' partitions.
//! - `csr-compact` splits groups of rows with the same columns there, and sums a row that is alone
//!   in its group in another order.
//! - `sell-compact` splits rows of more than 2048 entries between the threads.
//! - `sell-symmetric` adds the contributions from another thread's rows last.
//! - `auto` may choose another kernel.

mod auto;
mod csr_compact;
mod csr_merge;
mod csr_nnz_balanced;
mod csr_row_blocks;
mod csr_rows;
mod csr_serial;
mod csr_tiles;
mod csr_tiles_copied;
pub(crate) mod csr_transposed;
mod ell;
mod ell_row_blocks;
mod ell_rows;
mod ell_serial;
mod ell_tiles;
mod hll;
mod hll_blocks;
mod hll_serial;
mod long_rows;
mod plan;
mod repair;
mod row;
mod schedule;
mod sell;
mod sell_compact;
mod sell_symmetric;
mod sell_tiles;
mod tiles;

use std::any::Any;

use spm_formats::kernel::{KernelInfo, Parameters, PlanError, SpmvPlan, registry_of};
use spm_formats::{CsrSource, Scalar};

use crate::PlanOptions;

/// A boxed plan that borrows its matrix or shares it. One that shares is `BoxedPlan<'static, T>`.
pub type BoxedPlan<'a, T> = Box<dyn SpmvPlan<T> + 'a>;

type PlanFn<T> =
    for<'a> fn(CsrSource<'a, T>, &Parameters, &PlanOptions) -> Result<BoxedPlan<'a, T>, PlanError>;

/// One entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct SpmvKernel<T> {
    /// Id, source and parameters.
    pub info: KernelInfo,
    plan: PlanFn<T>,
}

impl<T: Scalar> SpmvKernel<T> {
    /// Plans y = A x for one matrix, borrowed or shared: converts, partitions, allocates.
    ///
    /// # Errors
    /// A matrix that is not CSR or not valid, or (except for ELLPACK and HLL) a slice of a larger
    /// one; padding beyond the budget; parameters of another kernel, or parameters that this matrix
    /// does not allow.
    pub fn plan<'a>(
        &self,
        a: impl Into<CsrSource<'a, T>>,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<BoxedPlan<'a, T>, PlanError> {
        self.info.check_parameters(parameters)?;
        (self.plan)(a.into(), parameters, options)
    }
}

/// Every SpMV kernel for CPU cores, in the order of the reports, then our own.
pub fn registry<T: Scalar>() -> Vec<SpmvKernel<T>> {
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

fn kernels<T: Scalar>() -> Vec<SpmvKernel<T>> {
    vec![
        SpmvKernel { info: csr_serial::INFO, plan: csr_serial::plan },
        SpmvKernel { info: csr_rows::INFO, plan: csr_rows::plan },
        SpmvKernel { info: csr_row_blocks::INFO, plan: csr_row_blocks::plan },
        SpmvKernel { info: csr_tiles::INFO, plan: csr_tiles::plan },
        SpmvKernel { info: csr_tiles_copied::INFO, plan: csr_tiles_copied::plan },
        SpmvKernel { info: csr_nnz_balanced::INFO, plan: csr_nnz_balanced::plan },
        SpmvKernel { info: ell_serial::INFO, plan: ell_serial::plan },
        SpmvKernel { info: ell_rows::INFO, plan: ell_rows::plan },
        SpmvKernel { info: ell_row_blocks::INFO, plan: ell_row_blocks::plan },
        SpmvKernel { info: ell_tiles::INFO, plan: ell_tiles::plan },
        SpmvKernel { info: hll_serial::INFO, plan: hll_serial::plan },
        SpmvKernel { info: hll_blocks::INFO, plan: hll_blocks::plan },
        SpmvKernel { info: csr_merge::INFO, plan: csr_merge::plan },
        SpmvKernel { info: csr_compact::INFO, plan: csr_compact::plan },
        SpmvKernel { info: sell::INFO, plan: sell::plan },
        SpmvKernel { info: sell_compact::INFO, plan: sell_compact::plan },
        SpmvKernel { info: sell_tiles::INFO, plan: sell_tiles::plan },
        SpmvKernel { info: sell_symmetric::INFO, plan: sell_symmetric::plan },
        SpmvKernel { info: auto::INFO, plan: auto::plan },
    ]
}

/// The kernel with this id.
pub fn find<T: Scalar>(id: &str) -> Option<SpmvKernel<T>> {
    registry().into_iter().find(|kernel| kernel.info.id == id)
}
