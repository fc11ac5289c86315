//! The common part of the plans of SpMV and SpMM: checks of the operands around a kernel's
//! launches.

use spm_formats::kernel::{Footprint, Operation, Scaling};
use spm_formats::{DenseShape, Scalar};
use spm_gpu_kernels::device::{DevicePtrMut, Output};
use spm_gpu_kernels::scale::Scale;

use crate::convert::NEW_VALUES;
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::stride_over;
use crate::matrix::DeviceMatrix;
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::{DeviceProductPlan, DeviceScalar};
use crate::stream::{LaunchOrder, Stream};

/// A kernel's product, without the checks of operands.
pub(crate) trait Product<T: DeviceScalar>: Send {
    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// X, Y and Z begin at a multiple of so many bytes; of as many as an access has at most, unless the
    /// kernels are known to take less.
    fn alignment(&self) -> usize {
        16
    }

    /// Device memory.
    fn memory(&self) -> Memory;

    /// Enqueues Y = alpha A X + beta Z in the stream, with an alpha that is not 0. The buffers have been
    /// checked: they have the lengths of the shapes, Y is not empty, and everything is on one device.
    /// Nothing else uses the memory of `self` until this is done, also if the last call was in another
    /// stream.
    fn enqueue(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut Target<'_, T>,
        stream: &Stream,
    ) -> Result<(), GpuError>;

    /// Enqueues the copy of new values, in CSR order, on the same device. As for
    /// [`Product::enqueue`] nothing else uses the memory of `self`. After an error it has its old values.
    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        let _ = (values, stream);
        Err(NO_ORDER)
    }
}

/// The refusal of new values by a plan that is not made for them.
pub(crate) const NO_ORDER: GpuError = GpuError::Values("the plan does not keep their order");

/// Y of a product, and what becomes of it: Y = alpha A X + beta Z, where Z is Y unless there is another.
pub(crate) struct Target<'a, T> {
    scaling: Scaling<T>,
    /// As many elements as in Y.
    z: Option<&'a DeviceBuffer<T>>,
    y: &'a mut DeviceBuffer<T>,
}

impl<'a, T: DeviceScalar> Target<'a, T> {
    /// Y = alpha A X + beta Y.
    pub(crate) fn new(scaling: Scaling<T>, y: &'a mut DeviceBuffer<T>) -> Self {
        Self { scaling, z: None, y }
    }

    /// The same for a shorter time.
    pub(crate) fn reborrow(&mut self) -> Target<'_, T> {
        Target { scaling: self.scaling, z: self.z, y: self.y }
    }

    /// The argument of a kernel.
    pub(crate) fn output(&mut self) -> Output<T> {
        let Scaling { alpha, beta } = self.scaling;
        let y = self.y.ptr_mut();
        // SAFETY: the array that a launch gets has the length of Y, which the plan checks, and lives as
        // long as Y must; kernels only read it.
        let other = |z: &DeviceBuffer<T>| unsafe { DevicePtrMut::from_raw(z.address()) };
        Output { alpha, beta, z: self.z.map_or(y, other), y }
    }

    /// Y as the argument of a kernel without alpha and beta, if they are 1 and 0.
    pub(crate) fn plain(&mut self) -> Option<DevicePtrMut<T>> {
        let is_plain = self.scaling.alpha == <T as Scalar>::ONE;
        self.overwritten().filter(|_| is_plain).map(|y| y.ptr_mut())
    }

    /// alpha and beta.
    pub(crate) fn scaling(&self) -> Scaling<T> {
        self.scaling
    }

    /// Z, where it is added to the product: beta is not 0.
    fn addend(&self) -> Option<&DeviceBuffer<T>> {
        (self.scaling.beta != <T as Scalar>::ZERO).then(|| self.z.unwrap_or(self.y))
    }

    /// Y itself, where nothing is added: beta is 0.
    pub(crate) fn overwritten(&mut self) -> Option<&mut DeviceBuffer<T>> {
        (self.scaling.beta == <T as Scalar>::ZERO).then_some(&mut *self.y)
    }

    /// Y, with what is added in it: enqueues the copy of Z where Z is another array.
    pub(crate) fn in_place(&mut self, stream: &Stream) -> Result<&mut DeviceBuffer<T>, GpuError> {
        if let Some(z) = self.z.take()
            && self.scaling.beta != <T as Scalar>::ZERO
        {
            self.y.copy_from_on(z, stream)?;
        }
        Ok(self.y)
    }

    /// Enqueues Y = beta Z in the stream.
    pub(crate) fn enqueue_scale(&mut self, stream: &Stream) -> Result<(), GpuError> {
        if let Some(y) = self.overwritten() {
            return y.enqueue_zero(stream);
        }
        if self.z.is_none() && self.scaling.beta == <T as Scalar>::ONE {
            return Ok(());
        }
        let elements = self.y.len();
        let args = Scale { elements: elements as u64, y: self.output() };
        // SAFETY: Y and Z have that many elements.
        unsafe { stream.device().launch::<Scale<T>>(stride_over(elements), stream, args) }
    }
}

/// Bytes of X and Y of a product with a matrix of (rows, columns).
pub(crate) fn operand_bytes<T>((rows, cols): (usize, usize), dense: DenseShape) -> u64 {
    ((rows + cols) * dense.k * size_of::<T>()) as u64
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
    /// See [`Product::alignment`].
    pub(crate) alignment: usize,
    pub(crate) enqueue: F,
}

