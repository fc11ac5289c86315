//! Vectors in device memory.

use std::sync::{Mutex, PoisonError};

use spm_formats::kernel::Scaling;
use spm_formats::{RealScalar, Scalar};
use spm_gpu_kernels::Kernel;
use spm_gpu_kernels::vector::{
    DOT_BLOCKS, DOT_ELEMENTS, DOT_THREADS, VectorAxpby, VectorDot, VectorFill, VectorMultiply,
    VectorScale, VectorSum, vector_sum_shared_bytes,
};

use crate::device::Device;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::{DeviceProductPlan, DeviceScalar};
use crate::stream::Stream;

/// Threads of a block, one for each element.
const BLOCK: u32 = 256;

/// A vector in device memory with the operations of a solver, so that its vectors are never copied to the
/// host.
///
/// Every vector has a stream. An operation runs in the stream of the vector that it writes, or of `self`
/// where it writes none. If another operand has another stream, both streams wait for each other: an
/// operation reads what the calls before it have written, whatever the streams. Calls that write return
/// when the operation is in the stream; those that return elements or numbers wait for it.
///
/// Element-wise operations and sums have the same bits on every device, because their order depends on the
/// length alone.
///
/// ```
/// use spm_gpu::{Device, DeviceVector, Stream};
///
/// # let device = Device::emulated(Default::default());
/// let stream = Stream::new(&device)?;
/// let x = DeviceVector::from_slice(&stream, &[3.0, 4.0])?;
/// let mut y = DeviceVector::zeros(&stream, 2)?;
/// y.axpy(2.0, &x)?;
/// assert_eq!(y.to_vec()?, [6.0, 8.0]);
/// assert_eq!((x.dot(&y)?, x.norm2()?), (50.0, 5.0));
/// # Ok::<(), spm_gpu::GpuError>(())
/// ```
#[derive(Debug)]
pub struct DeviceVector<T> {
    elements: DeviceBuffer<T>,
    stream: Stream,
    /// The result of a sum, and the sums of its blocks; allocated by the first one.
    sums: Mutex<Option<DeviceBuffer<T>>>,
}

impl<T> DeviceVector<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// No elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The device of the vector.
    pub fn device(&self) -> &Device {
        self.elements.device()
    }

    /// The stream of the vector.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The elements. Who uses them in another stream orders it against [`DeviceVector::stream`].
    pub fn elements(&self) -> &DeviceBuffer<T> {
        &self.elements
    }

    /// The elements, to overwrite them; as [`DeviceVector::elements`].
    pub fn elements_mut(&mut self) -> &mut DeviceBuffer<T> {
        &mut self.elements
    }
}

impl<T: DeviceScalar> DeviceVector<T> {
    /// The vector of these elements, whose operations run in `stream` from now on. What was put into
    /// other streams before is not waited for.
    ///
    /// # Errors
    /// [`GpuError::OtherDevice`].
    pub fn new(elements: DeviceBuffer<T>, stream: &Stream) -> Result<Self, GpuError> {
        stream.check_device(elements.device())?;
        Ok(Self { elements, stream: stream.clone(), sums: Mutex::default() })
    }

