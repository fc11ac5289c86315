//! SpMV on CPU cores: y = A x.
//!
//! # Reproducibility
//! Every kernel of our own adds in an order that does not depend on when its blocks and warps run:
//! plans with the same parameters give the same bits on one device, each time. Only `auto` may
//! choose another kernel; the baselines have the guarantees of cuSPARSE.

mod auto;
mod csr_adaptive;
mod csr_column_blocks;
mod csr_compact;
mod csr_ell_columns;
mod csr_merge;
mod csr_segmented_sum;
mod csr_subwarp_per_row;
mod csr_thread_per_row;
mod csr_thread_per_row_texture;
mod csr_warp_per_row;
mod csr_warp_per_row_shared;
mod dia_thread_per_row;
mod ell_thread_per_row;
mod ell_thread_per_row_rowmajor;
mod ell_warp_per_row;
mod hll_thread_per_row;
mod hll_thread_per_row_texture;
mod on_device;
mod parameters;
mod plan;
mod sell;
mod sell_compact;
mod sellp;

use std::any::Any;
use std::sync::Arc;

use spm_formats::kernel::{KernelInfo, Parameters, PlanError, registry_of};
use spm_formats::{CsrView, MemoryBudget};

use crate::device::Device;
use crate::matrix::{DeviceCsr, check_counts};
use crate::plan::{DeviceScalar, DeviceSpmvPlan, HostSpmvPlan, PlanOptions};
use crate::{budget, cusparse};

pub(crate) use csr_segmented_sum::{ENTRIES as SEGMENT_ENTRIES, entries as segment_entries};
pub(crate) use hll_thread_per_row::plan as hll_plan;
use on_device::OnDevice;
pub(crate) use on_device::Source;
pub(crate) use parameters::row_lanes;
pub(crate) use plan::boxed;
use plan::{product, product_with_scratch};
pub(crate) use sell::plan as sell_plan;

/// A boxed plan.
pub type BoxedPlan<T> = Box<dyn DeviceSpmvPlan<T>>;

type PlanFn<T> =
    fn(&Device, CsrView<'_, T>, &Parameters, &PlanOptions) -> Result<BoxedPlan<T>, PlanError>;

/// One entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct SpmvKernel<T> {
    /// Id, source and parameters.
    pub info: KernelInfo,
    /// Whether this is a vendor kernel used as a baseline. It is unavailable without its library.
    pub baseline: bool,
    planner: Planner<T>,
}

/// Whether a kernel is planned on the host or on the device.
#[derive(Debug, Clone, Copy)]
enum Planner<T> {
    Host(PlanFn<T>),
    Device(OnDevice<T>),
}

impl<T: DeviceScalar> SpmvKernel<T> {
    /// Plans y = A x for one matrix: converts and copies it to the device.
    ///
    /// # Errors
    /// A matrix that is not CSR or not valid, padding beyond the budget, parameters that this
    /// matrix or this device does not allow, too little device memory, an absent library.
    pub fn plan(
        &self,
        device: &Device,
        a: CsrView<'_, T>,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<BoxedPlan<T>, PlanError> {
        self.info.check_parameters(parameters)?;
        check_counts(a.shape(), a.nnz())?;
        budget::within(self.info.id, &options.budget, a.memory_bytes(), || match self.planner {
            Planner::Host(plan) => plan(device, a, parameters, options),
            Planner::Device(plan) => plan(&Source::upload(device, a)?, parameters, &options.budget),
        })
    }

    /// The same for a matrix on the device whose statistics are known; only for a kernel that is
    /// planned on the device.
    pub(crate) fn plan_source(
        &self,
        a: &Source<T>,
        parameters: &Parameters,
        budget: &MemoryBudget,
    ) -> Option<Result<BoxedPlan<T>, PlanError>> {
        let Planner::Device(plan) = self.planner else { return None };
        Some(plan(a, parameters, budget))
    }

