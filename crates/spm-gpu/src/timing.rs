//! Times of kernels by CUDA events.

mod clock;
mod hold;

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use spm_formats::timing::{Sampling, Timing};

pub(crate) use self::clock::{Batches, Clock};
use crate::error::GpuError;
use crate::stream::{Event, Stream};

/// How long the stream is held at most while a run is put into it: a library that waits for its
/// kernels inside a call must not wait for ever.
const HOLD: Duration = Duration::from_millis(10);

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
