//! The clock of `auto`: times of products that take little more than their launches.

use std::time::{Duration, Instant};

use super::hold::Hold;
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::{BoxedPlan, DeviceScalar};
use crate::stream::{Event, Stream};

/// What takes less than so many times what its launches take on the host may have waited for them.
const HOST_BOUND: f64 = 1.5;
/// Runs of a batch that is held, at most: no launch comes late in it.
const HELD_RUNS: usize = 2;

/// Times the candidates of `auto` on an x of zeros: where it is read depends on the matrix alone.
pub(crate) struct Clock<T> {
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
    stream: Stream,
    /// Before and after a batch of each plan.
    marks: [(Event, Event); MOST_PLANS],
    hold: Hold,
    /// Whether a batch was launched no faster than it ran: the next candidates' will be, too.
    host_bound: bool,
    /// Of a product of the plans so far.
    fastest: Option<Duration>,
}

/// Plans that are timed at once, at most.
const MOST_PLANS: usize = 2;

/// What a batch takes on the device, and its launches on the host.
#[derive(Debug, Clone, Copy)]
struct BatchTime {
    device: Duration,
    host: Duration,
}

impl<T: DeviceScalar> Clock<T> {
    /// With operands of these lengths.
    pub(crate) fn new(device: &Device, x: usize, y: usize) -> Result<Self, GpuError> {
        let (mut x, y) =
            (DeviceBuffer::uninitialized(device, x)?, DeviceBuffer::uninitialized(device, y)?);
        x.fill_zero()?;
        let stream = Stream::of_planning(device)?;
        let mark = || Ok::<_, GpuError>((Event::new(device)?, Event::new(device)?));
        let marks = [mark()?, mark()?];
        Ok(Self { x, y, stream, marks, hold: Hold::new(device)?, host_bound: false, fastest: None })
    }

    /// Seconds of a product of each plan: of a batch in a row, the least of the batches. Batches of all plans are waited
    /// for together. Without the host's part this takes a fraction of the time that [`time`](crate::time) takes.
    ///
    /// Batches that the host may launch no faster than they run are held until they are launched as a whole: if a product
    /// takes about as long as its launch by the plans before, or for the first ones by the device's rates, once they are
    /// known; and once more, held, if that turns out. On the emulator nothing runs, and the time is what its device says
    /// ([`EmulatedDevice::seconds`](crate::EmulatedDevice::seconds)).
    pub(crate) fn times<const N: usize>(
        &mut self,
        batches: Batches,
        mut plans: [&mut BoxedPlan<T>; N],
    ) -> Result<[f64; N], GpuError> {
        const { assert!(0 < N && N <= MOST_PLANS) };
        let device = self.stream.device().clone();
        if device.is_emulated() {
            return Ok([(); N].map(|()| device.emulated_seconds().unwrap_or_default()));
        }
        let rates = device.known_rates();
        let expected = plans.each_ref().map(|plan| {
            let bytes = plan.footprint().bytes_moved;
            rates.and_then(|rates| rates.time(bytes, device.info().l2_bytes))
        });
        let (mut least, mut total) = ([Duration::MAX; N], [Duration::ZERO; N]);
        let mut left = batches.most;
        loop {
            let launches = self.warm_up(&mut plans)?;
            let is_short = |(expected, launch): (Option<Duration>, Duration)| {
                let likely = self.fastest.or(expected);
                likely.is_some_and(|likely| likely < launch.mul_f64(HOST_BOUND))
            };
            let short = expected.into_iter().zip(launches).any(is_short);
            let held = self.host_bound || batches.held || short;
            let runs = expected.map(|expected| batches.runs_of(expected, held));
            let times = self.batch(runs, held, &mut plans)?;
            for i in 0..N {
                least[i] = least[i].min(times[i].device / runs[i] as u32);
                total[i] += times[i].device;
            }
            let waited = |of: &BatchTime| of.device < of.host.mul_f64(HOST_BOUND);
            self.host_bound |= !held && times.iter().any(waited);
            left = left.saturating_sub(1);
            let is_enough = left == 0 || total.iter().all(|of| *of >= batches.min_time);
            // What has waited is timed again, held.
            if held || is_enough && !self.host_bound {
                break;
            }
        }
        self.fastest = least.into_iter().chain(self.fastest).min();
        Ok(least.map(|least| least.as_secs_f64()))
    }

