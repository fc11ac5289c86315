//! Memory that work in several streams shares.

use spm_gpu_kernels::device::Element;

use super::DeviceBuffer;
use crate::device::Device;
use crate::error::GpuError;
use crate::stream::{LaunchOrder, Stream};

/// Two arrays that work in any streams uses one after another. They are made when they are first needed, and
/// again for other lengths.
#[derive(Debug)]
pub struct Scratch<T> {
    arrays: [Option<DeviceBuffer<T>>; 2],
    order: LaunchOrder,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self { arrays: [None, None], order: LaunchOrder::default() }
    }
}

impl<T: Element> Scratch<T> {
    /// Calls `enqueue` with arrays of these lengths, of any contents. What it puts into `stream` waits for
    /// what former calls have put into theirs.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`]; a device that fails.
    pub fn enter<R>(
        &mut self,
        device: &Device,
        lengths: [usize; 2],
        stream: &Stream,
        enqueue: impl FnOnce([&mut DeviceBuffer<T>; 2]) -> R,
    ) -> Result<R, GpuError> {
        let [first, second] = &mut self.arrays;
        let arrays = [room(first, device, lengths[0])?, room(second, device, lengths[1])?];
        self.order.enter(stream, || Ok(enqueue(arrays)))
    }
}

/// The kept array, if it has this length, or a new one.
fn room<'a, T: Element>(
    kept: &'a mut Option<DeviceBuffer<T>>,
    device: &Device,
    length: usize,
) -> Result<&'a mut DeviceBuffer<T>, GpuError> {
    if kept.as_ref().is_none_or(|kept| kept.len() != length) {
        // First, so that there is room for the new one.
        *kept = None;
        *kept = Some(DeviceBuffer::uninitialized(device, length)?);
    }
    Ok(kept.as_mut().expect("made above"))
}
