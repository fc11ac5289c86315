//! CUDA streams and events.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cust::context::CurrentContext;
use cust::sys;
use spm_gpu_kernels::emulator::{EmuEvent, EmuStream};

use crate::device::{Backend, Device};
use crate::error::{GpuError, check, from_cust};

/// A stream: a queue of kernels that run in order. Copies between host and device wait for all
/// streams.
///
/// Different streams run concurrently. An [`Event`] ([`Stream::wait`]) or [`Stream::synchronize`]
/// orders a write in one stream before a read in another. Launches of one plan are ordered by the
/// plan, operations on a [`DeviceVector`](crate::DeviceVector) by the vector. Clones are the same
/// stream.
#[derive(Debug, Clone)]
pub struct Stream(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    // Before `device`: fields are dropped in order, and the handle needs the context.
    handle: Handle,
    device: Device,
}

#[derive(Debug)]
enum Handle {
    Cuda(cust::stream::Stream),
    Emulated(EmuStream),
}

impl Stream {
    /// A new stream.
    ///
    /// # Errors
    /// A device that fails.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        Self::with(device, false)
    }

    /// A new stream whose kernels start before waiting blocks of those in other streams.
    ///
    /// # Errors
    /// A device that fails.
    pub fn prioritized(device: &Device) -> Result<Self, GpuError> {
        Self::with(device, true)
    }

    fn with(device: &Device, prioritized: bool) -> Result<Self, GpuError> {
        let handle = match device.backend() {
            Backend::Cuda(cuda) => {
                cuda.make_current()?;
                let priority = match prioritized {
                    true => {
                        let range = CurrentContext::get_stream_priority_range();
                        Some(
                            range
                                .map_err(|e| from_cust("cuCtxGetStreamPriorityRange", e))?
                                .greatest,
                        )
                    }
                    false => None,
                };
                let flags = cust::stream::StreamFlags::DEFAULT;
                let handle = cust::stream::Stream::new(flags, priority);
                Handle::Cuda(handle.map_err(|e| from_cust("cuStreamCreateWithPriority", e))?)
            }
            Backend::Emulator(emulator) => Handle::Emulated(emulator.stream()),
        };
        Ok(Self(Arc::new(Queue { handle, device: device.clone() })))
    }

    /// The device that it belongs to.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Waits until everything in the stream is done.
    ///
    /// # Errors
    /// A kernel that failed.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        match &self.0.handle {
            Handle::Cuda(handle) => {
                self.device().make_current()?;
                handle.synchronize().map_err(|e| from_cust("cuStreamSynchronize", e))
            }
            Handle::Emulated(stream) => Ok(stream.synchronize()?),
        }
    }

    /// Whether both are the same stream.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Makes work that is enqueued from now on wait for the event, as it was last recorded, also by another
    /// device. An event that was never recorded is not waited for. The host does not wait, but for an event
    /// of another emulated device.
    ///
    /// # Errors
    /// An event of a GPU for an emulated device, or the other way round; an emulated device that failed
    /// before the event.
    pub fn wait(&self, event: &Event) -> Result<(), GpuError> {
        match (&self.0.handle, &event.mark) {
            (Handle::Cuda(stream), Mark::Cuda(event)) => {
                self.device().make_current()?;
                // SAFETY: both are live, the stream of this device's context, the event of any; the driver
                // remembers the mark, not the event, which may be recorded again or destroyed before it is
                // passed.
                check("cuStreamWaitEvent", unsafe {
                    sys::cuStreamWaitEvent(stream.as_inner(), event.0, 0)
                })
            }
            (Handle::Emulated(_), Mark::Emulated(_)) if !self.device().is(&event.device) => {
                event.synchronize()
            }
            (Handle::Emulated(stream), Mark::Emulated(event)) => {
                stream.wait(event);
                Ok(())
            }
            _ => Err(GpuError::OtherDevice { what: "event" }),
        }
    }

    /// Makes work that is enqueued from now on wait for everything that is in `other` now; nothing if
    /// both are the same stream.
    ///
    /// # Errors
    /// A stream of another device.
    pub(crate) fn follow(&self, other: &Self) -> Result<(), GpuError> {
        if self.is(other) {
            return Ok(());
        }
        let mark = Event::without_time(self.device())?;
        mark.record(other)?;
        self.wait(&mark)
    }

    /// Enqueues a host function in the stream; later work in the stream waits until it returns. The
    /// function must not call the driver.
    pub(crate) fn enqueue_host(
        &self,
        function: impl FnOnce() + Send + 'static,
    ) -> Result<(), GpuError> {
        match &self.0.handle {
            Handle::Cuda(handle) => {
                self.device().make_current()?;
                let function = Box::new(function);
                handle.add_callback(function).map_err(|e| from_cust("cuLaunchHostFunc", e))
            }
            Handle::Emulated(stream) => {
                stream.call(function);
                Ok(())
            }
        }
    }

    /// Refuses a stream of another device than `device`.
    pub(crate) fn check_device(&self, device: &Device) -> Result<(), GpuError> {
        if self.device().is(device) {
            Ok(())
        } else {
            Err(GpuError::OtherDevice { what: "stream" })
        }
    }

    /// The `CUstream`, for other libraries; valid as long as this stream lives, null on the
    /// emulator.
    pub fn as_raw(&self) -> *mut c_void {
        match &self.0.handle {
            Handle::Cuda(handle) => handle.as_inner().cast(),
            Handle::Emulated(_) => ptr::null_mut(),
        }
    }

    /// The stream of an emulated device.
    pub(crate) fn emulated(&self) -> Option<&EmuStream> {
        match &self.0.handle {
            Handle::Cuda(_) => None,
            Handle::Emulated(stream) => Some(stream),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // The handle is destroyed next; without a context it would stay with the driver.
        let _ = self.device.make_current();
    }
}

