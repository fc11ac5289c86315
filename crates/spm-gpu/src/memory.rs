//! Arrays in device memory.

use std::ffi::c_void;
use std::marker::PhantomData;

use cust::sys;

use crate::device::{Device, check};
use crate::error::GpuError;
use crate::stream::Stream;

mod sealed {
    pub trait Sealed {}
}

/// Plain data that may lie in device memory: numbers, for which every bit pattern is a value.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {}

macro_rules! elements {
    ($($type:ty)*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {}
    )*};
}

elements!(u8 u16 u32 i32 u64 f32 f64);

/// An array of `T` in device memory, freed when it is dropped.
///
/// Freeing waits for the kernels that still use it. Copies wait for all streams of the device.
#[derive(Debug)]
pub struct DeviceBuffer<T> {
    device: Device,
    /// 0 for an array without elements.
    address: sys::CUdeviceptr,
    length: usize,
    element: PhantomData<T>,
}

impl<T> DeviceBuffer<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// No elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.length * size_of::<T>()
    }

    /// The device that it lies on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The address on the device, for other libraries; 0 for an array without elements.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl<T: Element> DeviceBuffer<T> {
    /// `length` elements, not initialised: they hold what was there before.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn uninitialized(device: &Device, length: usize) -> Result<Self, GpuError> {
        device.make_current()?;
        let mut buffer = Self { device: device.clone(), address: 0, length, element: PhantomData };
        let Some(bytes) = length.checked_mul(size_of::<T>()) else {
            return Err(out_of_memory(device, u64::MAX));
        };
        if bytes > 0 {
            // SAFETY: points to an address.
            let answer = unsafe { sys::cuMemAlloc_v2(&mut buffer.address, bytes) };
            if answer == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                return Err(out_of_memory(device, bytes as u64));
            }
            check("cuMemAlloc", answer)?;
        }
        Ok(buffer)
    }

    /// `length` zeros.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn zeroed(device: &Device, length: usize) -> Result<Self, GpuError> {
        let mut buffer = Self::uninitialized(device, length)?;
        buffer.fill_zero()?;
        Ok(buffer)
    }

    /// A copy of `data`.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn from_slice(device: &Device, data: &[T]) -> Result<Self, GpuError> {
        let mut buffer = Self::uninitialized(device, data.len())?;
        buffer.copy_from_slice(data)?;
        Ok(buffer)
    }

    /// Overwrites all elements with 0.
    ///
    /// # Errors
    /// A device that fails.
    pub fn fill_zero(&mut self) -> Result<(), GpuError> {
        if self.is_empty() {
            return Ok(());
        }
        self.device.make_current()?;
        // SAFETY: the buffer has that many bytes.
        check("cuMemsetD8", unsafe { sys::cuMemsetD8_v2(self.address, 0, self.bytes()) })
    }

    /// Puts the overwriting with 0 into a stream.
    pub(crate) fn enqueue_zero(&mut self, stream: &Stream) -> Result<(), GpuError> {
        if self.is_empty() {
            return Ok(());
        }
        self.device.make_current()?;
        // SAFETY: the buffer has that many bytes, and freeing it waits for the stream.
        check("cuMemsetD8Async", unsafe {
            sys::cuMemsetD8Async(self.address, 0, self.bytes(), stream.as_raw().cast())
        })
    }

    /// Overwrites the buffer with `data`.
    ///
    /// # Errors
    /// [`GpuError::Shape`] when the lengths differ.
    pub fn copy_from_slice(&mut self, data: &[T]) -> Result<(), GpuError> {
        self.require_length(data.len())?;
        if self.is_empty() {
            return Ok(());
        }
        self.device.make_current()?;
        // SAFETY: both sides have that many bytes.
        check("cuMemcpyHtoD", unsafe {
            sys::cuMemcpyHtoD_v2(self.address, data.as_ptr().cast::<c_void>(), self.bytes())
        })
    }

    /// Overwrites `data` with the buffer.
    ///
    /// # Errors
    /// [`GpuError::Shape`] when the lengths differ; a kernel that failed.
    pub fn copy_to_slice(&self, data: &mut [T]) -> Result<(), GpuError> {
        self.require_length(data.len())?;
        if self.is_empty() {
            return Ok(());
        }
        self.device.make_current()?;
        // SAFETY: both sides have that many bytes; every bit pattern is an element.
        check("cuMemcpyDtoH", unsafe {
            sys::cuMemcpyDtoH_v2(data.as_mut_ptr().cast::<c_void>(), self.address, self.bytes())
        })
    }

    /// Overwrites the buffer with another one on the same device.
    ///
    /// # Errors
    /// [`GpuError::Shape`] when the lengths differ, [`GpuError::OtherDevice`].
    pub fn copy_from(&mut self, source: &Self) -> Result<(), GpuError> {
        self.require_length(source.len())?;
        if !source.device.is(&self.device) {
            return Err(GpuError::OtherDevice { what: "buffer" });
        }
        if self.is_empty() {
            return Ok(());
        }
        self.device.make_current()?;
        // SAFETY: both sides have that many bytes and are different buffers.
        check("cuMemcpyDtoD", unsafe {
            sys::cuMemcpyDtoD_v2(self.address, source.address, self.bytes())
        })
    }

    /// The same, as a copy put into `stream`, without waiting for it.
    ///
    /// # Errors
    /// As [`DeviceBuffer::copy_from`]; a stream of another device.
    pub fn copy_from_on(&mut self, source: &Self, stream: &Stream) -> Result<(), GpuError> {
        self.require_length(source.len())?;
        if !source.device.is(&self.device) {
            return Err(GpuError::OtherDevice { what: "buffer" });
        }
        if !stream.device().is(&self.device) {
            return Err(GpuError::OtherDevice { what: "stream" });
        }
        if self.is_empty() {
            return Ok(());
        }
        self.device.make_current()?;
        // SAFETY: both sides have that many bytes and are different buffers; freeing device memory
        // waits for the work that uses it.
        check("cuMemcpyDtoDAsync", unsafe {
            sys::cuMemcpyDtoDAsync_v2(
                self.address,
                source.address,
                self.bytes(),
                stream.as_raw().cast(),
            )
        })
    }

    fn require_length(&self, found: usize) -> Result<(), GpuError> {
        if found == self.length {
            Ok(())
        } else {
            Err(GpuError::Shape { what: "device buffer", expected: self.length, found })
        }
    }
}

/// Checks an argument of a launch.
pub(crate) fn check_operand<T>(
    what: &'static str,
    device: &Device,
    buffer: &DeviceBuffer<T>,
    expected: usize,
) -> Result<(), GpuError> {
    if !buffer.device.is(device) {
        return Err(GpuError::OtherDevice { what });
    }
    if buffer.length != expected {
        return Err(GpuError::Shape { what, expected, found: buffer.length });
    }
    Ok(())
}

fn out_of_memory(device: &Device, requested: u64) -> GpuError {
    match device.memory() {
        Ok((free, total)) => GpuError::OutOfMemory { requested, free, total },
        Err(error) => error,
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        if self.address != 0 && self.device.make_current().is_ok() {
            // SAFETY: allocated by cuMemAlloc, freed once. A failure here is an earlier kernel's,
            // which the next call reports.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}
