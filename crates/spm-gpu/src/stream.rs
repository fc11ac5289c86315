//! Queues of work on a device, and marks in them.

use std::time::Duration;

use crate::device::{Device, from_cust};
use crate::error::GpuError;

/// A queue of kernels, run in order. Copies between host and device wait for all streams.
#[derive(Debug)]
pub struct Stream {
    // Before `device`: fields are dropped in order, and the handle needs the context.
    handle: cust::stream::Stream,
    device: Device,
}

impl Stream {
    /// A new queue.
    ///
    /// # Errors
    /// A device that fails.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        device.make_current()?;
        let handle = cust::stream::Stream::new(cust::stream::StreamFlags::DEFAULT, None)
            .map_err(|e| from_cust("cuStreamCreateWithPriority", e))?;
        Ok(Self { handle, device: device.clone() })
    }

    /// The device that it belongs to.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until everything in the queue is done.
    ///
    /// # Errors
    /// A kernel that failed.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.device.make_current()?;
        self.handle.synchronize().map_err(|e| from_cust("cuStreamSynchronize", e))
    }

    /// Refuses a stream of another device than `device`.
    pub(crate) fn check_device(&self, device: &Device) -> Result<(), GpuError> {
        if self.device.is(device) { Ok(()) } else { Err(GpuError::OtherDevice { what: "stream" }) }
    }

    /// The `CUstream`, for other libraries; valid as long as this stream lives.
    pub fn as_raw(&self) -> *mut std::ffi::c_void {
        self.handle.as_inner().cast()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The handle is destroyed next; without a context it would stay with the driver.
        let _ = self.device.make_current();
    }
}

/// A mark in a stream, with the time at which the device passed it.
#[derive(Debug)]
pub struct Event {
    handle: cust::event::Event,
    device: Device,
}

impl Event {
    /// A mark, not yet in any stream.
    ///
    /// # Errors
    /// A device that fails.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        device.make_current()?;
        let handle = cust::event::Event::new(cust::event::EventFlags::DEFAULT)
            .map_err(|e| from_cust("cuEventCreate", e))?;
        Ok(Self { handle, device: device.clone() })
    }

    /// Puts the mark behind everything that is in the stream now.
    ///
    /// # Errors
    /// A stream of another device.
    pub fn record(&self, stream: &Stream) -> Result<(), GpuError> {
        stream.check_device(&self.device)?;
        self.device.make_current()?;
        self.handle.record(&stream.handle).map_err(|e| from_cust("cuEventRecord", e))
    }

    /// Waits until the device has passed the mark.
    ///
    /// # Errors
    /// A kernel before the mark that failed.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.device.make_current()?;
        self.handle.synchronize().map_err(|e| from_cust("cuEventSynchronize", e))
    }

    /// Time between two marks that the device has passed, to about half a microsecond.
    ///
    /// # Errors
    /// A mark that is in no stream, or that the device has not passed.
    pub fn elapsed_since(&self, start: &Self) -> Result<Duration, GpuError> {
        self.device.make_current()?;
        let milliseconds = self
            .handle
            .elapsed_time_f32(&start.handle)
            .map_err(|e| from_cust("cuEventElapsedTime", e))?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) * 1e-3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // As for a stream.
        let _ = self.device.make_current();
    }
}
