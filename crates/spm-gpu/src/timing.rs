//! Times of kernels by CUDA events.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use spm_formats::timing::Timing;

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::stream::{Event, Stream};

/// How long the stream is held at most while a run is put into it: a library that waits for its
/// kernels inside a call must not wait for ever.
const HOLD: Duration = Duration::from_millis(10);

/// How long to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimingOptions {
    /// Runs before the first measured one.
    pub warm_up: usize,
    /// Measured runs, at least.
    pub iterations: usize,
    /// Total of the measured times, at least.
    pub min_time: Duration,
    /// Measured runs, at most, however short they are.
    pub max_iterations: usize,
}

impl Default for TimingOptions {
    fn default() -> Self {
        Self {
            warm_up: 5,
            iterations: 50,
            min_time: Duration::from_millis(50),
            max_iterations: 1000,
        }
    }
}

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
    options: TimingOptions,
    launch: impl FnMut(&Stream) -> Result<(), GpuError>,
) -> Result<Timing, GpuError> {
    time_after(stream, options, |_| Ok(()), launch)
}

/// As [`time`], with what `prepare` puts into the stream before each run, outside of its marks: the
/// overwriting of a large buffer makes caches cold.
///
/// # Errors
/// Whatever `prepare`, `launch` or the device reports.
pub fn time_after(
    stream: &Stream,
    options: TimingOptions,
    mut prepare: impl FnMut(&Stream) -> Result<(), GpuError>,
    mut launch: impl FnMut(&Stream) -> Result<(), GpuError>,
) -> Result<Timing, GpuError> {
    let device = stream.device();
    for _ in 0..options.warm_up {
        launch(stream)?;
    }
    let least = options.iterations.max(1);
    let most = options.max_iterations.max(least);
    let (start, stop) = (Event::new(device)?, Event::new(device)?);
    let (mut seconds, mut total) = (Vec::new(), 0.0);
    while seconds.len() < least || (total < options.min_time.as_secs_f64() && seconds.len() < most)
    {
        let gate = Gate::close(stream)?;
        prepare(stream)?;
        start.record(stream)?;
        launch(stream)?;
        stop.record(stream)?;
        drop(gate);
        stream.synchronize()?;
        let elapsed = stop.elapsed_since(&start)?.as_secs_f64();
        total += elapsed;
        seconds.push(elapsed);
    }
    Timing::of(seconds).ok_or(GpuError::Shape { what: "timed runs", expected: least, found: 0 })
}

/// Times the candidates of `auto` on operands of zeros: where they are read depends on the matrix
/// alone.
pub(crate) struct Clock<T> {
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
    stream: Stream,
}

impl<T: DeviceScalar> Clock<T> {
    /// With operands of these lengths.
    pub(crate) fn new(device: &Device, x: usize, y: usize) -> Result<Self, GpuError> {
        let (x, y) = (DeviceBuffer::zeroed(device, x)?, DeviceBuffer::zeroed(device, y)?);
        Ok(Self { x, y, stream: Stream::new(device)? })
    }

    /// Seconds of a product: of so many in a row, behind the warm-up that they wait for, and the least
    /// where that is done more than once. Without the host's part this takes a fraction of the time that
    /// [`time`] takes. On the emulator nothing runs, and the time is what its device says
    /// ([`EmulatedDevice::seconds`](crate::EmulatedDevice::seconds)).
    pub(crate) fn time(
        &mut self,
        options: TimingOptions,
        mut launch: impl FnMut(&DeviceBuffer<T>, &mut DeviceBuffer<T>, &Stream) -> Result<(), GpuError>,
    ) -> Result<f64, GpuError> {
        let Self { x, y, stream } = self;
        if let Some(seconds) = stream.device().emulated_seconds() {
            return Ok(seconds);
        }
        let (start, stop) = (Event::new(stream.device())?, Event::new(stream.device())?);
        let batch = options.iterations.max(1);
        let (mut least, mut total, mut runs) = (f64::INFINITY, 0.0, 0);
        while runs == 0
            || (total < options.min_time.as_secs_f64() && runs + batch <= options.max_iterations)
        {
            for _ in 0..options.warm_up {
                launch(x, y, stream)?;
            }
            start.record(stream)?;
            for _ in 0..batch {
                launch(x, y, stream)?;
            }
            stop.record(stream)?;
            stream.synchronize()?;
            let elapsed = stop.elapsed_since(&start)?.as_secs_f64();
            least = least.min(elapsed / batch as f64);
            total += elapsed;
            runs += batch;
        }
        Ok(least)
    }
}
