//! CUDA streams and events.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;
use std::{mem, ptr};

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
    /// Whether another library destroys the stream.
    foreign: bool,
    /// Whether the device keeps the driver's stream for a later [`Stream::of_planning`].
    reused: bool,
}

impl Queue {
    /// The default stream, which is never destroyed.
    fn is_default(&self) -> bool {
        matches!(self.handle, Handle::Foreign(raw) if raw.0.is_null() || raw.0.addr() == LEGACY)
    }

    /// Whether the stream lives at least as long as this.
    fn is_kept(&self) -> bool {
        !self.foreign || self.is_default()
    }

    /// Whether both are known to be one stream.
    fn is(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || self.is_default() && other.is_default()
    }
}

#[derive(Debug)]
enum Handle {
    Cuda(cust::stream::Stream),
    /// Of another library, which destroys it.
    Foreign(ForeignStream),
    Emulated(EmuStream),
}

#[derive(Debug, Clone, Copy)]
struct ForeignStream(sys::CUstream);

// SAFETY: a handle of the driver, which is thread-safe.
unsafe impl Send for ForeignStream {}
// SAFETY: as above.
unsafe impl Sync for ForeignStream {}

impl Handle {
    /// The driver's handle; nothing on the emulator.
    fn cuda(&self) -> Option<sys::CUstream> {
        match self {
            Self::Cuda(stream) => Some(stream.as_inner()),
            Self::Foreign(stream) => Some(stream.0),
            Self::Emulated(_) => None,
        }
    }
}

/// `CU_STREAM_LEGACY`: the default stream by its other name.
const LEGACY: usize = 1;

impl Stream {
    /// A new stream.
    ///
    /// # Errors
    /// A device that fails.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        Self::with(device, false, false)
    }

    /// A stream for a step of planning. The driver's stream is that of an earlier step if one is free: to create and
    /// destroy one takes as long as a short kernel.
    ///
    /// # Errors
    /// A device that fails.
    pub(crate) fn of_planning(device: &Device) -> Result<Self, GpuError> {
        if let Backend::Cuda(cuda) = device.backend()
            && let Some(stream) = cuda.idle_streams().take()
        {
            let (handle, device) = (Handle::Cuda(stream), device.clone());
            return Ok(Self(Arc::new(Queue { handle, device, foreign: false, reused: true })));
        }
        Self::with(device, false, true)
    }

    /// A new stream whose kernels start before waiting blocks of those in other streams.
    ///
    /// # Errors
    /// A device that fails.
    pub fn prioritized(device: &Device) -> Result<Self, GpuError> {
        Self::with(device, true, false)
    }

    fn with(device: &Device, prioritized: bool, reused: bool) -> Result<Self, GpuError> {
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
        Ok(Self(Arc::new(Queue { handle, device: device.clone(), foreign: false, reused })))
    }

    /// A stream of another library: a `CUstream` or `cudaStream_t` of the device's primary context, which
    /// this crate uses too. Null is the default stream. Dropping the result leaves the stream alone.
    ///
    /// On an emulated device `raw` is ignored, and the result is a new stream.
    ///
    /// # Safety
    /// `raw` is a stream of this device, and is not destroyed while the result or a clone of it lives. The
    /// per-thread default stream is used in one thread only.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Self {
        let handle = match device.backend() {
            Backend::Cuda(_) => Handle::Foreign(ForeignStream(raw.cast())),
            Backend::Emulator(emulator) => Handle::Emulated(emulator.stream()),
        };
        Self(Arc::new(Queue { handle, device: device.clone(), foreign: true, reused: false }))
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
        if let Handle::Emulated(stream) = &self.0.handle {
            return Ok(stream.synchronize()?);
        }
        self.device().make_current()?;
        // SAFETY: the stream is live, of this device's context.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.as_raw().cast()) })
    }

    /// Whether both are known to be the same stream.
    pub fn is(&self, other: &Self) -> bool {
        self.0.is(&other.0)
    }

    /// Makes work that is enqueued from now on wait for the event, as it was last recorded, also by another
    /// device. An event that was never recorded is not waited for. The host does not wait, but for an event
    /// of another emulated device.
    ///
    /// # Errors
    /// An event of a GPU for an emulated device, or the other way round; an emulated device that failed
    /// before the event.
    pub fn wait(&self, event: &Event) -> Result<(), GpuError> {
        match (self.0.handle.cuda(), self.emulated(), &event.mark) {
            (Some(stream), _, Mark::Cuda(event)) => {
                self.device().make_current()?;
                // SAFETY: both are live, the stream of this device's context, the event of any; the driver
                // remembers the mark, not the event, which may be recorded again or destroyed before it is
                // passed.
                check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(stream, event.0, 0) })
            }
            (_, Some(_), Mark::Emulated(_)) if !self.device().is(&event.device) => {
                event.synchronize()
            }
            (_, Some(stream), Mark::Emulated(event)) => {
                stream.wait(event);
                Ok(())
            }
            _ => Err(GpuError::OtherDevice { what: "event" }),
        }
    }

    /// Makes work that is enqueued from now on wait for everything that is in `other` now; nothing if
    /// both are the same stream. The host does not wait.
    ///
    /// # Errors
    /// A stream of another device.
    pub fn follow(&self, other: &Self) -> Result<(), GpuError> {
        if self.is(other) {
            return Ok(());
        }
        let mark = Event::without_time(self.device())?;
        mark.record(other)?;
        self.wait(&mark)
    }

    /// Enqueues a host function in the stream; later work in the stream waits until it returns. The
    /// function must not call the driver.
    pub(crate) fn enqueue_host<F: FnOnce() + Send + 'static>(
        &self,
        function: F,
    ) -> Result<(), GpuError> {
        /// Calls the function that [`Box::into_raw`] gave.
        unsafe extern "C" fn call<F: FnOnce()>(function: *mut c_void) {
            // SAFETY: a box of this type, which the driver passes on once.
            let function = unsafe { Box::from_raw(function.cast::<F>()) };
            function();
        }

        if let Handle::Emulated(stream) = &self.0.handle {
            stream.call(function);
            return Ok(());
        }
        self.device().make_current()?;
        let function = Box::into_raw(Box::new(function)).cast();
        // SAFETY: the stream is live, of this device's context; the function fits what it gets.
        check("cuLaunchHostFunc", unsafe {
            sys::cuLaunchHostFunc(self.as_raw().cast(), Some(call::<F>), function)
        })
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
        self.0.handle.cuda().map_or(ptr::null_mut(), <*mut _>::cast)
    }

    /// The stream of an emulated device.
    pub(crate) fn emulated(&self) -> Option<&EmuStream> {
        match &self.0.handle {
            Handle::Cuda(_) | Handle::Foreign(_) => None,
            Handle::Emulated(stream) => Some(stream),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // The handle is destroyed next; without a context it would stay with the driver.
        if !self.foreign {
            let _ = self.device.make_current();
        }
        if !self.reused {
            return;
        }
        let none = Handle::Foreign(ForeignStream(ptr::null_mut()));
        if let (Handle::Cuda(stream), Backend::Cuda(cuda)) =
            (mem::replace(&mut self.handle, none), self.device.backend())
        {
            // What is still in the stream comes before what its next user puts there.
            cuda.idle_streams().put(stream);
        }
    }
}

