//! Transposition on a GPU: CSR to CSC, with or without values.

mod auto;
mod buckets;
pub mod convert;
mod cut;
mod index;
mod merge_trans;
mod parameters;
mod pieces;
mod plan;
pub mod primitives;
mod radix;
mod scan;
mod scan_trans;
mod sort;

use std::any::Any;

use spm_formats::CsrView;
use spm_formats::kernel::{KernelInfo, Parameters, PlanError, registry_of};

use crate::device::Device;
use crate::matrix::{DeviceCsr, check_counts};
use crate::plan::{DeviceScalar, DeviceTransposePlan, HostTransposePlan, PlanOptions};
use crate::{budget, cusparse};

pub(crate) use buckets::Entries;
pub(crate) use convert::sorted_by_column;
pub(crate) use plan::{Procedure, boxed};
pub(crate) use scan::Scan;

/// A boxed plan.
pub type BoxedPlan<T> = Box<dyn DeviceTransposePlan<T>>;

type PlanFn<T> = fn(&Device, DeviceCsr<T>, &Parameters) -> Result<BoxedPlan<T>, PlanError>;

/// One entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct TransposeKernel<T> {
    /// Id, source and parameters.
    pub info: KernelInfo,
    /// Whether this is a vendor kernel used as a baseline. It is unavailable without its library.
    pub baseline: bool,
    plan: PlanFn<T>,
}

impl<T: DeviceScalar> TransposeKernel<T> {
    /// Plans the transposition of one matrix: copies it to the device and allocates the workspace.
    ///
    /// # Errors
    /// A matrix that is not CSR or not sound, a workspace beyond the budget, parameters that make no
    /// sense for this matrix or this device, too little device memory, an absent library.
    pub fn plan(
        &self,
        device: &Device,
        a: CsrView<'_, T>,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<BoxedPlan<T>, PlanError> {
        self.info.check_parameters(parameters)?;
        check_counts(a.shape(), a.nnz())?;
        budget::within(self.info.id, &options.budget, a.memory_bytes(), || {
            (self.plan)(device, DeviceCsr::new(device, a)?, parameters)
        })
    }

    /// Plans the transposition of the pattern alone: no values are copied, kept or moved, and those
    /// of the output must have no elements ([`crate::DeviceCsc::pattern`]).
    ///
    /// # Errors
    /// As [`TransposeKernel::plan`].
    pub fn plan_pattern(
        &self,
        device: &Device,
        a: CsrView<'_, T>,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<BoxedPlan<T>, PlanError> {
        self.info.check_parameters(parameters)?;
        check_counts(a.shape(), a.nnz())?;
        budget::within(self.info.id, &options.budget, a.memory_bytes(), || {
            (self.plan)(device, DeviceCsr::pattern(device, a)?, parameters)
        })
    }

    /// The same for a result in host memory.
    ///
    /// # Errors
    /// As [`TransposeKernel::plan`].
    pub fn plan_on_host(
        &self,
        device: &Device,
        a: CsrView<'_, T>,
        parameters: &Parameters,
        options: &PlanOptions,
    ) -> Result<HostTransposePlan<T>, PlanError> {
        Ok(HostTransposePlan::new(self.plan(device, a, parameters, options)?)?)
    }
}

/// Every transposition for devices: those of the reports in their order, our own, the baselines.
pub fn registry<T: DeviceScalar>() -> Vec<TransposeKernel<T>> {
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

fn kernels<T: DeviceScalar>() -> Vec<TransposeKernel<T>> {
    let baseline: fn(_, PlanFn<T>) -> _ =
        |info, plan| TransposeKernel { info, baseline: true, plan };
    let kernel: fn(_, PlanFn<T>) -> _ =
        |info, plan| TransposeKernel { info, baseline: false, plan };
    vec![
        kernel(scan_trans::INFO, scan_trans::plan),
        kernel(merge_trans::INFO, merge_trans::plan),
        kernel(radix::INFO, radix::plan),
        kernel(auto::INFO, auto::plan),
        baseline(cusparse::transpose::DEFAULT, cusparse::transpose::default),
        baseline(cusparse::transpose::ALG1, cusparse::transpose::alg1),
        baseline(cusparse::transpose::ALG2, cusparse::transpose::alg2),
    ]
}

/// The kernel with this id.
pub fn find<T: DeviceScalar>(id: &str) -> Option<TransposeKernel<T>> {
    registry().into_iter().find(|kernel| kernel.info.id == id)
}
