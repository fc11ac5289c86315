//! Copies between device memory and host memory, and between devices.

use std::ffi::c_void;
use std::{mem, ptr};

use cust::sys;
use spm_gpu_kernels::device::Element;

use super::{DeviceBuffer, Storage, check_operand};
use crate::device::{Backend, Device};
use crate::error::{GpuError, check};
use crate::pool::Block;
use crate::stream::{Event, Stream};

impl<T: Element> DeviceBuffer<T> {
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
                let target = block.address_of::<T>(first);
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
                let source = block.address_of::<T>(first);
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
                let source = block.address_of::<T>(index);
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
                let target = target.address_of::<T>(first);
                let block = block.address_of::<T>(from);
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