impl<T, M, F> Product<T> for Launches<M, F>
where
    T: DeviceScalar,
    M: DeviceMatrix<Value = T>,
    F: FnMut(&M, &DeviceBuffer<T>, &mut Target<'_, T>, &Stream) -> Result<(), GpuError> + Send,
{
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn memory(&self) -> Memory {
        let workspace = self.workspace + self.matrix.rarely_read_bytes();
        Memory { matrix: self.matrix.bytes(), workspace }
    }

    fn enqueue(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut Target<'_, T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        (self.enqueue)(&self.matrix, x, y, stream)
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        self.matrix.set_values(values, stream)
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
        y: &mut Target<'_, T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        y.enqueue_scale(stream)
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        check_operand(NEW_VALUES, stream.device(), values, 0)
    }
}

/// A product with the checks of operands, which makes it a plan.
pub(crate) struct Checked<T, P> {
    device: Device,
    dense: DenseShape,
    /// What errors call the operands.
    names: [&'static str; 3],
    product: P,
    /// `None` for a product that writes only Y.
    order: Option<LaunchOrder>,
    /// Of an X and a Y that are not aligned for the product, made when they are first needed.
    aligned: [Option<DeviceBuffer<T>>; 2],
}

impl<T: DeviceScalar, P> Checked<T, P> {
    pub(crate) fn new(
        operation: Operation,
        device: &Device,
        dense: DenseShape,
        product: P,
    ) -> Self {
        let names = match operation {
            Operation::Spmv => ["x", "y", "z"],
            _ => ["X", "Y", "Z"],
        };
        let (device, order) = (device.clone(), Some(LaunchOrder::default()));
        Self { device, dense, names, product, order, aligned: [None, None] }
    }
}

impl<T, M, F> Checked<T, Launches<M, F>> {
    /// The same for launches that may run concurrently in several streams: of a function without
    /// state that writes only Y, and that loads and stores single elements of the operands.
    pub(crate) fn without_scratch(self) -> Self
    where
        F: Fn(&M, &DeviceBuffer<T>, &mut Target<'_, T>, &Stream) -> Result<(), GpuError>,
    {
        Self { order: None, ..self }
    }
}

impl<T: DeviceScalar, P: Product<T>> Checked<T, P> {
    fn enqueue(
        &mut self,
        x: &DeviceBuffer<T>,
        mut target: Target<'_, T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let ((rows, cols), k) = (self.product.shape(), self.dense.k);
        check_operand(self.names[0], &self.device, x, cols * k)?;
        check_operand(self.names[1], &self.device, target.y, rows * k)?;
        stream.check_device(&self.device)?;
        if target.y.is_empty() {
            return Ok(());
        }
        if target.scaling.alpha == <T as Scalar>::ZERO {
            return target.enqueue_scale(stream);
        }
        let Self { product, aligned: [of_x, of_y], .. } = self;
        let Some(order) = &mut self.order else { return product.enqueue(x, &mut target, stream) };
        let alignment = product.alignment() as u64;
        let is_aligned = |array: &DeviceBuffer<T>| array.address().is_multiple_of(alignment);
        let is_ready = is_aligned(target.y) && target.addend().is_none_or(is_aligned);
        let copy_x = !is_aligned(x);
        order.enter(stream, || {
            let x = if copy_x { copied(of_x, x, stream)? } else { x };
            if is_ready {
                return product.enqueue(x, &mut target, stream);
            }
            let y = match target.addend() {
                Some(addend) => copied(of_y, addend, stream)?,
                None => room(of_y, target.y)?,
            };
            product.enqueue(x, &mut Target::new(target.scaling, y), stream)?;
            target.y.copy_from_on(y, stream)
        })
    }
}

/// An array like `buffer`, which is made only once.
fn room<'a, T: DeviceScalar>(
    kept: &'a mut Option<DeviceBuffer<T>>,
    buffer: &DeviceBuffer<T>,
) -> Result<&'a mut DeviceBuffer<T>, GpuError> {
    Ok(match kept {
        Some(kept) => kept,
        none => none.insert(DeviceBuffer::uninitialized(buffer.device(), buffer.len())?),
    })
}

/// The same with its elements, copied in the stream.
fn copied<'a, T: DeviceScalar>(
    kept: &'a mut Option<DeviceBuffer<T>>,
    buffer: &DeviceBuffer<T>,
    stream: &Stream,
) -> Result<&'a mut DeviceBuffer<T>, GpuError> {
    let copy = room(kept, buffer)?;
    copy.copy_from_on(buffer, stream)?;
    Ok(copy)
}

impl<T: DeviceScalar, P: Product<T>> DeviceProductPlan<T> for Checked<T, P> {
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
        let memory = self.product.memory();
        Footprint {
            bytes_moved: memory.matrix + operand_bytes::<T>(self.product.shape(), self.dense),
            plan_bytes: memory.matrix + memory.workspace,
            matrix_bytes: memory.matrix,
        }
    }

    fn launch_scaled(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.enqueue(x, Target { scaling, z: None, y }, stream)
    }

    fn launch_adding(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceBuffer<T>,
        z: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        check_operand(self.names[2], &self.device, z, self.product.shape().0 * self.dense.k)?;
        self.enqueue(x, Target { scaling, z: Some(z), y }, stream)
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        stream.check_device(&self.device)?;
        check_operand(NEW_VALUES, &self.device, values, values.len())?;
        if let Some(order) = &mut self.order {
            return order.enter(stream, || self.product.set_values(values, stream));
        }
        // Launches may be in any stream, and later ones too.
        self.device.synchronize()?;
        self.product.set_values(values, stream)?;
        stream.synchronize()
    }
}
