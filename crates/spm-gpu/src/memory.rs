//! Arrays in device memory.

mod copies;
mod foreign;
mod lines;
mod scratch;

pub use lines::Lines;
pub use scratch::Scratch;

use std::mem;

use cust::sys;
use spm_gpu_kernels::device::{DevicePtr, DevicePtrMut, Element};
use spm_gpu_kernels::emulator::{EmuBuffer, Emulator, EmulatorError};

use crate::budget::Reserved;
use crate::device::{Backend, Device};
use crate::error::{GpuError, check};
use crate::pool::Block;
use crate::stream::Stream;

/// An array of `T` in device memory, freed when it is dropped.
///
/// An array may be dropped while kernels still use it: nobody gets its memory before they are done. The [`Device`] keeps
/// the memory for later ones: 128 MiB at most, and none of it where memory runs out. Copies wait for all streams of the device.
///
/// An array [of another library](DeviceBuffer::from_raw) is not freed.
#[derive(Debug)]
pub struct DeviceBuffer<T> {
    storage: Storage<T>,
    device: Device,
    length: usize,
    owner: Owner<T>,
    /// Held for the budget of the plan that it belongs to.
    _reserved: Reserved,
}

#[derive(Debug)]
enum Storage<T> {
    Cuda(Block),
    Emulated(EmuBuffer<T>),
}

/// Who owns the memory of an array.
#[derive(Debug)]
enum Owner<T> {
    Own,
    /// Another library.
    Foreign,
    /// The array stands for writable host memory, on the emulator.
    Host(foreign::HostCopy<T>),
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        match (&self.storage, self.device.backend(), &self.owner) {
            // Without its context nothing says whether a kernel still uses the memory: it is lost.
            (&Storage::Cuda(block), Backend::Cuda(cuda), Owner::Own)
                if cuda.make_current().is_ok() =>
            {
                // SAFETY: of the same device's pool, whose context is current; freed once.
                unsafe { cuda.pool().free(block) };
            }
            (Storage::Emulated(buffer), _, Owner::Host(copy)) => copy.write(buffer),
            _ => {}
        }
    }
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

    /// The device of the array.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

impl<T: Element> DeviceBuffer<T> {
    /// `length` uninitialised elements. The emulator reports a kernel that reads one before it was
    /// written.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`]; [`GpuError::OverBudget`] while a plan is made.
    pub fn uninitialized(device: &Device, length: usize) -> Result<Self, GpuError> {
        let Some(bytes) = length.checked_mul(size_of::<T>()) else {
            return Err(out_of_memory(device, u64::MAX));
        };
        let cuda = match device.backend() {
            Backend::Emulator(emulator) => {
                return Self::emulated_like(device, emulator, length, 0);
            }
            Backend::Cuda(cuda) => cuda,
        };
        let reserved = Reserved::new(bytes as u64)?;
        cuda.make_current()?;
        let storage = match cuda.pool().allocate(bytes) {
            Ok(block) => Storage::Cuda(block),
            Err(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
                return Err(out_of_memory(device, bytes as u64));
            }
            Err(answer) => {
                check("cuMemAlloc", answer)?;
                Storage::Cuda(Block::NONE)
            }
        };
        let owner = Owner::Own;
        Ok(Self { storage, device: device.clone(), length, owner, _reserved: reserved })
    }

    /// As [`DeviceBuffer::uninitialized`], aligned as this address is.
    fn emulated_like(
        device: &Device,
        emulator: &Emulator,
        length: usize,
        address: u64,
    ) -> Result<Self, GpuError> {
        let bytes = length.saturating_mul(size_of::<T>()) as u64;
        let reserved = Reserved::new(bytes)?;
        let buffer = match emulator.try_alloc_uninit_like(length, address) {
            Err(EmulatorError::OutOfMemory { .. }) => return Err(out_of_memory(device, bytes)),
            buffer => buffer?,
        };
        let (storage, owner) = (Storage::Emulated(buffer), Owner::Own);
        Ok(Self { storage, device: device.clone(), length, owner, _reserved: reserved })
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
        match &self.storage {
            Storage::Cuda(Block::NONE) => Ok(()),
            Storage::Cuda(block) => {
                self.device.make_current()?;
                // SAFETY: the buffer has that many bytes.
                let answer = unsafe { sys::cuMemsetD8_v2(block.address, 0, self.bytes()) };
                check("cuMemsetD8", answer)
            }
            Storage::Emulated(buffer) => {
                self.device.synchronize()?;
                // SAFETY: every bit pattern is an element.
                buffer.write(&vec![unsafe { mem::zeroed::<T>() }; buffer.len()]);
                Ok(())
            }
        }
    }

    /// Overwrites all elements with 0, in a stream.
    ///
    /// # Errors
    /// A stream of another device.
    pub fn enqueue_zero(&mut self, stream: &Stream) -> Result<(), GpuError> {
        stream.check_device(&self.device)?;
        match (&self.storage, stream.emulated()) {
            (Storage::Cuda(Block::NONE), _) => Ok(()),
            (Storage::Cuda(block), _) => {
                self.device.make_current()?;
                // SAFETY: the buffer has that many bytes; once it is dropped, they are nobody's before the stream is done.
                check("cuMemsetD8Async", unsafe {
                    sys::cuMemsetD8Async(block.address, 0, self.bytes(), stream.as_raw().cast())
                })
            }
            (Storage::Emulated(buffer), Some(stream)) => Ok(stream.zero(buffer)?),
            (Storage::Emulated(_), None) => Err(GpuError::OtherDevice { what: "stream" }),
        }
    }

    /// The address on the device, for other libraries; 0 for an array without elements.
    pub fn address(&self) -> u64 {
        match &self.storage {
            Storage::Cuda(block) => block.address,
            Storage::Emulated(buffer) => buffer.ptr().as_raw(),
        }
    }

    /// A pointer for the arguments of a kernel that reads the array.
    pub fn ptr(&self) -> DevicePtr<T> {
        // SAFETY: a pointer is used by a launch only, whose caller promises that it is right.
        unsafe { DevicePtr::from_raw(self.address()) }
    }

    /// A pointer for the arguments of a kernel that writes the array.
    pub fn ptr_mut(&mut self) -> DevicePtrMut<T> {
        // SAFETY: as above.
        unsafe { DevicePtrMut::from_raw(self.address()) }
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
