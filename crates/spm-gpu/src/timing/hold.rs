//! Holding a stream while a batch is put into it.

use spm_gpu_kernels::timing as kernels;

use super::HOLD;
use crate::device::{Backend, Device};
use crate::error::GpuError;
use crate::host_words::HostWords;
use crate::launch::Launch;
use crate::stream::Stream;

/// Holds a stream by a kernel that looks at a word of the host: a launch, where the thread of a host
/// function takes 20 to 80 us. The mark behind a kernel may come late; batches are compared with each other only.
#[derive(Debug)]
pub(super) struct Hold {
    device: Device,
    /// Nothing on the emulator, where nothing is held.
    words: Option<HostWords>,
}

impl Hold {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let words = match device.backend() {
            Backend::Cuda(_) => Some(HostWords::new(device)?),
            Backend::Emulator(_) => None,
        };
        Ok(Self { device: device.clone(), words })
    }

    /// Puts into the stream what `enqueue` does, complete before it begins, and waits for it.
    pub(super) fn around(
        &mut self,
        stream: &Stream,
        enqueue: impl FnOnce() -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        if let Some(words) = &mut self.words {
            words.set_first(0);
            let args = kernels::Hold { nanoseconds: HOLD.as_nanos() as u32, open: words.ptr() };
            // SAFETY: the word lives until the stream has been waited for below; where that fails or `enqueue` panics, it
            // goes to others, who may write it at any time, or to the driver, which frees nothing that a kernel uses.
            unsafe { self.device.launch::<kernels::Hold>(Launch::new(1, 1), stream, args)? };
        }
        let enqueued = enqueue();
        if let Some(words) = &mut self.words {
            words.set_first(1);
        }
        stream.synchronize()?;
        enqueued
    }
}
