//! Words of host memory that kernels read and write.

use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};

use cust::memory::LockedBuffer;
use spm_gpu_kernels::device::{DevicePtr, DevicePtrMut};

use crate::device::{Backend, Device};
use crate::error::{GpuError, from_cust};
use crate::memory::DeviceBuffer;
use crate::stream::Stream;

/// Page-locked words, which a device reads and writes where they are: the host knows what a kernel found when the kernel
/// has ended, and a copy would take some microseconds more. The driver's memory is kept for the next user.
#[derive(Debug)]
pub(crate) struct HostWords {
    device: Device,
    memory: Memory,
    /// Whether kernels may still write them.
    written: bool,
}

#[derive(Debug)]
enum Memory {
    /// `None` once they are the next user's.
    PageLocked(Option<LockedBuffer<u32>>),
    Emulated(DeviceBuffer<u32>),
}

impl HostWords {
    /// How many there are.
    pub(crate) const COUNT: usize = 4096;

    /// # Errors
    /// Too little memory, a device that fails.
    pub(crate) fn new(device: &Device) -> Result<Self, GpuError> {
        let memory = match device.backend() {
            Backend::Emulator(_) => {
                Memory::Emulated(DeviceBuffer::uninitialized(device, Self::COUNT)?)
            }
            Backend::Cuda(cuda) => {
                let words = match cuda.idle_words().take() {
                    Some(words) => words,
                    None => {
                        cuda.make_current()?;
                        LockedBuffer::new(&0, Self::COUNT)
                            .map_err(|e| from_cust("cuMemAllocHost", e))?
                    }
                };
                Memory::PageLocked(Some(words))
            }
        };
        Ok(Self { device: device.clone(), memory, written: false })
    }

    fn address(&self) -> u64 {
        match &self.memory {
            // The same on the device.
            Memory::PageLocked(words) => words.as_ref().map_or(0, |of| of.as_ptr().addr() as u64),
            Memory::Emulated(words) => words.ptr().as_raw(),
        }
    }

    /// For kernels that look at words which others may write at any time.
    pub(crate) fn ptr(&self) -> DevicePtr<u32> {
        // SAFETY: so many words; see `drop`.
        unsafe { DevicePtr::from_raw(self.address()) }
    }

    /// For kernels that write words of the host.
    pub(crate) fn ptr_mut(&mut self) -> DevicePtrMut<u32> {
        self.written = true;
        // SAFETY: so many words; see `drop`.
        unsafe { DevicePtrMut::from_raw(self.address()) }
    }

    /// The same, in pairs.
    pub(crate) fn pairs_mut(&mut self) -> DevicePtrMut<[u32; 2]> {
        let first = self.ptr_mut().as_raw();
        // SAFETY: half as many pairs, in pages or as aligned as an array of the device.
        unsafe { DevicePtrMut::from_raw(first) }
    }

    /// Overwrites the first word, at which kernels may look meanwhile. On the emulator nothing happens meanwhile.
    pub(crate) fn set_first(&mut self, word: u32) {
        if let Memory::PageLocked(Some(words)) = &mut self.memory {
            // SAFETY: a live, aligned word, which the host accesses through `&mut self` only.
            unsafe { AtomicU32::from_ptr(words.as_mut_ptr()) }.store(word, Ordering::Release);
        }
    }

    /// The first words, after what is in the stream.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for more than there are; a kernel that failed.
    pub(crate) fn read(&mut self, count: usize, stream: &Stream) -> Result<Vec<u32>, GpuError> {
        if count > Self::COUNT {
            let what = "words of the host";
            return Err(GpuError::Shape { what, expected: Self::COUNT, found: count });
        }
        stream.check_device(&self.device)?;
        stream.synchronize()?;
        self.written = false;
        match &self.memory {
            Memory::PageLocked(words) => {
                Ok(words.as_ref().map_or(Vec::new(), |words| words[..count].to_vec()))
            }
            Memory::Emulated(words) => {
                let mut read = vec![0; count];
                words.copy_part_to_slice_on(0, &mut read, stream)?;
                Ok(read)
            }
        }
    }
}

impl Drop for HostWords {
    fn drop(&mut self) {
        let Memory::PageLocked(words) = &mut self.memory else { return };
        let (Some(words), Backend::Cuda(cuda)) = (words.take(), self.device.backend()) else {
            return;
        };
        // Nobody gets words that a kernel may still write; where the device does not say, they are lost. A kernel that only looks
        // at them goes on.
        if self.written && self.device.synchronize().is_err() {
            mem::forget(words);
            return;
        }
        // What is not kept is freed in the context.
        let _ = cuda.make_current();
        cuda.idle_words().put(words);
    }
}
