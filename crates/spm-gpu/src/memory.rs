//! Arrays in device memory.

mod foreign;
mod lines;
mod scratch;

pub use lines::Lines;
pub use scratch::Scratch;

use std::ffi::c_void;
use std::{mem, ptr};

use cust::sys;
use spm_gpu_kernels::device::{DevicePtr, DevicePtrMut, Element};
use spm_gpu_kernels::emulator::{EmuBuffer, Emulator, EmulatorError};

use crate::budget::Reserved;
use crate::device::{Backend, Device};
use crate::error::{GpuError, check};
use crate::pool::{Block, Use};
use crate::stream::{Event, Stream};

/// An array of `T` in device memory, freed when it is dropped.
///
/// An array may be dropped while kernels still use it: nobody gets its memory before they are done. The [`Device`] keeps
/// the memory of small arrays, and of large ones that planning uses, for later ones: 128 MiB at most, and none of it where
/// memory runs out. Copies wait for all streams of the device.
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
        Self::allocated(device, length, Use::Lasting)
    }

    /// The same, for use while a plan is made: the device keeps the memory, however large.
    pub(crate) fn brief(device: &Device, length: usize) -> Result<Self, GpuError> {
        Self::allocated(device, length, Use::Brief)
    }

    fn allocated(device: &Device, length: usize, of: Use) -> Result<Self, GpuError> {
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
        let storage = match cuda.pool().allocate(bytes, of) {
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

    /// Overwrites the buffer with `data`.
    ///
    /// # Errors
    /// [`GpuError::Shape`] when the lengths differ.
    pub fn copy_from_slice(&mut self, data: &[T]) -> Result<(), GpuError> {
        self.require_length(data.len())?;
        match &self.storage {
            Storage::Cuda(Block::NONE) => Ok(()),
            Storage::Cuda(block) => {
                self.device.make_current()?;
                // SAFETY: both sides have that many bytes.
                check("cuMemcpyHtoD", unsafe {
                    sys::cuMemcpyHtoD_v2(block.address, data.as_ptr().cast(), self.bytes())
                })
            }
            Storage::Emulated(buffer) => {
                self.device.synchronize()?;
                buffer.write(data);
                Ok(())
            }
        }
    }

    /// Overwrites `data` with the buffer.
    ///
    /// # Errors
    /// [`GpuError::Shape`] when the lengths differ; a kernel that failed.
    pub fn copy_to_slice(&self, data: &mut [T]) -> Result<(), GpuError> {
        self.require_length(data.len())?;
        match &self.storage {
            Storage::Cuda(Block::NONE) => Ok(()),
            Storage::Cuda(block) => {
                self.device.make_current()?;
                let target = data.as_mut_ptr().cast::<c_void>();
                // SAFETY: both sides have that many bytes; every bit pattern is an element.
                check("cuMemcpyDtoH", unsafe {
                    sys::cuMemcpyDtoH_v2(target, block.address, self.bytes())
                })
            }
            Storage::Emulated(buffer) => {
                self.device.synchronize()?;
                data.copy_from_slice(&buffer.to_vec());
                Ok(())
            }
        }
    }

    /// Overwrites the buffer with `data` after what is in the stream, and waits for that alone: other
    /// streams go on.
    ///
    /// # Errors
    /// [`GpuError::Shape`] when the lengths differ; a stream of another device; a kernel in it that
    /// failed.
    pub fn copy_from_slice_on(&mut self, data: &[T], stream: &Stream) -> Result<(), GpuError> {
        self.require_length(data.len())?;
        self.copy_part_from_slice_on(0, data, stream)
    }

    /// Overwrites the elements from `first` on with `data`, otherwise as
    /// [`DeviceBuffer::copy_from_slice_on`].
    ///
    /// # Errors
    /// [`GpuError::Shape`] when the buffer ends before; a stream of another device; a kernel in it that
    /// failed.
    pub fn copy_part_from_slice_on(
        &mut self,
        first: usize,
        data: &[T],
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.require_part(first, data.len())?;
        stream.check_device(&self.device)?;
        match &self.storage {
            Storage::Cuda(block) if !data.is_empty() => {
                self.device.make_current()?;
                let target = block.address + (first * size_of::<T>()) as u64;
                let (source, raw) = (data.as_ptr().cast(), stream.as_raw().cast());
                // SAFETY: both sides have that many bytes; below, the host waits until they are copied,
                // which page-locked memory is not when the call returns.
                check("cuMemcpyHtoDAsync", unsafe {
                    sys::cuMemcpyHtoDAsync_v2(target, source, size_of_val(data), raw)
                })?;
                stream.synchronize()
            }
            Storage::Cuda(_) => Ok(()),
            Storage::Emulated(buffer) => {
                stream.synchronize()?;
                buffer.write_at(first, data);
                Ok(())
            }
        }
    }

    /// Overwrites `data` with the elements from `first` on, after what is in the stream, and waits for
    /// that alone: other streams go on.
    ///
    /// # Errors
    /// [`GpuError::Shape`] when the buffer ends before; a stream of another device; a kernel in it that
    /// failed.
    pub fn copy_part_to_slice_on(
        &self,
        first: usize,
        data: &mut [T],
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.require_part(first, data.len())?;
        stream.check_device(&self.device)?;
        match &self.storage {
            Storage::Cuda(block) if !data.is_empty() => {
                self.device.make_current()?;
                let source = block.address + (first * size_of::<T>()) as u64;
                let (target, raw) = (data.as_mut_ptr().cast(), stream.as_raw().cast());
                // SAFETY: both sides have that many bytes, and every bit pattern is an element; below,
                // the host waits until they are copied.
                check("cuMemcpyDtoHAsync", unsafe {
                    sys::cuMemcpyDtoHAsync_v2(target, source, size_of_val(data), raw)
                })?;
                stream.synchronize()
            }
            Storage::Cuda(_) => stream.synchronize(),
            Storage::Emulated(buffer) => {
                stream.synchronize()?;
                data.copy_from_slice(&buffer.read_at(first, data.len()));
                Ok(())
            }
        }
    }

    /// Overwrites `data` with the buffer after what is in the stream, and waits for that alone: other
    /// streams go on.
    ///
    /// # Errors
    /// As [`DeviceBuffer::copy_from_slice_on`].
    pub fn copy_to_slice_on(&self, data: &mut [T], stream: &Stream) -> Result<(), GpuError> {
        self.require_length(data.len())?;
        self.copy_part_to_slice_on(0, data, stream)
    }

    /// The elements, copied to the host.
    ///
    /// # Errors
    /// A kernel that failed.
    pub fn to_vec(&self) -> Result<Vec<T>, GpuError>
    where
        T: Default,
    {
        let mut data = vec![T::default(); self.length];
        self.copy_to_slice(&mut data)?;
        Ok(data)
    }

    /// Element `index`, copied to the host.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for an index beyond the end; a kernel that failed.
    pub fn element(&self, index: usize) -> Result<T, GpuError> {
        if index >= self.length {
            let (what, expected) = ("index into a device buffer", self.length);
            return Err(GpuError::Shape { what, expected, found: index });
        }
        match &self.storage {
            Storage::Cuda(block) => {
                self.device.make_current()?;
                // SAFETY: every bit pattern is an element.
                let mut element = unsafe { mem::zeroed::<T>() };
                let source = block.address + (index * size_of::<T>()) as u64;
                // SAFETY: one element on both sides.
                check("cuMemcpyDtoH", unsafe {
                    sys::cuMemcpyDtoH_v2((&raw mut element).cast(), source, size_of::<T>())
                })?;
                Ok(element)
            }
            Storage::Emulated(buffer) => {
                self.device.synchronize()?;
                Ok(buffer.read_at(index, 1)[0])
            }
        }
    }

    /// Every `stride`-th element from the first on, copied to the host at once.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for no element or a stride of 0; a kernel that failed.
    pub(crate) fn every(&self, stride: usize) -> Result<Vec<T>, GpuError> {
        if stride == 0 || self.length == 0 {
            let what = "stride over a device buffer";
            return Err(GpuError::Shape { what, expected: 1, found: 0 });
        }
        let block = match &self.storage {
            Storage::Cuda(block) => block,
            Storage::Emulated(buffer) => {
                self.device.synchronize()?;
                return Ok(buffer.to_vec().into_iter().step_by(stride).collect());
            }
        };
        self.device.make_current()?;
        let height = self.length.div_ceil(stride);
        // SAFETY: every bit pattern is an element.
        let mut elements = vec![unsafe { mem::zeroed::<T>() }; height];
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: ptr::null(),
            srcDevice: block.address,
            srcArray: ptr::null_mut(),
            srcPitch: stride * size_of::<T>(),
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: elements.as_mut_ptr().cast(),
            dstDevice: 0,
            dstArray: ptr::null_mut(),
            dstPitch: size_of::<T>(),
            WidthInBytes: size_of::<T>(),
            Height: height,
        };
        // SAFETY: one element from each row of the pitch, the last of which begins inside the buffer.
        check("cuMemcpy2D", unsafe { sys::cuMemcpy2D_v2(&copy) })?;
        Ok(elements)
    }

    /// Overwrites the buffer with another one of the same device.
    ///
    /// # Errors
    /// [`GpuError::Shape`] when the lengths differ, [`GpuError::OtherDevice`].
    pub fn copy_from(&mut self, source: &Self) -> Result<(), GpuError> {
        let stream = Stream::new(&self.device)?;
        self.copy_from_on(source, &stream)?;
        stream.synchronize()
    }

    /// Overwrites the buffer with another one of the same device, in a stream.
    ///
    /// # Errors
    /// [`GpuError::Shape`] when the lengths differ, [`GpuError::OtherDevice`].
    pub fn copy_from_on(&mut self, source: &Self, stream: &Stream) -> Result<(), GpuError> {
        self.require_length(source.len())?;
        stream.check_device(&self.device)?;
        check_operand("source", &self.device, source, self.length)?;
        match (&self.storage, &source.storage, stream.emulated()) {
            (Storage::Cuda(target), Storage::Cuda(source), _) if target.address != 0 => {
                self.device.make_current()?;
                let raw = stream.as_raw().cast();
                // SAFETY: both have that many bytes and are different buffers (one is borrowed
                // mutably); once one is dropped, its memory is nobody's before the stream is done.
                check("cuMemcpyDtoDAsync", unsafe {
                    sys::cuMemcpyDtoDAsync_v2(target.address, source.address, self.bytes(), raw)
                })
            }
            (Storage::Emulated(target), Storage::Emulated(source), Some(stream)) => {
                Ok(stream.copy(source, target)?)
            }
            _ => Ok(()),
        }
    }

    /// Overwrites the `length` elements from `first` on with those of `source` from `from` on, in a stream
    /// of this buffer's device. The source may be on another device ([`Device::enable_peer`]), and may be
    /// dropped before it is copied. Between emulated devices the host waits for both.
    ///
    /// # Errors
    /// [`GpuError::Shape`] when a buffer ends before; a stream of another device; a GPU and an emulated
    /// device.
    pub fn copy_part_from_on(
        &mut self,
        first: usize,
        source: &Self,
        from: usize,
        length: usize,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.require_part(first, length)?;
        source.require_part(from, length)?;
        stream.check_device(&self.device)?;
        match (&self.storage, &source.storage, stream.emulated()) {
            (Storage::Cuda(target), Storage::Cuda(block), _) if length > 0 => {
                let target = target.address + (first * size_of::<T>()) as u64;
                let block = block.address + (from * size_of::<T>()) as u64;
                let bytes = length * size_of::<T>();
                // SAFETY: both have that many bytes and are different buffers (one is borrowed mutably).
                unsafe { copy_on(&self.device, target, &source.device, block, bytes, stream) }
            }
            (Storage::Cuda(_), Storage::Cuda(_), _) => Ok(()),
            (Storage::Emulated(target), Storage::Emulated(block), Some(queue)) => {
                if self.device.is(&source.device) {
                    return Ok(queue.copy_part((block, from), (target, first), length)?);
                }
                source.device.synchronize()?;
                stream.synchronize()?;
                target.write_at(first, &block.read_at(from, length));
                Ok(())
            }
            _ => Err(GpuError::OtherDevice { what: "source" }),
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

    fn require_part(&self, first: usize, length: usize) -> Result<(), GpuError> {
        let found = first.saturating_add(length);
        if found <= self.length {
            Ok(())
        } else {
            Err(GpuError::Shape { what: "device buffer", expected: self.length, found })
        }
    }

    fn require_length(&self, found: usize) -> Result<(), GpuError> {
        if found == self.length {
            Ok(())
        } else {
            Err(GpuError::Shape { what: "device buffer", expected: self.length, found })
        }
    }
}

/// Enqueues a copy of bytes in a stream of `device`. Either side may be dropped before it is done.
///
/// # Safety
/// Each address is that of so many bytes in a buffer of its device; they do not overlap.
unsafe fn copy_on(
    device: &Device,
    target: sys::CUdeviceptr,
    owner: &Device,
    source: sys::CUdeviceptr,
    bytes: usize,
    stream: &Stream,
) -> Result<(), GpuError> {
    let raw = stream.as_raw().cast();
    let (Backend::Cuda(here), Backend::Cuda(there)) = (device.backend(), owner.backend()) else {
        return Err(GpuError::OtherDevice { what: "source" });
    };
    here.make_current()?;
    if here.shares_context(there) {
        // SAFETY: the caller's promise. Freed memory is nobody's before all streams of the context are done.
        return check("cuMemcpyDtoDAsync", unsafe {
            sys::cuMemcpyDtoDAsync_v2(target, source, bytes, raw)
        });
    }
    // Made before the copy: nothing of what makes the owner wait may fail behind it.
    let done = Event::without_time(device)?;
    let readers = there.readers()?;
    here.make_current()?;
    // SAFETY: the caller's promise. Freed memory is nobody's before all streams of its context are done: of the target's the
    // stream is one, and one of the source's waits for the copy below.
    check("cuMemcpyPeerAsync", unsafe {
        sys::cuMemcpyPeerAsync(target, here.raw_context(), source, there.raw_context(), bytes, raw)
    })?;
    let kept = done.record(stream).and_then(|()| readers.wait(&done));
    if kept.is_err() {
        // The host waits in the owner's place.
        stream.synchronize()?;
    }
    kept
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