    /// The same of one plan.
    pub(crate) fn time(
        &mut self,
        batches: Batches,
        plan: &mut BoxedPlan<T>,
    ) -> Result<f64, GpuError> {
        self.times(batches, [plan]).map(|[seconds]| seconds)
    }

    /// What a launch of each plan takes on the host; the first plan is launched last. The first launch of a kernel compiles
    /// it: not while the stream is held.
    fn warm_up<const N: usize>(
        &mut self,
        plans: &mut [&mut BoxedPlan<T>; N],
    ) -> Result<[Duration; N], GpuError> {
        let mut launches = [Duration::ZERO; N];
        for (plan, launch) in plans.iter_mut().zip(&mut launches).rev() {
            let before = Instant::now();
            plan.launch(&self.x, &mut self.y, &self.stream)?;
            *launch = before.elapsed();
        }
        Ok(launches)
    }

    /// The times of a batch of each plan, of so many runs, held until all are launched or not.
    fn batch<const N: usize>(
        &mut self,
        runs: [usize; N],
        held: bool,
        plans: &mut [&mut BoxedPlan<T>; N],
    ) -> Result<[BatchTime; N], GpuError> {
        let Self { x, y, stream, marks, hold, .. } = self;
        let mut host = [Duration::ZERO; N];
        let moved: u64 = plans.iter().map(|plan| plan.footprint().bytes_moved).sum();
        // The plans before have driven this one's matrix out of the near half of the cache.
        let cold = moved > stream.device().info().l2_bytes / 2;
        let mut enqueue = || {
            for (i, plan) in plans.iter_mut().enumerate() {
                if i > 0 && cold {
                    plan.launch(x, y, stream)?;
                }
                marks[i].0.record(stream)?;
                let before = Instant::now();
                for _ in 0..runs[i] {
                    plan.launch(x, y, stream)?;
                }
                host[i] = before.elapsed();
                marks[i].1.record(stream)?;
            }
            Ok(())
        };
        if held {
            hold.around(stream, enqueue)?;
        } else {
            enqueue()?;
            stream.synchronize()?;
        }
        let mut times = [BatchTime { device: Duration::ZERO, host: Duration::ZERO }; N];
        for (time, ((start, stop), host)) in times.iter_mut().zip(marks.iter().zip(host)) {
            *time = BatchTime { device: stop.elapsed_since(start)?, host };
        }
        Ok(times)
    }
}

/// How long a candidate is timed, with one run before each batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batches {
    /// Runs of a batch, at most.
    pub(crate) runs: usize,
    /// Batches at most.
    pub(crate) most: usize,
    /// Total of the measured times from which on no further batch is begun.
    pub(crate) min_time: Duration,
    /// Whether a batch is launched as a whole before it runs from the first one on: for products that take less than
    /// their launch.
    pub(crate) held: bool,
}

/// A run that takes so long tells by itself: marks are late by less than a microsecond.
const LONG_RUN: Duration = Duration::from_micros(8);

impl Batches {
    /// Runs of a batch of products that are expected to take so long, if that is known, held or not.
    fn runs_of(self, expected: Option<Duration>, held: bool) -> usize {
        match expected {
            Some(expected) if expected >= LONG_RUN => 1,
            _ if held => self.runs.min(HELD_RUNS),
            _ => self.runs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_tells_by_itself() {
        let batches = Batches { runs: 3, most: 2, min_time: Duration::ZERO, held: false };
        for (held, runs) in [(false, 3), (true, HELD_RUNS)] {
            assert_eq!(batches.runs_of(None, held), runs);
            assert_eq!(batches.runs_of(Some(LONG_RUN - Duration::from_nanos(1)), held), runs);
            assert_eq!(batches.runs_of(Some(LONG_RUN), held), 1);
        }
    }
}
