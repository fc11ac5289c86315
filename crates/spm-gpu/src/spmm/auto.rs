//! The kernel that a user gets without choosing.

use spm_formats::kernel::{Backend, Footprint, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrView, DenseShape};

use super::{BoxedPlan, csr_column_lanes};
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, DeviceSpmmPlan, DeviceSpmvPlan, PlanOptions};
use crate::spmv;
use crate::stream::Stream;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "own",
    summary: "SpMV's choice for one column, csr-column-lanes with a shape after k, layout and row lengths for more",
    parameters: &[],
};

/// Y = A X with one column, in either layout, is y = A x.
struct OneColumn<T> {
    dense: DenseShape,
    plan: Box<dyn DeviceSpmvPlan<T>>,
    choice: String,
}

struct ManyColumns<T> {
    plan: BoxedPlan<T>,
    choice: String,
}

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: &CsrView<'_, T>,
    dense: DenseShape,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    if dense.k == 1 {
        let kernel = spmv::find::<T>("auto").or_else(|| spmv::find("csr-subwarp-per-row"));
        if let Some(kernel) = kernel {
            let plan = kernel.plan(device, a, &kernel.info.defaults(), options)?;
            let label = kernel.info.label(&kernel.info.defaults());
            let choice = format!("spmv {}", plan.choice().unwrap_or(label));
            return Ok(Box::new(OneColumn { dense, plan, choice }));
        }
    }
    let parameters = csr_column_lanes::INFO.defaults();
    let plan = csr_column_lanes::plan(device, a, dense, &parameters, options)?;
    let choice = csr_column_lanes::INFO.label(&parameters);
    Ok(Box::new(ManyColumns { plan, choice }))
}

impl<T: DeviceScalar> DeviceSpmmPlan<T> for OneColumn<T> {
    fn device(&self) -> &Device {
        self.plan.device()
    }

    fn shape(&self) -> (usize, usize) {
        self.plan.shape()
    }

    fn dense(&self) -> DenseShape {
        self.dense
    }

    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn launch(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.plan.launch(x, y, stream)
    }

    fn choice(&self) -> Option<String> {
        Some(self.choice.clone())
    }
}

impl<T: DeviceScalar> DeviceSpmmPlan<T> for ManyColumns<T> {
    fn device(&self) -> &Device {
        self.plan.device()
    }

    fn shape(&self) -> (usize, usize) {
        self.plan.shape()
    }

    fn dense(&self) -> DenseShape {
        self.plan.dense()
    }

    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn launch(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.plan.launch(x, y, stream)
    }

    fn choice(&self) -> Option<String> {
        Some(self.choice.clone())
    }
}