/// Orders the launches of one plan, which share its scratch memory, in any streams. For launches
/// into one stream this costs a comparison.
#[derive(Debug, Default)]
pub(crate) struct LaunchOrder {
    /// The stream of the last launch, kept alive so that no later stream gets its handle.
    last: Option<Arc<Queue>>,
    /// The event that is used when the stream changes.
    mark: Option<Event>,
}

impl LaunchOrder {
    /// Called before a launch is enqueued in `stream`: the launch then waits for the previous one,
    /// and for later work in that stream.
    ///
    /// # Errors
    /// A device that fails; nothing must be launched then.
    pub(crate) fn enter(&mut self, stream: &Stream) -> Result<(), GpuError> {
        match &self.last {
            Some(last) if Arc::ptr_eq(last, &stream.0) => return Ok(()),
            Some(last) => {
                let mark = match &mut self.mark {
                    Some(mark) => mark,
                    none => none.insert(Event::without_time(stream.device())?),
                };
                mark.record(&Stream(Arc::clone(last)))?;
                stream.wait(mark)?;
            }
            None => {}
        }
        self.last = Some(Arc::clone(&stream.0));
        Ok(())
    }
}

/// An event in a stream, with the time at which the device reached it.
#[derive(Debug)]
pub struct Event {
    mark: Mark,
    device: Device,
}

#[derive(Debug)]
enum Mark {
    Cuda(CudaEvent),
    Emulated(EmuEvent),
}

/// A stream of a device that waits for what other devices read of it.
#[derive(Debug)]
pub(crate) struct Readers(cust::stream::Stream);

impl Readers {
    /// The context is current.
    pub(crate) fn new() -> Result<Self, GpuError> {
        let stream = cust::stream::Stream::new(cust::stream::StreamFlags::NON_BLOCKING, None);
        stream.map(Self).map_err(|e| from_cust("cuStreamCreateWithPriority", e))
    }

    /// Work of the context is done only after the event, which may be one of another device.
    pub(crate) fn wait(&self, event: &Event) -> Result<(), GpuError> {
        match &event.mark {
            // SAFETY: both are live; the driver remembers the mark, not the event. A stream is in its own
            // context, whichever is current.
            Mark::Cuda(event) => check("cuStreamWaitEvent", unsafe {
                sys::cuStreamWaitEvent(self.0.as_inner(), event.0, 0)
            }),
            Mark::Emulated(_) => Err(GpuError::OtherDevice { what: "event" }),
        }
    }
}

