//! Copies between arrays with gaps and arrays without.

use std::ptr;

use cust::sys;
use spm_gpu_kernels::device::Element;

use super::{DeviceBuffer, Storage, check_operand};
use crate::error::{GpuError, check};
use crate::stream::Stream;

/// Some elements of an array: in each of `count` lines the first `length` ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// Position of the first element.
    pub first: usize,
    /// Number of lines.
    pub count: usize,
    /// Elements of a line, one after the other.
    pub length: usize,
    /// From the beginning of a line to that of the next, in elements; at least `length`, unless there is one
    /// line.
    pub pitch: usize,
}

impl Lines {
    /// Lines one after the other.
    pub fn without_gaps(count: usize, length: usize) -> Self {
        Self { first: 0, count, length, pitch: length }
    }

    /// Position behind the last element.
    fn end(self) -> usize {
        if self.count == 0 || self.length == 0 {
            return 0;
        }
        let last = self.pitch.saturating_mul(self.count - 1);
        self.first.saturating_add(last).saturating_add(self.length)
    }

    /// # Errors
    /// Lines that overlap or that an array of `length` elements does not have.
    fn check(self, what: &'static str, length: usize) -> Result<(), GpuError> {
        if self.count > 1 && self.pitch < self.length {
            return Err(GpuError::Shape { what, expected: self.length, found: self.pitch });
        }
        match self.end() {
            end if end > length => Err(GpuError::Shape { what, expected: end, found: length }),
            _ => Ok(()),
        }
    }
}

impl<T: Element> DeviceBuffer<T> {
    /// Overwrites the elements `to` of this array with the elements `from` of `source`, in a stream.
    ///
    /// ```
    /// use spm_gpu::{Device, DeviceBuffer, Lines, Stream};
    ///
    /// # let device = Device::emulated(Default::default());
    /// // The second and the third column of a row-major matrix of four columns.
    /// let a = DeviceBuffer::from_slice(&device, &[0, 1, 2, 3, 10, 11, 12, 13])?;
    /// let from = Lines { first: 1, count: 2, length: 2, pitch: 4 };
    /// let mut columns = DeviceBuffer::uninitialized(&device, 4)?;
    /// let stream = Stream::new(&device)?;
    /// columns.copy_lines_from_on(Lines::without_gaps(2, 2), &a, from, &stream)?;
    /// assert_eq!(columns.to_vec()?, [1, 2, 11, 12]);
    /// # Ok::<(), spm_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Shape`]: other numbers of elements, elements behind the end of an array, lines that
    /// overlap. [`GpuError::OtherDevice`].
    pub fn copy_lines_from_on(
        &mut self,
        to: Lines,
        source: &Self,
        from: Lines,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        stream.check_device(&self.device)?;
        check_operand("source", &self.device, source, source.length)?;
        if (to.count, to.length) != (from.count, from.length) {
            let (expected, found) = (to.count * to.length, from.count * from.length);
            return Err(GpuError::Shape { what: "lines", expected, found });
        }
        to.check("target", self.length)?;
        from.check("source", source.length)?;
        if to.count == 0 || to.length == 0 {
            return Ok(());
        }
        match (&self.storage, &source.storage, stream.emulated()) {
            (Storage::Cuda(target), Storage::Cuda(source), _) => {
                self.device.make_current()?;
                let bytes = |elements: usize| elements * size_of::<T>();
                // A pitch without a second line is not used, but checked.
                let pitch = |lines: Lines| bytes(lines.pitch.max(lines.length));
                let copy = sys::CUDA_MEMCPY2D {
                    srcXInBytes: 0,
                    srcY: 0,
                    srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
                    srcHost: ptr::null(),
                    srcDevice: source.address + bytes(from.first) as u64,
                    srcArray: ptr::null_mut(),
                    srcPitch: pitch(from),
                    dstXInBytes: 0,
                    dstY: 0,
                    dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
                    dstHost: ptr::null_mut(),
                    dstDevice: target.address + bytes(to.first) as u64,
                    dstArray: ptr::null_mut(),
                    dstPitch: pitch(to),
                    WidthInBytes: bytes(to.length),
                    Height: to.count,
                };
                // SAFETY: both buffers have these lines, and are different ones (one is borrowed mutably);
                // once one is dropped, its memory is nobody's before the stream is done.
                check("cuMemcpy2DAsync", unsafe {
                    sys::cuMemcpy2DAsync_v2(&copy, stream.as_raw().cast())
                })
            }
            (Storage::Emulated(target), Storage::Emulated(source), Some(queue)) => (0..to.count)
                .try_for_each(|line| {
                    let at = |lines: Lines| lines.first + line * lines.pitch;
                    Ok(queue.copy_part((source, at(from)), (target, at(to)), to.length)?)
                }),
            _ => Err(GpuError::OtherDevice { what: "source" }),
        }
    }
}
