//! The common part of the plans of SpMV and SpMM: checks of the operands around a kernel's
//! launches.

use spm_formats::DenseShape;
use spm_formats::kernel::{Footprint, Operation};

use crate::device::Device;
use crate::error::GpuError;
use crate::matrix::DeviceMatrix;
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::{DeviceProductPlan, DeviceScalar};
use crate::stream::{LaunchOrder, Stream};

/// A kernel's product, without the checks of operands.
pub(crate) trait Product<T>: Send {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Device memory.
    fn memory(&self) -> Memory;

    /// Enqueues Y = A X in the stream. The buffers have been checked: they have the lengths of the
    /// shapes, Y is not empty, and everything is on one device. Nothing else uses the memory of
    /// `self` until this is done, also if the last call was in another stream.
    fn enqueue(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError>;
}

/// Memory sizes of a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// The arrays that a product reads of the matrix.
    pub(crate) matrix: u64,
    /// Further bytes that a product reads or writes.
    pub(crate) workspace: u64,
}

/// A product made of a matrix on the device, the size of its workspace, and its launches.
pub(crate) struct Launches<M, F> {
    pub(crate) matrix: M,
    pub(crate) workspace: u64,
    pub(crate) enqueue: F,
}

impl<T, M, F> Product<T> for Launches<M, F>
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

/// The product with a matrix of (rows, columns) without entries.
pub(crate) struct Zero(pub(crate) usize, pub(crate) usize);

impl<T: DeviceScalar> Product<T> for Zero {
    fn shape(&self) -> (usize, usize) {
        (self.0, self.1)
    }

    fn memory(&self) -> Memory {
        Memory { matrix: 0, workspace: 0 }
    }

    fn enqueue(
        &mut self,
        _: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        y.enqueue_zero(stream)
    }
}

/// A product with the checks of operands, which makes it a plan.
pub(crate) struct Checked<P> {
    device: Device,
    dense: DenseShape,
    /// What errors call the operands.
    names: [&'static str; 2],
    product: P,
    /// `None` for a product that writes only Y.
    order: Option<LaunchOrder>,
}

impl<P> Checked<P> {
    pub(crate) fn new(
        operation: Operation,
        device: &Device,
        dense: DenseShape,
        product: P,
    ) -> Self {
        let names = match operation {
            Operation::Spmv => ["x", "y"],
            _ => ["X", "Y"],
        };
        let (device, order) = (device.clone(), Some(LaunchOrder::default()));
        Self { device, dense, names, product, order }
    }
}

impl<M, F> Checked<Launches<M, F>> {
    /// The same for launches that may run concurrently in several streams: of a function without
    /// state that writes only Y.
    pub(crate) fn without_scratch<T>(self) -> Self
    where
        F: Fn(&M, &DeviceBuffer<T>, &mut DeviceBuffer<T>, &Stream) -> Result<(), GpuError>,
    {
        Self { order: None, ..self }
    }
}

impl<T: DeviceScalar, P: Product<T>> DeviceProductPlan<T> for Checked<P> {
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
        let ((rows, cols), k) = (self.product.shape(), self.dense.k);
        check_operand(self.names[0], &self.device, x, cols * k)?;
        check_operand(self.names[1], &self.device, y, rows * k)?;
        stream.check_device(&self.device)?;
        if y.is_empty() {
            return Ok(());
        }
        if let Some(order) = &mut self.order {
            order.enter(stream)?;
        }
        self.product.enqueue(x, y, stream)
    }
}
