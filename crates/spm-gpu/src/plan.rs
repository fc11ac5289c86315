//! Plans on a device, for operands in device memory or in host memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use spm_formats::kernel::{
    DenseShape, Footprint, PlanError, ProductPlan, RunError, Scaling, TransposeOutput,
    TransposePlan, check_length,
};
use spm_formats::num_complex::Complex;
use spm_formats::{MemoryBudget, NewValues, RealScalar, Scalar};
use spm_gpu_kernels::device::{Number, Real};

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::stream::Stream;

/// A matrix element on a device: `f32`, `f64` or a complex number of them.
pub trait DeviceScalar: Scalar + Number {
    /// `cudaDataType` of the type.
    const CUDA_DATA_TYPE: i32;
}

/// A real matrix element on a device: `f32` or `f64`. Every kernel takes these.
pub trait DeviceReal: DeviceScalar + RealScalar + Real {}

impl DeviceReal for f32 {}
impl DeviceReal for f64 {}

impl DeviceScalar for f32 {
    const CUDA_DATA_TYPE: i32 = 0;
}

impl DeviceScalar for f64 {
    const CUDA_DATA_TYPE: i32 = 1;
}

impl DeviceScalar for Complex<f32> {
    const CUDA_DATA_TYPE: i32 = 4;
}

impl DeviceScalar for Complex<f64> {
    const CUDA_DATA_TYPE: i32 = 5;
}

/// Options of a plan.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    /// What the plan may allocate.
    pub budget: MemoryBudget,
    /// Plan for [`DeviceProductPlan::set_values`]: values are stored at full width, even if they are equal
    /// or fit single precision now, and a format that changes their order keeps the position of each
    /// stored element, 4 bytes.
    pub new_values: bool,
}

/// A planned product with X and Y on the device: Y = A X, or y = A x for one column.
///
/// Launches of one plan may go into any streams. Launches that share scratch memory run one after
/// another.
pub trait DeviceProductPlan<T>: Send {
    /// The device of the plan.
    fn device(&self) -> &Device;

    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Columns and layout of X and Y; [`DenseShape::VECTOR`] for y = A x.
    fn dense(&self) -> DenseShape;

    /// Traffic and device memory.
    fn footprint(&self) -> Footprint;

