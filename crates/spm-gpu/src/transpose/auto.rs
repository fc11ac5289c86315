//! `auto` for transposition: `radix` with parameters chosen for the matrix.

use spm_formats::kernel::{KernelInfo, Parameters};

use super::KERNEL;
use super::cut::Cut;
use super::radix::{Sorted, default_wish};
use crate::error::GpuError;
use crate::matrix::DeviceCsr;
use crate::plan::{DeviceCsc, DeviceReal};
use crate::procedure::{Planned, Procedure, boxed};
use crate::stream::Stream;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    source: "own",
    summary: "radix, with parameters from the column extents and the bucket sizes",
    parameters: &[],
    ..KERNEL
};

struct Auto<T>(Sorted<T>);

pub(super) fn plan<T: DeviceReal>(a: DeviceCsr<T>, _: &Parameters) -> Planned<T> {
    Ok(boxed(Auto(Sorted::fitted(INFO.id, a, &default_wish())?)))
}

impl<T: DeviceReal> Procedure<T> for Auto<T> {
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
        self.0.cut().map(label)
    }
}

/// What `radix` with these parameters is called.
pub(super) fn label(cut: &Cut) -> String {
    format!("radix[block={},width={}]", cut.block, cut.width)
}
