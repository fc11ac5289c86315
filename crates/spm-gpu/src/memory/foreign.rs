//! Arrays of other libraries.

use std::ptr;

use spm_gpu_kernels::device::Element;
use spm_gpu_kernels::emulator::EmuBuffer;

use super::{DeviceBuffer, Owner, Storage};
use crate::budget::Reserved;
use crate::device::{Backend, Device};
use crate::error::GpuError;
use crate::pool::Block;

/// Where the elements of an emulated array go when it is dropped.
#[derive(Debug)]
pub(super) struct HostCopy<T> {
    address: u64,
    write: unsafe fn(&EmuBuffer<T>, u64),
}

impl<T> HostCopy<T> {
    /// Copies the elements there.
    pub(super) fn write(&self, buffer: &EmuBuffer<T>) {
        // SAFETY: `from_raw_mut` was promised that the memory is there, of the array's length, and that
        // nothing else uses it.
        unsafe { (self.write)(buffer, self.address) };
    }
}

/// # Safety
/// There is host memory for the elements at the address, and nothing else uses it.
unsafe fn write_to_host<T: Element>(buffer: &EmuBuffer<T>, address: u64) {
    let target = ptr::with_exposed_provenance_mut::<T>(address as usize);
    let elements = buffer.to_vec();
    // SAFETY: the caller's promise.
    unsafe { target.copy_from_nonoverlapping(elements.as_ptr(), elements.len()) };
}

impl<T: Element> DeviceBuffer<T> {
    /// `length` elements of another library, from `address` on, to be read. Dropping the array waits for
    /// nothing and frees nothing. `address` is a multiple of what an element is aligned to, its size, or
    /// anything if `length` is 0. A product whose kernel loads more at once copies an x or a y that
    /// is not aligned to that, on the device and in the stream of the product.
    ///
    /// On an emulated device `address` is of host memory: it is copied now.
    ///
    /// # Errors
    /// [`GpuError::Misaligned`]; [`GpuError::OutOfMemory`] on an emulated device.
    ///
    /// # Safety
    /// So many elements lie there, in memory that this device can access. They stay until all work that is
    /// given the array is done, and nothing writes them meanwhile; streams and events may see to both.
    /// The result is never borrowed mutably.
    pub unsafe fn from_raw(device: &Device, address: u64, length: usize) -> Result<Self, GpuError> {
        // SAFETY: the caller's promise.
        unsafe { Self::of_foreign(device, address, length, Owner::Foreign) }
    }

    /// The same, to be read and written. On an emulated device the array is copied back to host memory when
    /// it is dropped.
    ///
    /// # Errors
    /// As [`DeviceBuffer::from_raw`].
    ///
    /// # Safety
    /// As [`DeviceBuffer::from_raw`], but the result may be borrowed mutably, and nothing else reads or
    /// writes the elements until all work that is given the array is done.
    pub unsafe fn from_raw_mut(
        device: &Device,
        address: u64,
        length: usize,
    ) -> Result<Self, GpuError> {
        // SAFETY: the caller's promise.
        unsafe {
            let write = write_to_host::<T>;
            Self::of_foreign(device, address, length, Owner::Host(HostCopy { address, write }))
        }
    }

    /// # Safety
    /// As [`DeviceBuffer::from_raw`]; with [`Owner::Host`] as [`DeviceBuffer::from_raw_mut`].
    unsafe fn of_foreign(
        device: &Device,
        address: u64,
        length: usize,
        owner: Owner<T>,
    ) -> Result<Self, GpuError> {
        if length == 0 {
            return Self::uninitialized(device, 0);
        }
        let alignment = u64::from(T::ALIGNMENT);
        if !address.is_multiple_of(alignment) {
            return Err(GpuError::Misaligned { address, alignment });
        }
        if let Backend::Emulator(emulator) = device.backend() {
            let mut own = Self::emulated_like(device, emulator, length, address)?;
            let source = ptr::with_exposed_provenance::<T>(address as usize);
            // SAFETY: the caller promises so many elements, which nothing writes meanwhile.
            own.copy_from_slice(unsafe { std::slice::from_raw_parts(source, length) })?;
            own.owner = owner;
            return Ok(own);
        }
        let (storage, owner) = (Storage::Cuda(Block::foreign(address)), Owner::Foreign);
        let reserved = Reserved::new(0)?;
        Ok(Self { storage, device: device.clone(), length, owner, _reserved: reserved })
    }
}