    /// Enqueues in the stream the kernels that overwrite `y` (rows x k elements) with A `x`
    /// (columns x k elements), and returns without waiting for them.
    ///
    /// # Errors
    /// Wrong lengths, buffers or a stream of another device, a device that fails.
    fn launch(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError>
    where
        T: Scalar,
    {
        self.launch_scaled(Scaling::OVERWRITE, x, y, stream)
    }

    /// The same for `y` = alpha A `x` + beta `y`. The kernels apply alpha and beta where they store their
    /// sums: there is no further pass over `y`, unless sums are rearranged anyway.
    ///
    /// beta = 0 does not read `y`, alpha = 0 reads neither A nor `x` ([`Scaling`]).
    ///
    /// # Errors
    /// As [`DeviceProductPlan::launch`].
    fn launch_scaled(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError>;

    /// The same for `y` = alpha A `x` + beta `z`, with as many elements in `z` as in `y`; a baseline copies
    /// `z` first. The result has the bits that [`DeviceProductPlan::launch_scaled`] gives for a `y` that is
    /// `z`.
    ///
    /// # Errors
    /// As [`DeviceProductPlan::launch`].
    fn launch_adding(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceBuffer<T>,
        z: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError>;

    /// Enqueues in the stream the copy of new values of A, in CSR order; the pattern stays. The values must
    /// stay as they are until the stream is done with them. Launches afterwards, in any stream, are those
    /// of a new plan with the same options, bit by bit.
    ///
    /// A plan made with [`PlanOptions::new_values`] takes them if `auto` may choose its kernel. Without the
    /// option those plans do that read the values in CSR order, or nearly so, at full width; they wait for
    /// the device.
    ///
    /// # Errors
    /// [`GpuError::Values`] from a plan that cannot take them, which keeps the old ones: it has equal
    /// values once or in single precision, another order, or a matrix that others share. A wrong number of
    /// values; a buffer or a stream of another device; a device that fails.
    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError>;

    /// See [`ProductPlan::choice`].
    fn choice(&self) -> Option<String> {
        None
    }
}

/// A boxed product plan.
pub type BoxedPlan<T> = Box<dyn DeviceProductPlan<T>>;

/// The CSC arrays that a transposition fills, on the device.
#[derive(Debug)]
pub struct DeviceCsc<T> {
    /// Columns + 1 pointers.
    pub col_ptr: DeviceBuffer<u32>,
    /// Row index of each entry, ascending inside a column.
    pub row_ind: DeviceBuffer<u32>,
    /// Value of each entry; empty in a pattern.
    pub values: DeviceBuffer<T>,
}

impl<T: DeviceScalar> DeviceCsc<T> {
    /// Arrays for a matrix with `cols` columns and `entries` entries, not initialised.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn new(device: &Device, cols: usize, entries: usize) -> Result<Self, GpuError> {
        Ok(Self {
            col_ptr: DeviceBuffer::uninitialized(device, cols.saturating_add(1))?,
            row_ind: DeviceBuffer::uninitialized(device, entries)?,
            values: DeviceBuffer::uninitialized(device, entries)?,
        })
    }

    /// The same without values.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn pattern(device: &Device, cols: usize, entries: usize) -> Result<Self, GpuError> {
        Ok(Self {
            col_ptr: DeviceBuffer::uninitialized(device, cols.saturating_add(1))?,
            row_ind: DeviceBuffer::uninitialized(device, entries)?,
            values: DeviceBuffer::uninitialized(device, 0)?,
        })
    }

    /// Copies the arrays to the host.
    ///
    /// # Errors
    /// Wrong lengths, a kernel that failed.
    pub fn copy_to(&self, output: &mut TransposeOutput<T>) -> Result<(), GpuError> {
        self.col_ptr.copy_to_slice(&mut output.col_ptr)?;
        self.row_ind.copy_to_slice(&mut output.row_ind)?;
        self.values.copy_to_slice(&mut output.values)
    }
}

/// A planned transposition of a CSR matrix that the plan keeps on the device.
///
/// Launches of one plan may go into any streams. Launches that share scratch memory run one after
/// another.
pub trait DeviceTransposePlan<T>: Send {
    /// The device of the plan.
    fn device(&self) -> &Device;

    /// (rows, columns) of A.
    fn shape(&self) -> (usize, usize);

    /// Stored entries of A.
    fn entries(&self) -> usize;

    /// Traffic and device memory.
    fn footprint(&self) -> Footprint;

    /// Enqueues in the stream the kernels that overwrite all three arrays of `output`, and returns
    /// without waiting for them.
    ///
    /// # Errors
    /// Wrong lengths, buffers or a stream of another device, a device that fails.
    fn launch(&mut self, output: &mut DeviceCsc<T>, stream: &Stream) -> Result<(), GpuError>;

    /// See [`TransposePlan::choice`].
    fn choice(&self) -> Option<String> {
        None
    }
}

/// A device plan for operands in host memory, with its own stream and device buffers. Every run
/// copies x to the device and y back; what is added to the product is copied to the device too. Runs of
/// one plan from several threads follow each other, because they share the buffers.
pub struct HostPlan<P, B> {
    state: Mutex<State<P, B>>,
}

struct State<P, B> {
    plan: P,
    buffers: B,
    stream: Stream,
}

impl<P, B> HostPlan<P, B> {
    fn of(plan: P, buffers: B, stream: Stream) -> Self {
        Self { state: Mutex::new(State { plan, buffers, stream }) }
    }

