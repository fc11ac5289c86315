//! `auto` for transposition: `radix` with parameters chosen for the matrix.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};

use super::radix::{Sorted, default_wish};
use super::{BoxedPlan, Procedure, boxed};
use crate::device::Device;
use crate::error::GpuError;
use crate::matrix::DeviceCsr;
use crate::plan::{DeviceCsc, DeviceScalar};
use crate::stream::Stream;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    operation: Operation::Transpose,
    backend: Backend::Gpu,
    source: "own",
    summary: "radix, with parameters from the column extents and the bucket sizes",
    parameters: &[],
};

struct Auto<T>(Sorted<T>);

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: DeviceCsr<T>,
    _: &Parameters,
) -> Result<BoxedPlan<T>, PlanError> {
    Ok(boxed(Auto(Sorted::fitted(INFO.id, device, a, &default_wish())?)))
}

impl<T: DeviceScalar> Procedure<T> for Auto<T> {
    fn matrix(&self) -> &DeviceCsr<T> {
        self.0.matrix()
    }

    fn workspace_bytes(&self) -> u64 {
        self.0.workspace_bytes()
    }

    fn enqueue(&mut self, output: &mut DeviceCsc<T>, stream: &Stream) -> Result<(), GpuError> {
        self.0.enqueue(output, stream)
    }

    fn choice(&self) -> Option<String> {
        let cut = self.0.cut()?;
        Some(format!("radix[block={},width={}]", cut.block, cut.width))
    }
}