/// Orders the launches of one plan, which share its scratch memory, in any streams. For launches
/// into one stream this costs a comparison; into a stream of another library, which may be gone at the
/// next launch, an event.
#[derive(Debug, Default)]
pub(crate) struct LaunchOrder {
    last: Last,
    /// The event that is used when the stream changes.
    mark: Option<Event>,
}

/// Where the last launch of a plan is.
#[derive(Debug, Default)]
enum Last {
    #[default]
    Nowhere,
    /// In this stream, kept alive so that no later stream gets its handle.
    In(Arc<Queue>),
    /// Before the mark.
    Marked,
}

impl LaunchOrder {
    /// Calls `enqueue`, whose launches in `stream` then wait for the previous ones, and for later work in
    /// that stream.
    ///
    /// # Errors
    /// A device that fails; those of `enqueue`.
    pub(crate) fn enter<R>(
        &mut self,
        stream: &Stream,
        enqueue: impl FnOnce() -> Result<R, GpuError>,
    ) -> Result<R, GpuError> {
        match &self.last {
            Last::In(last) if last.is(&stream.0) => return enqueue(),
            Last::Nowhere => {}
            Last::In(last) => {
                let last = Stream(Arc::clone(last));
                let mark = self.mark(stream.device())?;
                mark.record(&last)?;
                stream.wait(mark)?;
            }
            Last::Marked => stream.wait(self.mark(stream.device())?)?,
        }
        if stream.0.is_kept() {
            self.last = Last::In(Arc::clone(&stream.0));
            return enqueue();
        }
        let mark = self.mark(stream.device())?;
        let enqueued = enqueue();
        // Also behind what an `enqueue` that failed has launched.
        mark.record(stream)?;
        self.last = Last::Marked;
        enqueued
    }

    fn mark(&mut self, device: &Device) -> Result<&Event, GpuError> {
        Ok(match &mut self.mark {
            Some(mark) => mark,
            none => none.insert(Event::without_time(device)?),
        })
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
        match (&self.mark, stream.0.handle.cuda(), stream.emulated()) {
            (Mark::Cuda(event), Some(stream), _) => {
                self.device.make_current()?;
                // SAFETY: both are live and of this device's context.
                check("cuEventRecord", unsafe { sys::cuEventRecord(event.0, stream) })
            }
            (Mark::Emulated(event), _, Some(stream)) => {
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
