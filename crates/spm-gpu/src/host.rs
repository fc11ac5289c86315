//! Arrays in page-locked host memory.

use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;

use cust::sys;
use spm_gpu_kernels::device::Element;

use crate::device::{Backend, Device};
use crate::error::{GpuError, check};

/// An array in host memory that the operating system does not move, so that a device reads and writes it
/// without a copy in between: for what goes to and fro again and again.
///
/// It is used as a slice, by the functions of [`DeviceBuffer`](crate::DeviceBuffer) too. An emulated device has
/// ordinary memory.
#[derive(Debug)]
pub struct HostBuffer<T> {
    storage: Storage<T>,
    device: Device,
}

#[derive(Debug)]
enum Storage<T> {
    Ordinary(Vec<T>),
    PageLocked(NonNull<T>, usize),
}

// SAFETY: memory that nobody else has, as in a vector.
unsafe impl<T: Send> Send for HostBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for HostBuffer<T> {}

impl<T: Element> HostBuffer<T> {
    /// `length` elements whose bytes are 0, for copies from and to this device.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub fn zeroed(device: &Device, length: usize) -> Result<Self, GpuError> {
        let refused =
            |bytes: usize| GpuError::OutOfMemory { requested: bytes as u64, free: 0, total: 0 };
        let bytes = length.checked_mul(size_of::<T>()).ok_or_else(|| refused(usize::MAX))?;
        let storage = match device.backend() {
            Backend::Cuda(cuda) if bytes > 0 => {
                cuda.make_current()?;
                let mut start = ptr::null_mut();
                // SAFETY: points to a pointer.
                check("cuMemAllocHost", unsafe { sys::cuMemAllocHost_v2(&mut start, bytes) })?;
                let first = NonNull::new(start.cast::<T>()).ok_or_else(|| refused(bytes))?;
                // SAFETY: the driver has given so many bytes.
                unsafe { first.write_bytes(0, length) };
                Storage::PageLocked(first, length)
            }
            _ => {
                let mut elements = Vec::new();
                elements.try_reserve_exact(length).map_err(|_| refused(bytes))?;
                // SAFETY: every bit pattern is an element.
                elements.resize(length, unsafe { std::mem::zeroed::<T>() });
                Storage::Ordinary(elements)
            }
        };
        Ok(Self { storage, device: device.clone() })
    }
}

impl<T> Deref for HostBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.storage {
            Storage::Ordinary(elements) => elements,
            // SAFETY: so many initialised elements, aligned to pages, which live as long as this.
            Storage::PageLocked(first, length) => unsafe {
                slice::from_raw_parts(first.as_ptr(), *length)
            },
        }
    }
}

impl<T> DerefMut for HostBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.storage {
            Storage::Ordinary(elements) => elements,
            // SAFETY: as above; the borrow is exclusive.
            Storage::PageLocked(first, length) => unsafe {
                slice::from_raw_parts_mut(first.as_ptr(), *length)
            },
        }
    }
}

impl<T> Drop for HostBuffer<T> {
    fn drop(&mut self) {
        if let Storage::PageLocked(first, _) = self.storage
            && self.device.make_current().is_ok()
        {
            // SAFETY: of cuMemAllocHost, freed once. Copies have ended: those who make them wait.
            let _ = unsafe { sys::cuMemFreeHost(first.as_ptr().cast()) };
        }
    }
}
