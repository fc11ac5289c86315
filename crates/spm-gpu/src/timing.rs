//! Times of kernels by CUDA events.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use spm_formats::timing::{Sampling, Timing};

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::{BoxedPlan, DeviceScalar};
use crate::stream::{Event, Stream};

/// How long the stream is held at most while a run is put into it: a library that waits for its
/// kernels inside a call must not wait for ever.
const HOLD: Duration = Duration::from_millis(10);

/// A batch that takes less than so many times what its launches take on the host may have waited for them.
const HOST_BOUND: f64 = 1.5;

/// Holds a stream until it is dropped, so that a run and its marks are complete before its first
/// kernel starts: otherwise a short kernel's time is that of its launch by the host.
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn close(stream: &Stream) -> Result<Self, GpuError> {
        let gate = Self(Arc::default());
        // There the run takes the host's time anyway, and the function would be waited for here.
        if stream.device().is_emulated() {
            return Ok(gate);
        }
        let state = Arc::clone(&gate.0);
        stream.enqueue_host(move || {
            let (open, opened) = &*state;
            let open = open.lock().unwrap_or_else(PoisonError::into_inner);
            // Opened, or held long enough: the stream goes on either way.
            drop(opened.wait_timeout_while(open, HOLD, |open| !*open));
        })?;
        Ok(gate)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let (open, opened) = &*self.0;
        *open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        opened.notify_all();
    }
}

/// Measures what `launch` puts into the stream: the time on the device alone, without the host's
/// part of a launch. One event before and one after each run, each run alone in the stream: a mark
/// with another run behind it comes 0.6 us late on an H200 (docs/tuning-log-gpu-spmv.md).
///
/// # Errors
/// Whatever `launch` or the device reports.
pub fn time(
    stream: &Stream,
    sampling: &Sampling,
    launch: impl FnMut(&Stream) -> Result<(), GpuError>,
) -> Result<Timing, GpuError> {
    time_after(stream, sampling, |_| Ok(()), launch)
}

/// As [`time`], with what `prepare` puts into the stream before each run, outside of its marks: the
/// overwriting of a large buffer makes caches cold.
///
/// # Errors
/// Whatever `prepare`, `launch` or the device reports.
pub fn time_after(
    stream: &Stream,
    sampling: &Sampling,
    mut prepare: impl FnMut(&Stream) -> Result<(), GpuError>,
    mut launch: impl FnMut(&Stream) -> Result<(), GpuError>,
) -> Result<Timing, GpuError> {
    let (start, stop) = (Event::new(stream.device())?, Event::new(stream.device())?);
    // The first launch of a kernel compiles it, for which the driver may wait for the device: neither behind a
    // gate nor in a sample.
    launch(stream)?;
    stream.synchronize()?;
    sampling.run(|warm| {
        let gate = Gate::close(stream)?;
        if warm.is_some() {
            prepare(stream)?;
        }
        start.record(stream)?;
        launch(stream)?;
        stop.record(stream)?;
        drop(gate);
        stream.synchronize()?;
        Ok(stop.elapsed_since(&start)?.as_secs_f64())
    })
}

/// Times the candidates of `auto` on operands of zeros: where they are read depends on the matrix
/// alone.
pub(crate) struct Clock<T> {
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
    stream: Stream,
    /// Whether a batch was launched no faster than it ran: the next candidates' will be, too.
    host_bound: bool,
}

impl<T: DeviceScalar> Clock<T> {
    /// With operands of these lengths.
    pub(crate) fn new(device: &Device, x: usize, y: usize) -> Result<Self, GpuError> {
        let (x, y) = (DeviceBuffer::zeroed(device, x)?, DeviceBuffer::zeroed(device, y)?);
        Ok(Self { x, y, stream: Stream::of_planning(device)?, host_bound: false })
    }

    /// Seconds of a product: of a batch in a row, behind the warm-up that they wait for, and the least
    /// of the batches. Without the host's part this takes a fraction of the time that [`time`] takes; a
    /// batch that the host launches no faster than it runs is timed again, launched as a whole before it runs, as
    /// are those of all later plans.
    /// On the emulator nothing runs, and the time is what its device says
    /// ([`EmulatedDevice::seconds`](crate::EmulatedDevice::seconds)).
    pub(crate) fn time(
        &mut self,
        batches: Batches,
        plan: &mut BoxedPlan<T>,
    ) -> Result<f64, GpuError> {
        if let Some(seconds) = self.stream.device().emulated_seconds() {
            return Ok(seconds);
        }
        let device = self.stream.device();
        let events = (Event::new(device)?, Event::new(device)?);
        let (mut least, mut total) = (Duration::MAX, Duration::ZERO);
        for batch in 0..batches.most {
            if batch > 0 && (self.host_bound || total >= batches.min_time) {
                break;
            }
            let held = batches.held || self.host_bound;
            let (elapsed, host) = self.batch(batches, plan, &events, held)?;
            least = least.min(elapsed);
            total += elapsed;
            if !held && elapsed.as_secs_f64() < HOST_BOUND * host.as_secs_f64() {
                self.host_bound = true;
                least = least.min(self.batch(batches, plan, &events, true)?.0);
            }
        }
        Ok(least.as_secs_f64() / batches.runs as f64)
    }

    /// The time of a batch on the device, and that of its launches on the host; `held`, if it is not to begin before
    /// it is launched as a whole.
    fn batch(
        &mut self,
        batches: Batches,
        plan: &mut BoxedPlan<T>,
        (start, stop): &(Event, Event),
        held: bool,
    ) -> Result<(Duration, Duration), GpuError> {
        let Self { x, y, stream, .. } = self;
        // The first launch of a kernel compiles it, for which the driver may wait for the device: not behind a gate.
        for _ in 0..batches.warm_up {
            plan.launch(x, y, stream)?;
        }
        let gate = held.then(|| Gate::close(stream)).transpose()?;
        start.record(stream)?;
        let before = Instant::now();
        for _ in 0..batches.runs {
            plan.launch(x, y, stream)?;
        }
        let host = before.elapsed();
        stop.record(stream)?;
        drop(gate);
        stream.synchronize()?;
        Ok((stop.elapsed_since(start)?, host))
    }
}

/// How long a candidate is timed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batches {
    /// Runs before each batch.
    pub(crate) warm_up: usize,
    /// Runs of a batch.
    pub(crate) runs: usize,
    /// Batches at most.
    pub(crate) most: usize,
    /// Total of the measured times from which on no further batch is begun.
    pub(crate) min_time: Duration,
    /// Whether a batch is launched as a whole before it runs from the first one on: for products that take less than
    /// their launch.
    pub(crate) held: bool,
}