    /// `length` zeros.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn zeros(stream: &Stream, length: usize) -> Result<Self, GpuError> {
        let mut elements = DeviceBuffer::uninitialized(stream.device(), length)?;
        elements.enqueue_zero(stream)?;
        Self::new(elements, stream)
    }

    /// A copy of `data`.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn from_slice(stream: &Stream, data: &[T]) -> Result<Self, GpuError> {
        let mut elements = DeviceBuffer::uninitialized(stream.device(), data.len())?;
        elements.copy_from_slice_on(data, stream)?;
        Self::new(elements, stream)
    }

    /// A copy of the vector, with the same stream.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Self, GpuError> {
        let mut elements = DeviceBuffer::uninitialized(self.device(), self.len())?;
        elements.copy_from_on(&self.elements, &self.stream)?;
        Self::new(elements, &self.stream)
    }

    /// Overwrites the vector with `data`.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for another length; an earlier operation that failed.
    pub fn copy_from_slice(&mut self, data: &[T]) -> Result<(), GpuError> {
        self.elements.copy_from_slice_on(data, &self.stream)
    }

    /// Overwrites `data` with the vector.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for another length; an earlier operation that failed.
    pub fn copy_to_slice(&self, data: &mut [T]) -> Result<(), GpuError> {
        self.elements.copy_to_slice_on(data, &self.stream)
    }

    /// The elements, copied to the host.
    ///
    /// # Errors
    /// An earlier operation that failed.
    pub fn to_vec(&self) -> Result<Vec<T>, GpuError> {
        let mut data = vec![<T as Scalar>::ZERO; self.len()];
        self.copy_to_slice(&mut data)?;
        Ok(data)
    }

    /// Overwrites the vector with `x`.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for another length, [`GpuError::OtherDevice`].
    pub fn copy_from(&mut self, x: &Self) -> Result<(), GpuError> {
        self.with("x", x, |y, x, stream| y.copy_from_on(x, stream))
    }

    /// Overwrites every element with `value`.
    ///
    /// # Errors
    /// A device that fails.
    pub fn fill(&mut self, value: T) -> Result<(), GpuError> {
        let (length, y) = (self.len() as u64, self.elements.ptr_mut());
        // SAFETY: y has so many elements.
        unsafe { self.map(VectorFill { length, value, y }) }
    }

    /// `self` = `alpha` `self`.
    ///
    /// # Errors
    /// A device that fails.
    pub fn scale(&mut self, alpha: T) -> Result<(), GpuError> {
        let (length, y) = (self.len() as u64, self.elements.ptr_mut());
        // SAFETY: y has so many elements.
        unsafe { self.map(VectorScale { length, alpha, y }) }
    }

    /// `self` = `alpha` `x` + `self`.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for another length, [`GpuError::OtherDevice`].
    pub fn axpy(&mut self, alpha: T, x: &Self) -> Result<(), GpuError> {
        self.axpby(alpha, x, <T as Scalar>::ONE)
    }

    /// `self` = `alpha` `x` + `beta` `self`. If beta is 0, `self` is overwritten and never read: NaN and
    /// infinity in it do not spread.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for another length, [`GpuError::OtherDevice`].
    pub fn axpby(&mut self, alpha: T, x: &Self, beta: T) -> Result<(), GpuError> {
        self.with("x", x, |y, x, stream| {
            let (length, x, y) = (x.len() as u64, x.ptr(), y.ptr_mut());
            // SAFETY: both have so many elements, and are different buffers: one is borrowed mutably.
            unsafe { map(length, stream, VectorAxpby { length, alpha, x, beta, y }) }
        })
    }

    /// Overwrites each element with the product of those of `x` and `y`: the product of a diagonal matrix
    /// and a vector.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for other lengths, [`GpuError::OtherDevice`].
    pub fn set_product(&mut self, x: &Self, y: &Self) -> Result<(), GpuError> {
        check_operand("x", self.device(), &x.elements, self.len())?;
        self.stream.follow(&x.stream)?;
        self.with("y", y, |z, y, stream| {
            let (length, x, y, z) = (y.len() as u64, x.elements.ptr(), y.ptr(), z.ptr_mut());
            // SAFETY: all have so many elements; z is another buffer than x and y, because it is
            // borrowed mutably.
            unsafe { map(length, stream, VectorMultiply { length, x, y, z }) }
        })?;
        x.stream.follow(&self.stream)
    }

    /// The sum of the products of the elements of `self`, conjugate if they are complex, and of `x`, added
    /// in a tree.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for another length, [`GpuError::OtherDevice`]; an earlier operation that failed.
    pub fn dot(&self, x: &Self) -> Result<T, GpuError> {
        check_operand("x", self.device(), &x.elements, self.len())?;
        if self.is_empty() {
            return Ok(<T as Scalar>::ZERO);
        }
        let stream = &self.stream;
        // What a call that panicked has left is overwritten.
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = match &mut *sums {
            Some(sums) => sums,
            none => {
                let length = 1 + DOT_BLOCKS as usize;
                none.insert(DeviceBuffer::uninitialized(self.device(), length)?)
            }
        };
        let blocks = self.len().div_ceil(DOT_ELEMENTS as usize).min(DOT_BLOCKS as usize) as u32;
        let (sum, of_blocks) = (sums.ptr_mut(), sums.ptr().offset(1_u32));
        let shared = vector_sum_shared_bytes::<T>(DOT_THREADS);
        let launch = Launch::new(blocks, DOT_THREADS).with_shared_bytes(shared);
        let (length, a, b) = (self.len() as u64, self.elements.ptr(), x.elements.ptr());
        let into = if blocks == 1 { sum } else { sum.offset(1_u32) };
        stream.follow(&x.stream)?;
        // SAFETY: both have so many elements, and there is a sum for each block.
        unsafe {
            let args = VectorDot { length, x: a, y: b, sums: into };
            self.device().launch::<VectorDot<T>>(launch, stream, args)?;
        }
        x.stream.follow(stream)?;
        if blocks > 1 {
            let launch = Launch::new(1, DOT_THREADS).with_shared_bytes(shared);
            // SAFETY: the sums of the blocks, behind the place for the result.
            unsafe {
                let args = VectorSum { length: blocks, x: of_blocks, sum };
                self.device().launch::<VectorSum<T>>(launch, stream, args)?;
            }
        }
        let mut result = [<T as Scalar>::ZERO];
        sums.copy_part_to_slice_on(0, &mut result, stream)?;
        Ok(result[0])
    }

    /// The Euclidean norm: the square root of [`DeviceVector::dot`] with itself, which overflows where a
    /// square does.
    ///
    /// # Errors
    /// An earlier operation that failed.
    pub fn norm2(&self) -> Result<T::Real, GpuError> {
        let square = self.dot(self)?.re();
        Ok(T::Real::from_f64(square.to_f64().sqrt()))
    }

    /// `self` = alpha A `x` + beta `self`, for the A of `plan`.
    ///
    /// # Errors
    /// As [`DeviceProductPlan::launch_scaled`].
    pub fn set_matrix_product(
        &mut self,
        plan: &mut (impl DeviceProductPlan<T> + ?Sized),
        scaling: Scaling<T>,
        x: &Self,
    ) -> Result<(), GpuError> {
        self.stream.follow(&x.stream)?;
        plan.launch_scaled(scaling, &x.elements, &mut self.elements, &self.stream)?;
        x.stream.follow(&self.stream)
    }

    /// `self` = alpha A `x` + beta `z`, for the A of `plan`.
    ///
    /// # Errors
    /// As [`DeviceProductPlan::launch_adding`].
    pub fn set_matrix_product_adding(
        &mut self,
        plan: &mut (impl DeviceProductPlan<T> + ?Sized),
        scaling: Scaling<T>,
        x: &Self,
        z: &Self,
    ) -> Result<(), GpuError> {
        self.stream.follow(&x.stream)?;
        self.stream.follow(&z.stream)?;
        plan.launch_adding(scaling, &x.elements, &z.elements, &mut self.elements, &self.stream)?;
        x.stream.follow(&self.stream)?;
        z.stream.follow(&self.stream)
    }

    /// Calls `enqueue` with the elements, those of `x`, which `name` names, and the stream.
    fn with(
        &mut self,
        name: &'static str,
        x: &Self,
        enqueue: impl FnOnce(&mut DeviceBuffer<T>, &DeviceBuffer<T>, &Stream) -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        check_operand(name, self.device(), &x.elements, self.len())?;
        self.stream.follow(&x.stream)?;
        enqueue(&mut self.elements, &x.elements, &self.stream)?;
        // Later writes of x wait for this read.
        x.stream.follow(&self.stream)
    }

    /// Launches a kernel with one thread for each element in the vector's stream.
    ///
    /// # Safety
    /// As [`map`].
    unsafe fn map<K: Kernel<Args = K> + Send>(&self, args: K) -> Result<(), GpuError> {
        // SAFETY: the caller's promise.
        unsafe { map(self.len() as u64, &self.stream, args) }
    }
}

/// Launches a kernel with one thread for each of `length` elements.
///
/// # Safety
/// The pointers among the arguments are those of live buffers of so many elements on the stream's device;
/// the one that is written is no other argument.
unsafe fn map<K>(length: u64, stream: &Stream, args: K) -> Result<(), GpuError>
where
    K: Kernel<Args = K> + Send,
{
    if length == 0 {
        return Ok(());
    }
    // Longer vectors than a grid has threads are refused by the launch.
    let blocks = u32::try_from(length.div_ceil(BLOCK.into())).unwrap_or(u32::MAX);
    // SAFETY: the caller's promise.
    unsafe { stream.device().launch::<K>(Launch::new(blocks, BLOCK), stream, args) }
}