    fn state(&self) -> MutexGuard<'_, State<P, B>> {
        // Every run overwrites the buffers, so a run that panicked leaves nothing behind.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// [`HostPlan`] of a product.
pub type HostProductPlan<T> = HostPlan<BoxedPlan<T>, Operands<T>>;
/// [`HostPlan`] of a transposition.
pub type HostTransposePlan<T> = HostPlan<Box<dyn DeviceTransposePlan<T>>, DeviceCsc<T>>;

/// X and Y of a [`HostPlan`].
#[derive(Debug)]
pub struct Operands<T> {
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
}

impl<T: DeviceScalar> HostProductPlan<T> {
    /// Allocates X and Y beside the plan.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn new(plan: BoxedPlan<T>) -> Result<Self, GpuError> {
        let ((rows, cols), k, device) = (plan.shape(), plan.dense().k, plan.device());
        let x = DeviceBuffer::zeroed(device, cols * k)?;
        let y = DeviceBuffer::zeroed(device, rows * k)?;
        let stream = Stream::new(device)?;
        Ok(Self::of(plan, Operands { x, y }, stream))
    }
}

impl<T: DeviceScalar> HostProductPlan<T> {
    /// `y` = alpha A `x` + beta `z`, where `z` is `y` unless there is another.
    fn multiply(
        &self,
        scaling: Scaling<T>,
        x: &[T],
        z: Option<&[T]>,
        y: &mut [T],
    ) -> Result<(), RunError> {
        let State { plan, buffers, stream } = &mut *self.state();
        let Operands { x: device_x, y: device_y } = buffers;
        check_length("x", device_x.len(), x.len())?;
        check_length("y", device_y.len(), y.len())?;
        if let Some(z) = z {
            check_length("z", device_y.len(), z.len())?;
        }
        let reads_z = scaling.beta != <T as Scalar>::ZERO;
        if scaling.alpha == <T as Scalar>::ZERO {
            if let Some(z) = z.filter(|_| reads_z) {
                y.copy_from_slice(z);
            }
            scaling.scale(y);
            return Ok(());
        }
        device_x.copy_from_slice(x)?;
        if reads_z {
            device_y.copy_from_slice(z.unwrap_or(y))?;
        }
        plan.launch_scaled(scaling, device_x, device_y, stream)?;
        device_y.copy_to_slice(y)?;
        Ok(())
    }
}

impl<T: DeviceScalar> ProductPlan<T> for HostProductPlan<T> {
    fn shape(&self) -> (usize, usize) {
        self.state().plan.shape()
    }

    fn dense(&self) -> DenseShape {
        self.state().plan.dense()
    }

    fn footprint(&self) -> Footprint {
        self.state().plan.footprint()
    }

    fn run(&self, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        self.run_scaled(Scaling::OVERWRITE, x, y)
    }

    fn run_scaled(&self, scaling: Scaling<T>, x: &[T], y: &mut [T]) -> Result<(), RunError> {
        self.multiply(scaling, x, None, y)
    }

    fn run_adding(
        &self,
        scaling: Scaling<T>,
        x: &[T],
        z: &[T],
        y: &mut [T],
    ) -> Result<(), RunError> {
        self.multiply(scaling, x, Some(z), y)
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        let NewValues::Shared(values) = new else {
            return Err(PlanError::Values("the plan does not share the matrix"));
        };
        let State { plan, stream, .. } = &mut *self.state();
        let values = DeviceBuffer::from_slice(plan.device(), values)?;
        plan.set_values(&values, stream)?;
        Ok(stream.synchronize()?)
    }

    fn choice(&self) -> Option<String> {
        self.state().plan.choice()
    }
}

impl<T: DeviceScalar> HostTransposePlan<T> {
    /// Allocates the three arrays of the result beside the plan.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn new(plan: Box<dyn DeviceTransposePlan<T>>) -> Result<Self, GpuError> {
        let buffers = DeviceCsc::new(plan.device(), plan.shape().1, plan.entries())?;
        let stream = Stream::new(plan.device())?;
        Ok(Self::of(plan, buffers, stream))
    }
}

impl<T: DeviceScalar> TransposePlan<T> for HostTransposePlan<T> {
    fn shape(&self) -> (usize, usize) {
        self.state().plan.shape()
    }

    fn entries(&self) -> usize {
        self.state().plan.entries()
    }

    fn footprint(&self) -> Footprint {
        self.state().plan.footprint()
    }

    fn run(&mut self, output: &mut TransposeOutput<T>) -> Result<(), RunError> {
        let State { plan, buffers, stream } = &mut *self.state();
        output.check(plan.shape().1, plan.entries())?;
        plan.launch(buffers, stream)?;
        buffers.copy_to(output)?;
        Ok(())
    }

    fn choice(&self) -> Option<String> {
        self.state().plan.choice()
    }
}
