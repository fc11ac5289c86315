//! What the plans of this module have in common.

use spm_formats::DenseShape;
use spm_formats::kernel::Footprint;

use super::BoxedPlan;
use crate::device::Device;
use crate::error::GpuError;
use crate::matrix::DeviceMatrix;
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::{DeviceScalar, DeviceSpmmPlan};
use crate::stream::Stream;

/// A prepared product, without the checks and the bookkeeping that are the same for each.
pub(crate) trait Product<T>: Send {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Device memory.
    fn memory(&self) -> Memory;

    /// Puts Y = A X into the stream; A has rows, columns and entries, the buffers have the lengths
    /// of its shape, everything is on one device.
    fn enqueue(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError>;
}

/// Where the bytes of a plan are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// The arrays that a product reads of the matrix.
    pub(crate) matrix: u64,
    /// What a product reads or writes besides.
    pub(crate) workspace: u64,
}

struct Kernel<M, F> {
    matrix: M,
    workspace: u64,
    enqueue: F,
}

impl<T, M, F> Product<T> for Kernel<M, F>
where
    M: DeviceMatrix,
    F: FnMut(&M, &DeviceBuffer<T>, &mut DeviceBuffer<T>, &Stream) -> Result<(), GpuError> + Send,
{
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn memory(&self) -> Memory {
        let workspace = self.workspace + self.matrix.rarely_read_bytes();
        Memory { matrix: self.matrix.bytes(), workspace }
    }

    fn enqueue(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        (self.enqueue)(&self.matrix, x, y, stream)
    }
}

/// A plan that is a matrix on the device, `workspace` bytes beside it, and launches. `enqueue` is
/// called with X and Y of the lengths of the shapes, Y not empty, everything on one device.
pub(crate) fn product<T, M, F>(
    device: &Device,
    dense: DenseShape,
    matrix: M,
    workspace: u64,
    enqueue: F,
) -> BoxedPlan<T>
where
    T: DeviceScalar,
    M: DeviceMatrix,
    F: FnMut(&M, &DeviceBuffer<T>, &mut DeviceBuffer<T>, &Stream) -> Result<(), GpuError>
        + Send
        + 'static,
{
    boxed(device, dense, Kernel { matrix, workspace, enqueue })
}

struct Checked<P> {
    device: Device,
    dense: DenseShape,
    product: P,
}

/// Makes a product a plan.
pub(crate) fn boxed<T: DeviceScalar>(
    device: &Device,
    dense: DenseShape,
    product: impl Product<T> + 'static,
) -> BoxedPlan<T> {
    Box::new(Checked { device: device.clone(), dense, product })
}

impl<T: DeviceScalar, P: Product<T>> DeviceSpmmPlan<T> for Checked<P> {
    fn device(&self) -> &Device {
        &self.device
    }

    fn shape(&self) -> (usize, usize) {
        self.product.shape()
    }

    fn dense(&self) -> DenseShape {
        self.dense
    }

    fn footprint(&self) -> Footprint {
        let ((rows, cols), memory) = (self.product.shape(), self.product.memory());
        Footprint {
            bytes_moved: memory.matrix + ((rows + cols) * self.dense.k * T::BYTES) as u64,
            plan_bytes: memory.matrix + memory.workspace,
            matrix_bytes: memory.matrix,
        }
    }

    fn launch(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let (rows, cols) = self.product.shape();
        check_operand("X", &self.device, x, cols * self.dense.k)?;
        check_operand("Y", &self.device, y, rows * self.dense.k)?;
        stream.check_device(&self.device)?;
        if y.is_empty() {
            return Ok(());
        }
        self.product.enqueue(x, y, stream)
    }
}
