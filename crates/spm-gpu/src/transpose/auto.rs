//! The transposition that a user gets without choosing.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};

use super::column_buckets::{Sorted, default_wish};
use super::cut::Wish;
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
    summary: "column-buckets, cut after the extent of the columns and the entries of the buckets",
    parameters: &[],
};

/// Buckets of a chunk up to which blocks of 256 threads were fastest, and from which on those of
/// 1024 (docs/tries-gpu-transpose.md).
const FEW_DIGITS: usize = 256;
const MANY_DIGITS: usize = 1024;

struct Auto<T>(Sorted<T>);

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: DeviceCsr<T>,
    _: &Parameters,
) -> Result<BoxedPlan<T>, PlanError> {
    let wish = default_wish();
    let sorted = Sorted::new(INFO.id, device, a, &wish)?;
    // Small blocks overlap best. A tile that goes to many buckets has to be long, for what it writes
    // to one of them to fill whole sectors.
    let block = match sorted.cut() {
        Some(cut) if cut.digits <= FEW_DIGITS => 256,
        Some(cut) if cut.digits > MANY_DIGITS => 1024,
        _ => wish.block,
    };
    Ok(boxed(Auto(match block == wish.block {
        true => sorted,
        false => sorted.recut(INFO.id, device, &Wish { block, ..wish })?,
    })))
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
        Some(format!("column-buckets[block={},width={}]", cut.block, 1 << cut.shift))
    }
}
