//! Entries of the registries of SpMV and SpMM.

use std::marker::PhantomData;
use std::sync::Arc;

use spm_formats::kernel::{KernelInfo, Parameters, PlanError};
use spm_formats::{CsrView, DenseShape};

use crate::budget;
use crate::convert::Survey;
use crate::device::Device;
use crate::launch::check_parameters;
use crate::matrix::{DeviceCsr, check_counts};
use crate::plan::{BoxedPlan, DeviceScalar, HostProductPlan, PlanOptions};
use crate::problem::{DeviceProblem, HostProblem, Planned, Problem};
use crate::source::{Look, Source};

/// Whether a kernel is planned on the host or on the device.
#[derive(Debug, Clone, Copy)]
enum Planner<T> {
    Host(fn(HostProblem<'_, T>) -> Planned<T>),
    Device(Look<T>, fn(DeviceProblem<'_, T>) -> Planned<T>),
}

/// One entry of a registry; `O` is [`Spmv`] or [`Spmm`].
#[derive(Debug, Clone, Copy)]
pub struct ProductKernel<T, O> {
    /// Id, source and parameters.
    pub info: KernelInfo,
    /// Whether this is a vendor kernel used as a baseline. It is unavailable without its library.
    pub baseline: bool,
    planner: Planner<T>,
    operation: PhantomData<O>,
}

/// y = A x.
#[derive(Debug, Clone, Copy)]
pub enum Spmv {}

/// Y = A X.
#[derive(Debug, Clone, Copy)]
pub enum Spmm {}

impl<T: DeviceScalar, O> ProductKernel<T, O> {
    fn new(info: KernelInfo, baseline: bool, planner: Planner<T>) -> Self {
        Self { info, baseline, planner, operation: PhantomData }
    }

    /// A kernel that is planned on the host.
    pub(crate) fn host(info: KernelInfo, plan: fn(HostProblem<'_, T>) -> Planned<T>) -> Self {
        Self::new(info, false, Planner::Host(plan))
    }

    /// A kernel that is planned on the device.
    pub(crate) fn device(info: KernelInfo, plan: fn(DeviceProblem<'_, T>) -> Planned<T>) -> Self {
        Self::surveyed(info, |a, _| Survey::of_rows(a), plan)
    }

    /// The same; `look` is what is looked at in the matrix before it is planned.
    pub(crate) fn surveyed(
        info: KernelInfo,
        look: Look<T>,
        plan: fn(DeviceProblem<'_, T>) -> Planned<T>,
    ) -> Self {
        Self::new(info, false, Planner::Device(look, plan))
    }

    /// A vendor kernel.
    pub(crate) fn baseline(info: KernelInfo, plan: fn(HostProblem<'_, T>) -> Planned<T>) -> Self {
        Self::new(info, true, Planner::Host(plan))
    }

    fn plan_from_host(
        &self,
        device: &Device,
        a: CsrView<'_, T>,
        dense: DenseShape,
        parameters: &Parameters,
        &PlanOptions { ref budget, new_values }: &PlanOptions,
    ) -> Planned<T> {
        let info = &self.info;
        check_parameters(info, parameters, device)?;
        dense.check::<T>(a.shape())?;
        check_counts(a.shape(), a.nnz())?;
        budget::within(info.id, budget, a.memory_bytes(), || match self.planner {
            Planner::Host(plan) => {
                plan(Problem { info, device, a, dense, parameters, budget, new_values })
            }
            Planner::Device(look, plan) => {
                let a = &Source::upload(device, a, new_values, look)?;
                plan(Problem { info, device, a, dense, parameters, budget, new_values })
            }
        })
    }

    fn plan_from_device(
        &self,
        a: &Arc<DeviceCsr<T>>,
        dense: DenseShape,
        parameters: &Parameters,
        &PlanOptions { ref budget, new_values }: &PlanOptions,
    ) -> Option<Planned<T>> {
        let Planner::Device(look, plan) = self.planner else { return None };
        let info = &self.info;
        Some(budget::within(info.id, budget, 0, || {
            check_parameters(info, parameters, a.device())?;
            dense.check::<T>((a.rows(), a.cols()))?;
            let (a, device) = (&Source::shared(Arc::clone(a), new_values, look)?, a.device());
            plan(Problem { info, device, a, dense, parameters, budget, new_values })
        }))
    }
}

/// The public functions, which differ by the argument for the dense shape.
macro_rules! plans {
    ($operation:ident, $shape:expr $(, $dense:ident: $type:ty)?) => {
        impl<T: DeviceScalar> ProductKernel<T, $operation> {
            /// Plans the product with one matrix: converts the matrix and copies it to the device.
            ///
            /// # Errors
            /// A matrix that is not CSR or not valid, padding beyond the budget, a dense shape or
            /// parameters that the kernel, this matrix or this device does not allow, too little
            /// device memory, an absent library. For 0 columns the plan does nothing.
            pub fn plan(
                &self,
                device: &Device,
                a: CsrView<'_, T>,
                $($dense: $type,)?
                parameters: &Parameters,
                options: &PlanOptions,
            ) -> Result<BoxedPlan<T>, PlanError> {
                self.plan_from_host(device, a, $shape, parameters, options)
            }

            /// Plans the product with a matrix in device memory; `None` for a kernel that is planned
            /// on the host only. The row pointers may be copied to the host, to split long rows.
            ///
            /// # Errors
            /// As [`ProductKernel::plan`].
            pub fn plan_on_device(
                &self,
                a: &Arc<DeviceCsr<T>>,
                $($dense: $type,)?
                parameters: &Parameters,
                options: &PlanOptions,
            ) -> Option<Result<BoxedPlan<T>, PlanError>> {
                self.plan_from_device(a, $shape, parameters, options)
            }

            /// The same as [`ProductKernel::plan`] for X and Y in host memory.
            ///
            /// # Errors
            /// As [`ProductKernel::plan`].
            pub fn plan_on_host(
                &self,
                device: &Device,
                a: CsrView<'_, T>,
                $($dense: $type,)?
                parameters: &Parameters,
                options: &PlanOptions,
            ) -> Result<HostProductPlan<T>, PlanError> {
                let plan = self.plan_from_host(device, a, $shape, parameters, options)?;
                Ok(HostProductPlan::new(plan)?)
            }
        }
    };
}

plans!(Spmv, DenseShape::VECTOR);
plans!(Spmm, dense, dense: DenseShape);
