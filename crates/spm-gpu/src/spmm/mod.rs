//! SpMM on a GPU: Y = A X, where X and Y are dense with k columns.
//!
//! Results are reproducible as [in SpMV](crate::spmv).

mod auto;
mod columns;
mod csr_adaptive;
mod csr_adaptive_subblocks;
mod csr_nonzero_split;
mod csr_row_split;
mod csr_segmented_sum;
mod csr_subwarp_per_element;
mod csr_thread_per_element;
mod csr_vector;
mod csr_warp_per_element;
mod csr_warp_per_row;
mod ell_subwarp_per_element;
mod ell_thread_per_element;
mod long_rows;
mod parameters;
mod plan;
mod rearrange;
mod row_blocks;
mod sell_row_split;
mod sell_thread_per_row;

use std::any::Any;
use std::sync::Arc;

use spm_formats::kernel::{KernelInfo, Parameters, PlanError, registry_of};
use spm_formats::{CsrView, DenseShape, MemoryBudget};

use crate::device::Device;
use crate::matrix::{DeviceCsr, check_counts};
use crate::plan::{DeviceScalar, DeviceSpmmPlan, HostSpmmPlan, PlanOptions};
use crate::spmv::Source;
use crate::{budget, cusparse};

pub(crate) use plan::boxed;
use plan::{product, product_with_scratch};

/// A boxed plan.
pub type BoxedPlan<T> = Box<dyn DeviceSpmmPlan<T>>;

type PlanFn<T> = fn(
    &Device,
    CsrView<'_, T>,
    DenseShape,
    &Parameters,
    &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError>;

/// Plans Y = A X for a matrix on the device; the budget is for padding.
type OnDevice<T> =
    fn(&Source<T>, DenseShape, &Parameters, &MemoryBudget) -> Result<BoxedPlan<T>, PlanError>;

/// Whether a kernel is planned on the host or on the device.
#[derive(Debug, Clone, Copy)]
enum Planner<T> {
    Host(PlanFn<T>),
    Device(OnDevice<T>),
}

/// One entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct SpmmKernel<T> {
    /// Id, source and parameters.
    pub info: KernelInfo,
    /// Whether this is a vendor kernel used as a baseline. It is unavailable without its library.
    pub baseline: bool,
    planner: Planner<T>,
}

impl<T: DeviceScalar> SpmmKernel<T> {
    /// Plans Y = A X for one matrix and one shape of X: converts and copies the matrix to the
    /// device.
    ///
    /// # Errors
    /// A matrix that is not CSR or not valid, padding beyond the budget, a dense shape or
    /// parameters that the kernel does not take, too little device memory, an absent library. For 0
    /// columns the plan does nothing.
    pub fn plan(
        &self,
        device: &Device,
        a: CsrView<'_, T>,
        dense: DenseShape,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<BoxedPlan<T>, PlanError> {
        self.info.check_parameters(parameters)?;
        dense.check::<T>(a.shape())?;
        check_counts(a.shape(), a.nnz())?;
        budget::within(self.info.id, &options.budget, a.memory_bytes(), || match self.planner {
            Planner::Host(plan) => plan(device, a, dense, parameters, options),
            Planner::Device(plan) => {
                plan(&Source::upload(device, a)?, dense, parameters, &options.budget)
            }
        })
    }

    /// The same for a matrix on the device whose statistics are known; only for a kernel that is
    /// planned on the device.
    fn plan_source(
        &self,
        a: &Source<T>,
        dense: DenseShape,
        parameters: &Parameters,
        budget: &MemoryBudget,
    ) -> Option<Result<BoxedPlan<T>, PlanError>> {
        let Planner::Device(plan) = self.planner else { return None };
        Some(plan(a, dense, parameters, budget))
    }

    /// Plans Y = A X for a matrix in device memory; `None` for a kernel that is planned on the host
    /// only. The row pointers may be copied to the host, to split long rows.
    ///
    /// # Errors
    /// As [`SpmmKernel::plan`].
    pub fn plan_on_device(
        &self,
        a: &Arc<DeviceCsr<T>>,
        dense: DenseShape,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Option<Result<BoxedPlan<T>, PlanError>> {
        let Planner::Device(plan) = self.planner else { return None };
        let budget = &options.budget;
        Some(budget::within(self.info.id, budget, 0, || {
            self.info.check_parameters(parameters)?;
            dense.check::<T>((a.rows(), a.cols()))?;
            plan(&Source::new(Arc::clone(a))?, dense, parameters, budget)
        }))
    }

    /// The same for X and Y in host memory.
    ///
    /// # Errors
    /// As [`SpmmKernel::plan`].
    pub fn plan_on_host(
        &self,
        device: &Device,
        a: CsrView<'_, T>,
        dense: DenseShape,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<HostSpmmPlan<T>, PlanError> {
        Ok(HostSpmmPlan::new(self.plan(device, a, dense, parameters, options)?)?)
    }
}

/// Every SpMM kernel for devices: those of the reports in their order, our own, the baselines.
pub fn registry<T: DeviceScalar>() -> Vec<SpmmKernel<T>> {
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

fn kernels<T: DeviceScalar>() -> Vec<SpmmKernel<T>> {
    let baseline: fn(_, PlanFn<T>) -> _ =
        |info, plan| SpmmKernel { info, baseline: true, planner: Planner::Host(plan) };
    let kernel: fn(_, PlanFn<T>) -> _ =
        |info, plan| SpmmKernel { info, baseline: false, planner: Planner::Host(plan) };
    let on_device: fn(_, OnDevice<T>) -> _ =
        |info, plan| SpmmKernel { info, baseline: false, planner: Planner::Device(plan) };
    vec![
        kernel(csr_thread_per_element::V1, csr_thread_per_element::plan_v1),
        kernel(csr_thread_per_element::V2, csr_thread_per_element::plan_v2),
        kernel(csr_thread_per_element::V3, csr_thread_per_element::plan_v3),
        kernel(csr_warp_per_element::INFO, csr_warp_per_element::plan),
        kernel(csr_subwarp_per_element::INFO, csr_subwarp_per_element::plan),
        kernel(csr_adaptive::INFO, csr_adaptive::plan),
        kernel(csr_warp_per_row::INFO, csr_warp_per_row::plan),
        kernel(csr_adaptive_subblocks::INFO, csr_adaptive_subblocks::plan),
        kernel(ell_thread_per_element::INFO, ell_thread_per_element::plan),
        kernel(ell_subwarp_per_element::INFO, ell_subwarp_per_element::plan),
        on_device(csr_row_split::INFO, csr_row_split::on_device),
        on_device(csr_nonzero_split::INFO, csr_nonzero_split::on_device),
        on_device(csr_vector::INFO, csr_vector::on_device),
        on_device(csr_segmented_sum::INFO, csr_segmented_sum::on_device),
        on_device(sell_row_split::INFO, sell_row_split::on_device),
        on_device(sell_thread_per_row::INFO, sell_thread_per_row::on_device),
        on_device(auto::INFO, auto::on_device),
        baseline(cusparse::spmm::CSR_ALG1, cusparse::spmm::csr_alg1),
        baseline(cusparse::spmm::CSR_ALG2, cusparse::spmm::csr_alg2),
        baseline(cusparse::spmm::CSR_ALG3, cusparse::spmm::csr_alg3),
    ]
}

/// The kernel with this id.
pub fn find<T: DeviceScalar>(id: &str) -> Option<SpmmKernel<T>> {
    registry().into_iter().find(|kernel| kernel.info.id == id)
}
