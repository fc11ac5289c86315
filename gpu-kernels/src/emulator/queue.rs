//! Emulated streams: queues of work that run in an order that streams and events allow.
//!
//! By default an operation runs when it is enqueued. A device that defers work
//! ([`EmulatorOptions::deferred`](super::EmulatorOptions::deferred)) keeps it until something waits
//! for it. The seed then draws the next stream, one operation at a time.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use super::heap::Heap;
use super::order::{Clock, Operation};
use super::rng::Rng;
use super::{Defect, EmuBuffer, Emulator, EmulatorError};
use crate::device::Element;
use crate::{Dim3, Kernel};

type Run = Box<dyn FnOnce(&mut Heap) -> Result<(), EmulatorError> + Send>;

/// An operation in a stream.
enum Work {
    /// Uses device memory.
    Device(Operation, Run),
    Host(Box<dyn FnOnce() + Send>),
    Record(Arc<OnceLock<Instant>>),
    Wait(Arc<OnceLock<Instant>>),
}

/// The streams of a device.
pub(super) struct Queues {
    deferred: bool,
    /// Pending work of each stream that has some.
    waiting: BTreeMap<u64, VecDeque<Work>>,
    /// Draws the next stream.
    schedule: Rng,
    /// Streams made so far; the number 0 is that of launches without a stream.
    streams: u64,
    /// The clock of each stream's next operation, and the clock of the host.
    clocks: BTreeMap<u64, Clock>,
    host: Clock,
    failed: Option<EmulatorError>,
}

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting: usize = self.waiting.values().map(VecDeque::len).sum();
        f.debug_struct("Queues").field("waiting", &waiting).finish_non_exhaustive()
    }
}

impl Queues {
    pub(super) fn new(deferred: bool, seed: u64) -> Self {
        Self {
            deferred,
            waiting: BTreeMap::new(),
            schedule: Rng::new(seed),
            streams: 0,
            clocks: BTreeMap::new(),
            host: Clock::default(),
            failed: None,
        }
    }

    /// The clock of a stream's next operation.
    fn clock(&mut self, stream: u64) -> &mut Clock {
        let clock = self.clocks.entry(stream).or_default();
        clock.join(&self.host);
        clock
    }

    /// Enqueues work in a stream; it runs immediately unless it is deferred.
    fn put(&mut self, stream: u64, work: Work, heap: &Mutex<Heap>) -> Result<(), EmulatorError> {
        if self.deferred {
            self.waiting.entry(stream).or_default().push_back(work);
            return Ok(());
        }
        run(work, heap)
    }

    /// Runs pending work in an order drawn from the seed, until `enough` or nothing is left. After
    /// a failure nothing more runs, as on a device.
    fn drain(&mut self, heap: &Mutex<Heap>, enough: impl Fn(&Self) -> bool) {
        while !enough(self) {
            let blocked = |work: Option<&Work>| matches!(work, Some(Work::Wait(mark)) if mark.get().is_none());
            let ready: Vec<u64> = self
                .waiting
                .iter()
                .filter(|(_, queue)| !blocked(queue.front()))
                .map(|(&stream, _)| stream)
                .collect();
            if ready.is_empty() {
                // A stream waits for earlier marks only: one of them is always ready.
                assert!(self.waiting.is_empty(), "streams that wait for each other");
                return;
            }
            let stream = ready[self.schedule.below(ready.len())];
            let Some(queue) = self.waiting.get_mut(&stream) else { return };
            let work = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&stream);
            }
            if let Some(Err(error)) = work.map(|work| run(work, heap)) {
                self.failed.get_or_insert(error);
                self.give_up();
            }
        }
    }
}

impl Queues {
    /// Drops all pending work. Its marks are passed, so that nothing waits for them for ever.
    fn give_up(&mut self) {
        for work in std::mem::take(&mut self.waiting).into_values().flatten() {
            if let Work::Record(mark) = work {
                let _ = mark.set(Instant::now());
            }
        }
    }
}

