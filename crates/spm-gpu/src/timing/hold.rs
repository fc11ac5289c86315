//! Holding a stream while a batch is put into it.

use std::sync::atomic::{AtomicU32, Ordering};

use cust::memory::LockedBuffer;
use spm_gpu_kernels::device::DevicePtr;
use spm_gpu_kernels::timing as kernels;

use super::HOLD;
use crate::cuda::Cuda;
use crate::device::{Backend, Device};
use crate::error::{GpuError, from_cust};
use crate::launch::Launch;
use crate::stream::Stream;

/// Holds a stream by a kernel that looks at a word of the host: a launch, where the thread of a host
/// function takes 20 to 80 us. The mark behind a kernel may come late; batches are compared with each other only.
#[derive(Debug)]
pub(super) struct Hold {
    device: Device,
    /// Nothing on the emulator, where nothing is held.
    word: Option<HoldWord>,
}

impl Hold {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let word = match device.backend() {
            Backend::Cuda(cuda) => match cuda.hold_words().take() {
                None => Some(HoldWord::new(cuda)?),
                idle => idle,
            },
            Backend::Emulator(_) => None,
        };
        Ok(Self { device: device.clone(), word })
    }

    /// Puts into the stream what `enqueue` does, complete before it begins, and waits for it.
    pub(super) fn around(
        &mut self,
        stream: &Stream,
        enqueue: impl FnOnce() -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        if let Some(word) = &mut self.word {
            word.set(0);
            let args = kernels::Hold { nanoseconds: HOLD.as_nanos() as u32, open: word.ptr() };
            // SAFETY: the word lives until the stream has been waited for below; where that fails or `enqueue` panics, it
            // goes to others, who may write it at any time, or to the driver, which frees nothing that a kernel uses.
            unsafe { self.device.launch::<kernels::Hold>(Launch::new(1, 1), stream, args)? };
        }
        let enqueued = enqueue();
        if let Some(word) = &mut self.word {
            word.set(1);
        }
        stream.synchronize()?;
        enqueued
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // A word that is not kept is freed in the context.
        let _ = self.device.make_current();
        if let (Backend::Cuda(cuda), Some(word)) = (self.device.backend(), self.word.take()) {
            cuda.hold_words().put(word);
        }
    }
}

/// A word of page-locked memory that kernels of a device read while the host writes it.
#[derive(Debug)]
pub(crate) struct HoldWord(LockedBuffer<u32>);

impl HoldWord {
    fn new(cuda: &Cuda) -> Result<Self, GpuError> {
        cuda.make_current()?;
        let word = LockedBuffer::new(&0, 1).map_err(|e| from_cust("cuMemAllocHost", e))?;
        Ok(Self(word))
    }

    fn ptr(&self) -> DevicePtr<u32> {
        // SAFETY: one word, at the same address on the device; its user keeps it.
        unsafe { DevicePtr::from_raw(self.0.as_ptr().addr() as u64) }
    }

    fn set(&mut self, word: u32) {
        // SAFETY: a live, aligned word, which the host reads and writes here only.
        unsafe { AtomicU32::from_ptr(self.0.as_mut_ptr()) }.store(word, Ordering::Release);
    }
}
