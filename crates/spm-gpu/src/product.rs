//! The common part of the plans of SpMV and SpMM: checks of the operands around a kernel's
//! launches.

use spm_formats::kernel::Footprint;
use spm_formats::{DenseShape, Layout};

use crate::device::Device;
use crate::error::GpuError;
use crate::matrix::DeviceMatrix;
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::{DeviceScalar, DeviceSpmmPlan, DeviceSpmvPlan};
use crate::stream::{LaunchOrder, Stream};

/// The dense shape of the vectors of y = A x.
pub(crate) const VECTOR: DenseShape = DenseShape { k: 1, layout: Layout::RowMajor };

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
    product: P,
    /// `None` for a product that writes only Y.
    order: Option<LaunchOrder>,
}

impl<P> Checked<P> {
    /// A plan with X and Y of this shape; [`VECTOR`] for y = A x.
    pub(crate) fn new(device: &Device, dense: DenseShape, product: P) -> Self {
        Self { device: device.clone(), dense, product, order: Some(LaunchOrder::default()) }
    }

    fn footprint<T: DeviceScalar>(&self) -> Footprint
    where
        P: Product<T>,
    {
        let ((rows, cols), memory) = (self.product.shape(), self.product.memory());
        Footprint {
            bytes_moved: memory.matrix + ((rows + cols) * self.dense.k * T::BYTES) as u64,
            plan_bytes: memory.matrix + memory.workspace,
            matrix_bytes: memory.matrix,
        }
    }

    fn launch<T: DeviceScalar>(
        &mut self,
        (x_name, x): (&'static str, &DeviceBuffer<T>),
        (y_name, y): (&'static str, &mut DeviceBuffer<T>),
        stream: &Stream,
    ) -> Result<(), GpuError>
    where
        P: Product<T>,
    {
        let (rows, cols) = self.product.shape();
        check_operand(x_name, &self.device, x, cols * self.dense.k)?;
        check_operand(y_name, &self.device, y, rows * self.dense.k)?;
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

impl<M, F> Checked<Launches<M, F>> {
    /// A product whose launches may run concurrently in several streams: a function without state
    /// that writes only Y.
    pub(crate) fn without_scratch<T>(
        device: &Device,
        dense: DenseShape,
        product: Launches<M, F>,
    ) -> Self
    where
        F: Fn(&M, &DeviceBuffer<T>, &mut DeviceBuffer<T>, &Stream) -> Result<(), GpuError>,
    {
        Self { device: device.clone(), dense, product, order: None }
    }
}

macro_rules! plan {
    ($plan:ident, $x:literal, $y:literal, $($dense:item)?) => {
        impl<T: DeviceScalar, P: Product<T>> $plan<T> for Checked<P> {
            fn device(&self) -> &Device {
                &self.device
            }

            fn shape(&self) -> (usize, usize) {
                self.product.shape()
            }

            $($dense)?

            fn footprint(&self) -> Footprint {
                self.footprint()
            }

            fn launch(
                &mut self,
                x: &DeviceBuffer<T>,
                y: &mut DeviceBuffer<T>,
                stream: &Stream,
            ) -> Result<(), GpuError> {
                self.launch(($x, x), ($y, y), stream)
            }
        }
    };
}

plan!(DeviceSpmvPlan, "x", "y",);
plan!(
    DeviceSpmmPlan,
    "X",
    "Y",
    fn dense(&self) -> DenseShape {
        self.dense
    }
);
