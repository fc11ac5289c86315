//! Times of kernels by CUDA events.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use spm_formats::timing::{Sampling, Timing};
use spm_gpu_kernels::timing as kernels;

use crate::device::Device;
use crate::error::GpuError;
use crate::launch::Launch;
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

/// Holds a stream as [`Gate`] does, by a kernel that runs for some time: a launch, where the thread of a host function
/// takes 20 to 80 us. The mark behind a kernel may come late; batches are compared with each other only.
#[derive(Debug)]
struct Hold {
    /// How long the kernel runs.
    time: Duration,
}

impl Hold {
    /// Of the first batch. The host launches one in less time, or it is launched again.
    const FIRST: Duration = Duration::from_micros(30);
    /// Times what a batch took that the next one is held.
    const MARGIN: f64 = 1.25;

    /// Puts into the stream what `enqueue` does, complete before it begins, and waits for it.
    fn around(
        &mut self,
        stream: &Stream,
        mut enqueue: impl FnMut() -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        loop {
            let (before, hold) = (Instant::now(), self.time.min(HOLD));
            let args = kernels::Hold { nanoseconds: hold.as_nanos() as u32 };
            // SAFETY: no arrays.
            unsafe { stream.device().launch::<kernels::Hold>(Launch::new(1, 1), stream, args)? };
            enqueue()?;
            let host = before.elapsed();
            stream.synchronize()?;
            self.time = host.mul_f64(Self::MARGIN);
            if host <= hold || hold == HOLD {
                return Ok(());
            }
        }
    }
}

/// Times the candidates of `auto` on an x of zeros: where it is read depends on the matrix alone.
pub(crate) struct Clock<T> {
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
    stream: Stream,
    /// Before and after a batch.
    events: (Event, Event),
    hold: Hold,
    /// Whether a batch was launched no faster than it ran: the next candidates' will be, too.
    host_bound: bool,
}

impl<T: DeviceScalar> Clock<T> {
    /// With operands of these lengths.
    pub(crate) fn new(device: &Device, x: usize, y: usize) -> Result<Self, GpuError> {
        let (x, y) = (DeviceBuffer::zeroed(device, x)?, DeviceBuffer::uninitialized(device, y)?);
        let (stream, events) =
            (Stream::of_planning(device)?, (Event::new(device)?, Event::new(device)?));
        let hold = Hold { time: Hold::FIRST };
        Ok(Self { x, y, stream, events, hold, host_bound: false })
    }

    /// Seconds of a product: of a batch in a row, behind the warm-up that they wait for, and the least
    /// of the batches. Without the host's part this takes a fraction of the time that [`time`] takes; a
    /// batch that the host launches no faster than it runs is timed again, held until it is launched as a whole, as
    /// are those of all later plans; so is the first one if the device's rates, once they are known, say that it takes less than its launches.
    /// On the emulator nothing runs, and the time is what its device says
    /// ([`EmulatedDevice::seconds`](crate::EmulatedDevice::seconds)).
    pub(crate) fn time(
        &mut self,
        batches: Batches,
        plan: &mut BoxedPlan<T>,
    ) -> Result<f64, GpuError> {
        let device = self.stream.device();
        if let Some(seconds) = device.emulated_seconds() {
            return Ok(seconds);
        }
        let bytes = plan.footprint().bytes_moved;
        let expected =
            device.known_rates().and_then(|rates| rates.time(bytes, device.info().l2_bytes));
        let is_shorter = |launch| expected.is_some_and(|expected| expected < launch);
        let (mut least, mut total) = (Duration::MAX, Duration::ZERO);
        for batch in 0..batches.most {
            if batch > 0 && (self.host_bound || total >= batches.min_time) {
                break;
            }
            let launch = self.warm_up(batches, plan)?;
            self.host_bound |= batches.held || is_shorter(launch);
            let (elapsed, host) = self.batch(batches, plan)?;
            least = least.min(elapsed);
            total += elapsed;
            if !self.host_bound && elapsed.as_secs_f64() < HOST_BOUND * host.as_secs_f64() {
                self.host_bound = true;
                self.warm_up(batches, plan)?;
                least = least.min(self.batch(batches, plan)?.0);
            }
        }
        Ok(least.as_secs_f64() / batches.runs as f64)
    }

    /// What a launch takes on the host. The first one of a kernel compiles it: not while the stream is held.
    fn warm_up(&mut self, batches: Batches, plan: &mut BoxedPlan<T>) -> Result<Duration, GpuError> {
        let before = Instant::now();
        for _ in 0..batches.warm_up {
            plan.launch(&self.x, &mut self.y, &self.stream)?;
        }
        Ok(before.elapsed() / batches.warm_up as u32)
    }

    /// The time of a batch on the device, and that of its launches on the host.
    fn batch(
        &mut self,
        batches: Batches,
        plan: &mut BoxedPlan<T>,
    ) -> Result<(Duration, Duration), GpuError> {
        let Self { x, y, stream, events: (start, stop), hold, host_bound, .. } = self;
        let mut host = Duration::ZERO;
        let mut enqueue = || {
            start.record(stream)?;
            let before = Instant::now();
            for _ in 0..batches.runs {
                plan.launch(x, y, stream)?;
            }
            host = before.elapsed();
            stop.record(stream)
        };
        if *host_bound {
            hold.around(stream, enqueue)?;
        } else {
            enqueue()?;
            stream.synchronize()?;
        }
        Ok((stop.elapsed_since(start)?, host))
    }
}

/// How long a candidate is timed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batches {
    /// Runs before each batch, at least one.
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
