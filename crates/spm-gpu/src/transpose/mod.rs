//! Transposition on a GPU: CSR to CSC, with or without values.

mod auto;
mod buckets;
pub mod convert;
mod cut;
mod index;
mod merge_trans;
mod numbered;
mod parameters;
mod pieces;
pub mod primitives;
mod radix;
mod scan;
mod scan_trans;
mod sort;

use spm_formats::CsrView;
use spm_formats::kernel::{self, Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::num_complex::Complex;

use crate::device::Device;
use crate::error::GpuError;
use crate::launch::check_parameters;
use crate::matrix::{DeviceCsr, check_counts};
use crate::plan::{DeviceReal, DeviceScalar, HostTransposePlan, PlanOptions};
pub use crate::procedure::BoxedPlan;
use crate::procedure::Planned;
use crate::{budget, cusparse};

pub(crate) use buckets::Entries;
pub(crate) use convert::sorted_by_column;
pub(crate) use scan::Scan;

/// What the kernels of this module have in common.
const KERNEL: KernelInfo = KernelInfo::of(Operation::Transpose, Backend::Gpu);

type PlanFn<T> = fn(DeviceCsr<T>, &Parameters) -> Planned<T>;

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
    fn new(info: KernelInfo, plan: PlanFn<T>) -> Self {
        Self { info, baseline: false, plan }
    }

    fn baseline(info: KernelInfo, plan: PlanFn<T>) -> Self {
        Self { info, baseline: true, plan }
    }

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
        self.plan_copy(device, a, parameters, options, DeviceCsr::new)
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
        self.plan_copy(device, a, parameters, options, DeviceCsr::pattern)
    }

    fn plan_copy(
        &self,
        device: &Device,
        a: CsrView<'_, T>,
        parameters: &Parameters,
        options: &PlanOptions,
        copy: fn(&Device, CsrView<'_, T>) -> Result<DeviceCsr<T>, GpuError>,
    ) -> Result<BoxedPlan<T>, PlanError> {
        check_parameters(&self.info, parameters, device)?;
        check_counts(a.shape(), a.nnz())?;
        budget::within(self.info.id, &options.budget, a.memory_bytes(), || {
            (self.plan)(copy(device, a)?, parameters)
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

kernel::registry! {
    /// Every transposition for devices: those of the reports in their order, our own, the baselines.
    TransposeKernel<T: DeviceScalar>
    f32, f64: DeviceReal [
        TransposeKernel::new(scan_trans::INFO, scan_trans::plan),
        TransposeKernel::new(merge_trans::INFO, merge_trans::plan),
        TransposeKernel::new(radix::INFO, radix::plan),
        TransposeKernel::new(auto::INFO, auto::plan),
        TransposeKernel::baseline(cusparse::transpose::DEFAULT, cusparse::transpose::default),
        TransposeKernel::baseline(cusparse::transpose::ALG1, cusparse::transpose::alg1),
        TransposeKernel::baseline(cusparse::transpose::ALG2, cusparse::transpose::alg2),
    ]
    Complex<f32>, Complex<f64>: DeviceScalar [
        TransposeKernel::new(numbered::INFO, numbered::plan),
        TransposeKernel::baseline(cusparse::transpose::DEFAULT, cusparse::transpose::default),
        TransposeKernel::baseline(cusparse::transpose::ALG1, cusparse::transpose::alg1),
    ]
}