fn run(work: Work, heap: &Mutex<Heap>) -> Result<(), EmulatorError> {
    match work {
        Work::Device(operation, run) => {
            let mut heap = lock(heap);
            heap.begin(operation);
            return run(&mut heap);
        }
        Work::Host(function) => function(),
        Work::Record(mark) => {
            let _ = mark.set(Instant::now());
        }
        Work::Wait(_) => {}
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Emulator {
    pub(super) fn heap(&self) -> MutexGuard<'_, Heap> {
        lock(&self.heap)
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        lock(&self.queues)
    }

    /// Runs all pending work. A failure is reported by the next [`Emulator::synchronize`].
    pub(super) fn drain(&self) {
        let mut queues = self.queues();
        queues.drain(&self.heap, |_| false);
        queues.host.everything();
    }

    /// Waits until everything in all streams is done.
    ///
    /// # Errors
    /// The first failure of deferred work that was not reported yet; what came after it in any
    /// stream was not done.
    pub fn synchronize(&self) -> Result<(), EmulatorError> {
        self.drain();
        self.queues().failed.take().map_or(Ok(()), Err)
    }

    /// The operation of a launch without a stream, before which everything else is done.
    pub(super) fn alone(&self, name: &'static str) -> Result<Operation, EmulatorError> {
        self.synchronize()?;
        let mut queues = self.queues();
        let operation = queues.clock(0).step(0, name);
        queues.host.everything();
        Ok(operation)
    }

    /// A new stream.
    pub fn stream(&self) -> EmuStream {
        let mut queues = self.queues();
        queues.streams += 1;
        EmuStream { emulator: self.clone(), id: queues.streams }
    }
}

/// A stream of an [`Emulator`]. Work that is pending when it is dropped still runs.
#[derive(Debug)]
pub struct EmuStream {
    emulator: Emulator,
    id: u64,
}

impl Drop for EmuStream {
    fn drop(&mut self) {
        self.emulator.queues().clocks.remove(&self.id);
    }
}

impl EmuStream {
    /// As [`Emulator::launch`], in this stream.
    ///
    /// # Errors
    /// As [`Emulator::launch`]; of deferred work the next [`EmuStream::synchronize`] reports what
    /// goes wrong in the kernel.
    pub fn launch<K: Kernel>(
        &self,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        shared_bytes: u32,
        args: K::Args,
    ) -> Result<(), EmulatorError>
    where
        K::Args: Send,
    {
        let shape = (grid.into(), block.into(), shared_bytes);
        self.emulator.check_launch::<K>(shape)?;
        let options = self.emulator.options;
        self.device(K::NAME, Box::new(move |heap| options.run::<K>(shape, args, heap)))
    }

    /// Overwrites a buffer with zero bytes.
    ///
    /// # Errors
    /// Another stream may be using it.
    ///
    /// # Panics
    /// With a buffer of another device.
    pub fn zero<T: Element>(&self, buffer: &EmuBuffer<T>) -> Result<(), EmulatorError> {
        let (name, id) = ("zeroing", self.id_of(buffer));
        self.device(name, Box::new(move |heap| heap.zero(id).map_err(|d| of_memory(name, d))))
    }

    /// Overwrites `target` with `source`.
    ///
    /// # Errors
    /// Another stream may be using them.
    ///
    /// # Panics
    /// With buffers of another device or of different lengths.
    pub fn copy<T: Element>(
        &self,
        source: &EmuBuffer<T>,
        target: &EmuBuffer<T>,
    ) -> Result<(), EmulatorError> {
        assert_eq!(source.len(), target.len(), "buffers of one length");
        self.copy_part((source, 0), (target, 0), source.len())
    }

    /// Overwrites `length` elements of a buffer with those of another one, each from an element on.
    ///
    /// # Errors
    /// Another stream may be using them.
    ///
    /// # Panics
    /// With buffers of another device, or which end before.
    pub fn copy_part<T: Element>(
        &self,
        (source, from): (&EmuBuffer<T>, usize),
        (target, to): (&EmuBuffer<T>, usize),
        length: usize,
    ) -> Result<(), EmulatorError> {
        let part = |buffer: &EmuBuffer<T>, first: usize| {
            assert!(first + length <= buffer.len(), "a buffer of {} elements", buffer.len());
            let bytes = size_of::<T>();
            (self.id_of(buffer), first * bytes..(first + length) * bytes)
        };
        let (name, from, to) = ("copy", part(source, from), part(target, to));
        self.device(name, Box::new(move |heap| heap.copy(from, to).map_err(|d| of_memory(name, d))))
    }

    /// Calls a function of the host, which must not use the device nor own what lies there.
    pub fn call(&self, function: impl FnOnce() + Send + 'static) {
        self.put(Work::Host(Box::new(function)));
    }

    /// What is put into the stream from now on is done after the mark, where it is now.
    pub fn wait(&self, event: &EmuEvent) {
        let Some((mark, clock)) = lock(&event.0).clone() else { return };
        self.emulator.queues().clock(self.id).join(&clock);
        self.put(Work::Wait(mark));
    }

    /// Waits until everything in the stream is done; other streams may have gone on by then, or not.
    ///
    /// # Errors
    /// As [`Emulator::synchronize`].
    pub fn synchronize(&self) -> Result<(), EmulatorError> {
        let mut queues = self.emulator.queues();
        queues.drain(&self.emulator.heap, |queues| !queues.waiting.contains_key(&self.id));
        let done = queues.clock(self.id).clone();
        queues.host.join(&done);
        queues.failed.take().map_or(Ok(()), Err)
    }

    fn id_of<T: Element>(&self, buffer: &EmuBuffer<T>) -> usize {
        assert!(self.emulator.is(buffer.emulator()), "a buffer of another device");
        buffer.id
    }

    fn device(&self, name: &'static str, run: Run) -> Result<(), EmulatorError> {
        let mut queues = self.emulator.queues();
        let operation = queues.clock(self.id).step(self.id, name);
        let traced = self.emulator.options.detect_races;
        let operation = if traced { operation } else { operation.untraced() };
        queues.put(self.id, Work::Device(operation, run), &self.emulator.heap)
    }

    /// Work that cannot fail.
    fn put(&self, work: Work) {
        let mut queues = self.emulator.queues();
        let _ = queues.put(self.id, work, &self.emulator.heap);
    }
}

fn of_memory(operation: &'static str, defect: Defect) -> EmulatorError {
    EmulatorError::Operation { operation, defect }
}

/// A mark, and what is done before it.
type Recorded = (Arc<OnceLock<Instant>>, Clock);

/// A mark in a stream.
#[derive(Debug, Default)]
pub struct EmuEvent(Mutex<Option<Recorded>>);

impl EmuEvent {
    /// Puts the mark behind everything that is in the stream now.
    pub fn record(&self, stream: &EmuStream) {
        let mark = Arc::new(OnceLock::new());
        // Held until the mark is in the stream: another thread must not wait for one that is in none.
        let mut recorded = lock(&self.0);
        let clock = stream.emulator.queues().clock(stream.id).clone();
        stream.put(Work::Record(Arc::clone(&mark)));
        *recorded = Some((mark, clock));
    }

    /// When the device passed the mark; `None` before that.
    pub fn passed(&self) -> Option<Instant> {
        lock(&self.0).as_ref().and_then(|(mark, _)| mark.get().copied())
    }

    /// Waits until the device has passed the mark, which is in a stream of `emulator`; at once where
    /// it is in none.
    ///
    /// # Errors
    /// As [`Emulator::synchronize`].
    pub fn synchronize(&self, emulator: &Emulator) -> Result<(), EmulatorError> {
        let Some((mark, clock)) = lock(&self.0).clone() else { return Ok(()) };
        let mut queues = emulator.queues();
        queues.drain(&emulator.heap, |_| mark.get().is_some());
        queues.host.join(&clock);
        queues.failed.take().map_or(Ok(()), Err)
    }
}
