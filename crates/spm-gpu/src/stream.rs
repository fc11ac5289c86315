//! Queues of work on a device, and marks in them.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cuda::from_cust;
use crate::device::{Backend, Device};
use crate::error::GpuError;

/// A queue of kernels, run in order. Copies between host and device wait for all streams.
#[derive(Debug)]
pub struct Stream {
    /// `None` on the emulator, which does everything at once.
    // Before `device`: fields are dropped in order, and the handle needs the context.
    handle: Option<cust::stream::Stream>,
    device: Device,
}

impl Stream {
    /// A new queue.
    ///
    /// # Errors
    /// A device that fails.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        let handle = match device.backend() {
            Backend::Cuda(cuda) => {
                cuda.make_current()?;
                let handle = cust::stream::Stream::new(cust::stream::StreamFlags::DEFAULT, None);
                Some(handle.map_err(|e| from_cust("cuStreamCreateWithPriority", e))?)
            }
            Backend::Emulator(_) => None,
        };
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
        let Some(handle) = &self.handle else { return Ok(()) };
        self.device.make_current()?;
        handle.synchronize().map_err(|e| from_cust("cuStreamSynchronize", e))
    }

    /// Lets a function of the host be the next thing in the queue; what comes after waits until it
    /// returns. The function must not call the driver.
    pub(crate) fn enqueue_host(
        &self,
        function: impl FnOnce() + Send + 'static,
    ) -> Result<(), GpuError> {
        let Some(handle) = &self.handle else { return Ok(()) };
        self.device.make_current()?;
        handle.add_callback(Box::new(function)).map_err(|e| from_cust("cuLaunchHostFunc", e))
    }

    /// Refuses a stream of another device than `device`.
    pub(crate) fn check_device(&self, device: &Device) -> Result<(), GpuError> {
        if self.device.is(device) { Ok(()) } else { Err(GpuError::OtherDevice { what: "stream" }) }
    }

    /// The `CUstream`, for other libraries; valid as long as this stream lives, null on the
    /// emulator.
    pub fn as_raw(&self) -> *mut c_void {
        self.handle.as_ref().map_or(ptr::null_mut(), |handle| handle.as_inner().cast())
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
    mark: Mark,
    device: Device,
}

#[derive(Debug)]
enum Mark {
    Cuda(cust::event::Event),
    Emulated(Mutex<Option<Instant>>),
}

impl Event {
    /// A mark, not yet in any stream.
    ///
    /// # Errors
    /// A device that fails.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        let mark = match device.backend() {
            Backend::Cuda(cuda) => {
                cuda.make_current()?;
                let event = cust::event::Event::new(cust::event::EventFlags::DEFAULT);
                Mark::Cuda(event.map_err(|e| from_cust("cuEventCreate", e))?)
            }
            Backend::Emulator(_) => Mark::Emulated(Mutex::default()),
        };
        Ok(Self { mark, device: device.clone() })
    }

    /// Puts the mark behind everything that is in the stream now.
    ///
    /// # Errors
    /// A stream of another device.
    pub fn record(&self, stream: &Stream) -> Result<(), GpuError> {
        stream.check_device(&self.device)?;
        match (&self.mark, &stream.handle) {
            (Mark::Cuda(event), Some(stream)) => {
                self.device.make_current()?;
                event.record(stream).map_err(|e| from_cust("cuEventRecord", e))
            }
            (Mark::Emulated(time), _) => {
                *time.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                Ok(())
            }
            (Mark::Cuda(_), None) => Err(GpuError::OtherDevice { what: "stream" }),
        }
    }

    /// Waits until the device has passed the mark.
    ///
    /// # Errors
    /// A kernel before the mark that failed.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        let Mark::Cuda(event) = &self.mark else { return Ok(()) };
        self.device.make_current()?;
        event.synchronize().map_err(|e| from_cust("cuEventSynchronize", e))
    }

    /// Time between two marks that the device has passed, to about half a microsecond.
    ///
    /// # Errors
    /// A mark that is in no stream, or that the device has not passed.
    pub fn elapsed_since(&self, start: &Self) -> Result<Duration, GpuError> {
        match (&self.mark, &start.mark) {
            (Mark::Cuda(stop), Mark::Cuda(start)) => {
                self.device.make_current()?;
                let milliseconds =
                    stop.elapsed_time_f32(start).map_err(|e| from_cust("cuEventElapsedTime", e))?;
                Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) * 1e-3))
            }
            (Mark::Emulated(stop), Mark::Emulated(start)) => {
                let time = |mark: &Mutex<Option<Instant>>| {
                    let time = *mark.lock().unwrap_or_else(PoisonError::into_inner);
                    time.ok_or(GpuError::NotRecorded)
                };
                Ok(time(stop)?.duration_since(time(start)?))
            }
            _ => Err(GpuError::OtherDevice { what: "event" }),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // As for a stream.
        let _ = self.device.make_current();
    }
}