/// An event of the driver, because a stream cannot wait for an event of `cust` that is kept.
#[derive(Debug)]
struct CudaEvent(sys::CUevent);

// SAFETY: a handle of the driver, which is thread-safe.
unsafe impl Send for CudaEvent {}
// SAFETY: as above.
unsafe impl Sync for CudaEvent {}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // SAFETY: of cuEventCreate, destroyed once, while its context is current (`Event::drop`);
        // the driver keeps what is not passed yet.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

/// `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIME: u32 = 2;

impl Event {
    /// An event that is not yet in any stream.
    ///
    /// # Errors
    /// A device that fails.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        Self::with(device, 0)
    }

    /// An event that only orders streams, which costs less than one with a time.
    ///
    /// # Errors
    /// A device that fails.
    pub fn without_time(device: &Device) -> Result<Self, GpuError> {
        Self::with(device, WITHOUT_TIME)
    }

    fn with(device: &Device, flags: u32) -> Result<Self, GpuError> {
        let mark = match device.backend() {
            Backend::Cuda(cuda) => {
                cuda.make_current()?;
                let mut event = ptr::null_mut();
                // SAFETY: points to a handle.
                check("cuEventCreate", unsafe { sys::cuEventCreate(&mut event, flags) })?;
                Mark::Cuda(CudaEvent(event))
            }
            Backend::Emulator(_) => Mark::Emulated(EmuEvent::default()),
        };
        Ok(Self { mark, device: device.clone() })
    }

    /// Records the event after everything that is in the stream now.
    ///
    /// # Errors
    /// A stream of another device.
    pub fn record(&self, stream: &Stream) -> Result<(), GpuError> {
        stream.check_device(&self.device)?;
        match (&self.mark, &stream.0.handle) {
            (Mark::Cuda(event), Handle::Cuda(stream)) => {
                self.device.make_current()?;
                // SAFETY: both are live and of this device's context.
                check("cuEventRecord", unsafe { sys::cuEventRecord(event.0, stream.as_inner()) })
            }
            (Mark::Emulated(event), Handle::Emulated(stream)) => {
                event.record(stream);
                Ok(())
            }
            _ => Err(GpuError::OtherDevice { what: "stream" }),
        }
    }

    /// Waits until the device has reached the event.
    ///
    /// # Errors
    /// A kernel before the event that failed.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        match (&self.mark, self.device.backend()) {
            (Mark::Cuda(event), _) => {
                self.device.make_current()?;
                // SAFETY: the event is live, of this device's context.
                check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(event.0) })
            }
            (Mark::Emulated(event), Backend::Emulator(emulator)) => {
                Ok(event.synchronize(emulator)?)
            }
            (Mark::Emulated(_), Backend::Cuda(_)) => Err(GpuError::OtherDevice { what: "event" }),
        }
    }

    /// Time between two events that the device has reached, with a resolution of about half a
    /// microsecond.
    ///
    /// # Errors
    /// An event that is in no stream, or that the device has not reached.
    pub fn elapsed_since(&self, start: &Self) -> Result<Duration, GpuError> {
        if !self.device.is(&start.device) {
            return Err(GpuError::OtherDevice { what: "event" });
        }
        match (&self.mark, &start.mark) {
            (Mark::Cuda(stop), Mark::Cuda(start)) => {
                self.device.make_current()?;
                let mut milliseconds = 0.0;
                // SAFETY: points to a number; both events are live, of this device's context.
                check("cuEventElapsedTime", unsafe {
                    sys::cuEventElapsedTime(&mut milliseconds, start.0, stop.0)
                })?;
                Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) * 1e-3))
            }
            (Mark::Emulated(stop), Mark::Emulated(start)) => {
                let time = |event: &EmuEvent| event.passed().ok_or(GpuError::NotRecorded);
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
