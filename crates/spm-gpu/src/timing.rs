//! Times of kernels by CUDA events.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cust::memory::LockedBuffer;
use spm_formats::timing::{Sampling, Timing};
use spm_gpu_kernels::device::DevicePtr;
use spm_gpu_kernels::timing as kernels;

use crate::cuda::Cuda;
use crate::device::{Backend, Device};
use crate::error::{GpuError, from_cust};
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

/// Holds a stream as [`Gate`] does, by a kernel that looks at a word of the host: a launch, where the thread of a host
/// function takes 20 to 80 us. The mark behind a kernel may come late; batches are compared with each other only.
#[derive(Debug)]
struct Hold {
    device: Device,
    /// Nothing on the emulator, where nothing is held.
    word: Option<HoldWord>,
}

impl Hold {
    fn new(device: &Device) -> Result<Self, GpuError> {
        let word = match device.backend() {
            Backend::Cuda(cuda) => Some(cuda.hold_words().take_or_new(cuda)?),
            Backend::Emulator(_) => None,
        };
        Ok(Self { device: device.clone(), word })
    }

    /// Puts into the stream what `enqueue` does, complete before it begins, and waits for it.
    fn around(
        &mut self,
        stream: &Stream,
        enqueue: impl FnOnce() -> Result<(), GpuError>,
    ) -> Result<(), GpuError> {
        if let Some(word) = &mut self.word {
            word.set(0);
            let args = kernels::Hold { nanoseconds: HOLD.as_nanos() as u32, open: word.ptr() };
            // SAFETY: the word lives until the stream has been waited for below, and longer where that fails: the
            // driver frees no memory that a kernel uses, and another one's word may be set at any time.
            unsafe { self.device.launch::<kernels::Hold>(Launch::new(1, 1), stream, args)? };
        }
        let enqueued = enqueue();
        if let Some(word) = &mut self.word {
            word.set(1);
        }
        stream.synchronize()?;
        enqueued
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let (Backend::Cuda(cuda), Some(word)) = (self.device.backend(), self.word.take()) {
            cuda.hold_words().put(word);
        }
    }
}

/// A word of page-locked memory that kernels of a device read while the host writes it.
#[derive(Debug)]
pub(crate) struct HoldWord(LockedBuffer<u32>);

impl HoldWord {
    fn ptr(&self) -> DevicePtr<u32> {
        // SAFETY: one word, at the same address on the device; its user keeps it.
        unsafe { DevicePtr::from_raw(self.0.as_ptr().addr() as u64) }
    }

    fn set(&mut self, word: u32) {
        // SAFETY: a live, aligned word, which the host reads and writes here only.
        unsafe { AtomicU32::from_ptr(self.0.as_mut_ptr()) }.store(word, Ordering::Release);
    }
}

/// Words of a device that nothing is held by: to allocate one takes longer than a batch.
#[derive(Debug, Default)]
pub(crate) struct HoldWords(Mutex<Vec<HoldWord>>);

impl HoldWords {
    /// As many as threads plan at once, mostly.
    const MOST: usize = 4;

    fn words(&self) -> MutexGuard<'_, Vec<HoldWord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_or_new(&self, cuda: &Cuda) -> Result<HoldWord, GpuError> {
        if let Some(word) = self.words().pop() {
            return Ok(word);
        }
        cuda.make_current()?;
        let word = LockedBuffer::new(&0, 1).map_err(|e| from_cust("cuMemAllocHost", e))?;
        Ok(HoldWord(word))
    }

    fn put(&self, word: HoldWord) {
        let mut words = self.words();
        if words.len() < Self::MOST {
            words.push(word);
        }
    }
}

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
        let (x, y) = (DeviceBuffer::zeroed(device, x)?, DeviceBuffer::uninitialized(device, y)?);
        let stream = Stream::of_planning(device)?;
        let mark = || Ok::<_, GpuError>((Event::new(device)?, Event::new(device)?));
        let marks = [mark()?, mark()?];
        Ok(Self { x, y, stream, marks, hold: Hold::new(device)?, host_bound: false })
    }

    /// Seconds of a product of each plan: of a batch in a row, the least of the batches. Batches of all plans are waited
    /// for together. Without the host's part this takes a fraction of the time that [`time`] takes; batches that the host
    /// launches no faster than they run are timed again, held until they are launched as a whole, as
    /// are those of all later plans; so are the first ones if the device's rates, once they are known, say that a product takes less than its launches.
    /// On the emulator nothing runs, and the time is what its device says
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
        let (mut least, mut total) = ([Duration::MAX; N], [Duration::ZERO; N]);
        for batch in 0..batches.most {
            if batch > 0 && (self.host_bound || total.iter().all(|of| *of >= batches.min_time)) {
                break;
            }
            let launches = self.warm_up(batches, &mut plans)?;
            let is_shorter = |(plan, launch): (&&mut BoxedPlan<T>, &Duration)| {
                let bytes = plan.footprint().bytes_moved;
                let rates = device.known_rates();
                let expected = rates.and_then(|rates| rates.time(bytes, device.info().l2_bytes));
                expected.is_some_and(|expected| expected < *launch)
            };
            self.host_bound |= batches.held || plans.iter().zip(&launches).any(is_shorter);
            let times = self.batch(batches, &mut plans)?;
            for i in 0..N {
                least[i] = least[i].min(times[i].device);
                total[i] += times[i].device;
            }
            let waited = |of: &BatchTime| of.device < of.host.mul_f64(HOST_BOUND);
            if !self.host_bound && times.iter().any(waited) {
                self.host_bound = true;
                self.warm_up(batches, &mut plans)?;
                let times = self.batch(batches, &mut plans)?;
                for i in 0..N {
                    least[i] = least[i].min(times[i].device);
                }
            }
        }
        Ok(least.map(|least| least.as_secs_f64() / batches.runs as f64))
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
        batches: Batches,
        plans: &mut [&mut BoxedPlan<T>; N],
    ) -> Result<[Duration; N], GpuError> {
        let mut launches = [Duration::ZERO; N];
        for (plan, launch) in plans.iter_mut().zip(&mut launches).rev() {
            let before = Instant::now();
            for _ in 0..batches.warm_up {
                plan.launch(&self.x, &mut self.y, &self.stream)?;
            }
            *launch = before.elapsed() / batches.warm_up as u32;
        }
        Ok(launches)
    }

    /// The times of a batch of each plan.
    fn batch<const N: usize>(
        &mut self,
        batches: Batches,
        plans: &mut [&mut BoxedPlan<T>; N],
    ) -> Result<[BatchTime; N], GpuError> {
        let Self { x, y, stream, marks, hold, host_bound } = self;
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
                for _ in 0..batches.runs {
                    plan.launch(x, y, stream)?;
                }
                host[i] = before.elapsed();
                marks[i].1.record(stream)?;
            }
            Ok(())
        };
        if *host_bound {
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