    /// Plans y = A x for a matrix in device memory; `None` for a kernel that is planned on the host
    /// only.
    ///
    /// # Errors
    /// As [`SpmvKernel::plan`].
    pub fn plan_on_device(
        &self,
        a: &Arc<DeviceCsr<T>>,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Option<Result<BoxedPlan<T>, PlanError>> {
        let Planner::Device(plan) = self.planner else { return None };
        let budget = &options.budget;
        Some(budget::within(self.info.id, budget, 0, || {
            self.info.check_parameters(parameters)?;
            plan(&Source::new(Arc::clone(a))?, parameters, budget)
        }))
    }

    /// The same for x and y in host memory.
    ///
    /// # Errors
    /// As [`SpmvKernel::plan`].
    pub fn plan_on_host(
        &self,
        device: &Device,
        a: CsrView<'_, T>,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<HostSpmvPlan<T>, PlanError> {
        Ok(HostSpmvPlan::new(self.plan(device, a, parameters, options)?)?)
    }
}

/// Every SpMV kernel for devices: those of the reports in their order, our own, the baselines.
pub fn registry<T: DeviceScalar>() -> Vec<SpmvKernel<T>> {
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

fn kernels<T: DeviceScalar>() -> Vec<SpmvKernel<T>> {
    let baseline: fn(_, PlanFn<T>) -> _ =
        |info, plan| SpmvKernel { info, baseline: true, planner: Planner::Host(plan) };
    let kernel: fn(_, PlanFn<T>) -> _ =
        |info, plan| SpmvKernel { info, baseline: false, planner: Planner::Host(plan) };
    let on_device: fn(_, OnDevice<T>) -> _ =
        |info, plan| SpmvKernel { info, baseline: false, planner: Planner::Device(plan) };
    vec![
        kernel(csr_warp_per_row_shared::INFO, csr_warp_per_row_shared::plan),
        kernel(csr_warp_per_row::INFO, csr_warp_per_row::plan),
        kernel(csr_thread_per_row::INFO, csr_thread_per_row::plan),
        kernel(csr_thread_per_row_texture::INFO, csr_thread_per_row_texture::plan),
        kernel(ell_thread_per_row::INFO, ell_thread_per_row::plan),
        kernel(ell_thread_per_row_rowmajor::INFO, ell_thread_per_row_rowmajor::plan),
        kernel(ell_warp_per_row::INFO, ell_warp_per_row::plan),
        kernel(hll_thread_per_row_texture::INFO, hll_thread_per_row_texture::plan),
        on_device(hll_thread_per_row::INFO, hll_thread_per_row::on_device),
        on_device(csr_subwarp_per_row::INFO, csr_subwarp_per_row::on_device),
        kernel(csr_adaptive::INFO, csr_adaptive::plan),
        kernel(csr_merge::INFO, csr_merge::plan),
        kernel(csr_compact::INFO, csr_compact::plan),
        on_device(sell::INFO, sell::on_device),
        kernel(sell_compact::INFO, sell_compact::plan),
        on_device(sellp::INFO, sellp::on_device),
        on_device(csr_segmented_sum::INFO, csr_segmented_sum::on_device),
        on_device(csr_column_blocks::INFO, csr_column_blocks::on_device),
        on_device(csr_ell_columns::INFO, csr_ell_columns::on_device),
        on_device(dia_thread_per_row::INFO, dia_thread_per_row::on_device),
        on_device(auto::INFO, auto::on_device),
        baseline(cusparse::spmv::CSR_ALG1, cusparse::spmv::csr_alg1),
        baseline(cusparse::spmv::CSR_ALG2, cusparse::spmv::csr_alg2),
        baseline(cusparse::spmv::SELL, cusparse::spmv::sell),
    ]
}

/// The kernel with this id.
pub fn find<T: DeviceScalar>(id: &str) -> Option<SpmvKernel<T>> {
    registry().into_iter().find(|kernel| kernel.info.id == id)
}
