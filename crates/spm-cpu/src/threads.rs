//! The thread pool that runs a plan; the plan's owner sets its size and lifetime.

use std::cell::UnsafeCell;
use std::fmt;
use std::hint;
use std::io;
use std::mem;
use std::num::NonZero;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
#[cfg(all(unix, not(miri)))]
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use spm_formats::kernel::Schedule;
use spm_formats::partition;

use crate::cores;
use crate::disjoint::Disjoint;

/// How long threads poll for each other.
#[derive(Debug, Clone, Copy)]
struct Polls {
    /// Number of polls of an idle worker before it sleeps.
    before_sleep: u32,
    /// Number of polls for the end of the workers before the caller yields.
    before_yield: u32,
}

impl Polls {
    /// Idle workers poll for a few tens of microseconds, so that products in quick succession find them awake.
    const ON_OWN_CORES: Self = Self { before_sleep: 2_000, before_yield: 10_000 };
    /// A thread that polls may hold the core that another one of the pool waits for; libgomp polls less then, too.
    const ON_SHARED_CORES: Self = Self { before_sleep: 20, before_yield: 20 };

    fn of(threads: usize) -> Self {
        // The question takes longer than starting a pool of the caller alone.
        let cores = || thread::available_parallelism().map_or(usize::MAX, NonZero::get);
        if threads > 1 && threads > cores() { Self::ON_SHARED_CORES } else { Self::ON_OWN_CORES }
    }
}

/// Sleeping workers that a thread wakes, each of which wakes as many: waking one takes microseconds, so that with
/// many threads the first would sleep again before the last has begun if the caller woke all of them.
const WOKEN: usize = 4;

/// Empty jobs in succession that are quick when the threads have cores of their own, and how long to wait for
/// that: longer than a system lets two threads share a core while another one is free.
const SETTLED: u32 = 16;
const SETTLING: Duration = Duration::from_millis(5);

/// Threads that no system starts at once (Linux numbers 2^22 at most): a larger count is refused
/// before memory for it is asked for.
const MOST_THREADS: usize = 1 << 22;

type Job<'a> = dyn Fn(usize) + Sync + 'a;

/// A thread pool of `count` threads, the calling thread and `count - 1` workers, that runs one job
/// at a time.
///
/// Reading and the conversions of formats use a rayon pool. A product takes microseconds, and waking a
/// sleeping pool costs more than that. The workers of this pool poll for a while before they sleep,
/// as OpenMP's threads do, and a job is started without an allocation.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let (threads, sum) = (spm_cpu::Threads::new(4), AtomicUsize::new(0));
/// threads.run(|part| {
///     sum.fetch_add(part, Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 1 + 2 + 3);
/// ```
///
/// Clones share the pool. A call while the pool is busy (with another thread's product, or from
/// inside a job) runs all parts on the calling thread, so it neither waits nor deadlocks.
///
/// A process that was forked (Unix) has none of the workers of its parent: its first job starts others. If
/// another thread ran a job at the moment of the fork, the pool stays busy in the new process.
#[derive(Clone)]
pub struct Threads {
    pool: Arc<Pool>,
    /// Whether the caller runs all parts.
    alone: bool,
}

struct Pool {
    count: usize,
    /// Locked during a job.
    workers: Mutex<Workers>,
}

struct Workers {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
    /// [`forks`] of the process that these run in.
    forks: usize,
}

struct Shared {
    polls: Polls,
    /// Number of jobs so far; a worker runs a job when this changes.
    epoch: AtomicUsize,
    job: UnsafeCell<Option<*const Job<'static>>>,
    /// Number of workers that have not finished the current job.
    running: OwnLine<AtomicUsize>,
    /// Of each worker.
    sleepers: Vec<Sleeper>,
    /// Whether a worker's part of the current job has panicked.
    panicked: AtomicBool,
    stop: AtomicBool,
}

/// What nothing else shares a cache line with, nor the line that processors fetch beside it: workers that are done
/// write it while others poll `epoch`.
#[repr(align(128))]
struct OwnLine<T>(T);

/// How a worker is woken.
struct Sleeper {
    /// Whether it sleeps and must be woken.
    is_asleep: AtomicBool,
    /// The core of the thread that has last woken it.
    waker: AtomicUsize,
}

// SAFETY: `job` is written by the caller only while no worker runs (`running` is 0 and the caller
// holds `busy`), and read by workers only after the Release increment of `epoch` that follows.
unsafe impl Sync for Shared {}
// SAFETY: as above; the pointee is Sync, and outlives the job because the caller waits for it.
unsafe impl Send for Shared {}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads({})", self.count())
    }
}

impl Threads {
    /// A pool of `count` threads, the caller included; 0 is taken as 1.
    ///
    /// # Panics
    /// When the system refuses to start a thread, or would.
    pub fn new(count: usize) -> Self {
        assert!(count <= MOST_THREADS, "no system starts {count} threads");
        let count = count.max(1);
        let workers = Workers::start(count - 1).expect("the system starts a thread");
        Self { pool: Arc::new(Pool { count, workers: Mutex::new(workers) }), alone: false }
    }

    /// The same number of parts, all of which the caller of [`Threads::run`] runs one after the other.
    pub(crate) fn on_the_caller(&self) -> Self {
        Self { pool: Arc::clone(&self.pool), alone: true }
    }

    /// One thread for each core that this process may use.
    ///
    /// # Panics
    /// As [`Threads::new`].
    pub fn all_cores() -> Self {
        Self::new(thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// Number of threads of the pool, the caller included.
    pub fn count(&self) -> usize {
        self.pool.count
    }

    /// Number of threads that run the parts.
    pub(crate) fn working(&self) -> usize {
        if self.alone { 1 } else { self.count() }
    }

    /// Calls `job(part)` once for each part of `0..count()`, each on its own thread and part 0 on
    /// the caller (all on the caller while the pool is busy). Returns when all parts are done.
    ///
    /// # Panics
    /// When a part panics, after all parts have ended.
    pub fn run(&self, job: impl Fn(usize) + Sync) {
        self.run_parts(&job);
    }

    /// The same of any job: compiled once.
    fn run_parts(&self, job: &Job<'_>) {
        if self.count() == 1 {
            return job(0);
        }
        if self.alone {
            return (0..self.count()).for_each(job);
        }
        let mut workers = match self.pool.workers.try_lock() {
            Ok(workers) => workers,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return (0..self.count()).for_each(job),
        };
        if workers.forks != forks() && workers.restart().is_err() {
            return (0..self.count()).for_each(job);
        }
        let Workers { shared, handles, .. } = &*workers;
        let pointer: *const Job<'_> = job;
        // SAFETY: only the lifetime changes; `Waiting` keeps this call alive until no worker can
        // use the pointer any more. No worker runs now, so nobody reads the cell.
        unsafe {
            *shared.job.get() =
                Some(std::mem::transmute::<*const Job<'_>, *const Job<'static>>(pointer));
        }
        // The job before may have panicked on the caller too, which then asked no further.
        shared.panicked.store(false, Ordering::Relaxed);
        shared.running.0.store(handles.len(), Ordering::Relaxed);
        shared.epoch.fetch_add(1, Ordering::SeqCst);
        let woken = woken_by(0, handles.len());
        shared.wake(woken.clone(), handles[woken].iter().map(JoinHandle::thread));
        let waiting = Waiting(shared);
        job(0);
        drop(waiting);
        assert!(!shared.panicked.load(Ordering::Relaxed), "a thread of the pool panicked");
    }

    /// What `job` returns for each index of `0..count`, in order. Each of these threads has consecutive indices, as many as
    /// the others, so that what it makes is where it will be read. Where this is one thread, those of rayon share them if
    /// there are several.
    pub(crate) fn map<R: Send>(&self, count: usize, job: impl Fn(usize) -> R + Sync) -> Vec<R> {
        if self.count() == 1 && count > 1 {
            return (0..count).into_par_iter().map(&job).collect();
        }
        let mut results: Vec<Option<R>> = (0..count).map(|_| None).collect();
        let of = Disjoint::new(&mut results);
        self.for_each_chunk(count, Schedule::Static, 0, |indices| {
            // SAFETY: each index is in one chunk.
            let results = unsafe { of.range(indices.clone()) };
            indices.zip(results).for_each(|(index, result)| *result = Some(job(index)));
        });
        results.into_iter().map(|result| result.expect("a chunk has each index")).collect()
    }

    /// Runs empty jobs until some in succession take `expected` seconds each at most, but not for longer than
    /// [`SETTLING`]. Behind a conversion other threads may still hold the cores that the workers were on, and
    /// a worker may share the caller's core until the system moves it.
    pub(crate) fn settle(&self, expected: f64) {
        let (start, mut quick) = (Instant::now(), 0);
        while self.working() > 1 && quick < SETTLED && start.elapsed() < SETTLING {
            let begin = Instant::now();
            self.run(|part| {
                hint::black_box(part);
            });
            quick = if begin.elapsed().as_secs_f64() <= expected { quick + 1 } else { 0 };
        }
    }

    /// Calls `body` with ranges that cover `0..total` once, scheduled as in OpenMP.
    ///
    /// Static: chunks are assigned to the threads in turn; with `chunk` 0 each thread gets one
    /// range of equal size. Dynamic: a thread that is done takes the next chunk (0 counts as 1).
    ///
    /// # Panics
    /// As [`Threads::run`].
    pub fn for_each_chunk(
        &self,
        total: usize,
        schedule: Schedule,
        chunk: usize,
        body: impl Fn(Range<usize>) + Sync,
    ) {
        let count = self.count();
        let nth = |index: usize, chunk: usize| {
            let start = index.checked_mul(chunk).filter(|&start| start < total)?;
            Some(start..total.min(start.saturating_add(chunk)))
        };
        match (schedule, chunk) {
            (Schedule::Static, 0) => self.run(|part| {
                let range = partition::even(total, count, part);
                if !range.is_empty() {
                    body(range);
                }
            }),
            (Schedule::Static, chunk) => self.run(|part| {
                (part..).step_by(count).map_while(|index| nth(index, chunk)).for_each(&body);
            }),
            (Schedule::Dynamic, chunk) => {
                let next = AtomicUsize::new(0);
                self.run(|_| {
                    let take = || nth(next.fetch_add(1, Ordering::Relaxed), chunk.max(1));
                    std::iter::from_fn(take).for_each(&body);
                });
            }
        }
    }
}

impl Workers {
    fn start(count: usize) -> io::Result<Self> {
        let forks = forks();
        let shared = Arc::new(Shared {
            polls: Polls::of(count + 1),
            epoch: AtomicUsize::new(0),
            job: UnsafeCell::new(None),
            running: OwnLine(AtomicUsize::new(0)),
            sleepers: (0..count).map(|_| Sleeper::awake()).collect(),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        // From the first thread on: if one cannot start, those before it end.
        let mut workers = Self { shared, handles: Vec::with_capacity(count), forks };
        // The last one first: each knows those that it wakes, which come behind it.
        for worker in (0..count).rev() {
            let shared = Arc::clone(&workers.shared);
            let of = |woken: usize| workers.handles[count - 1 - woken].thread().clone();
            let woken: Vec<Thread> = woken_by(worker + 1, count).map(of).collect();
            let builder = thread::Builder::new().name(format!("spm-{}", worker + 1));
            let handle = builder.spawn(move || shared.work(worker, &woken))?;
            if let Some(core) = cores::current() {
                cores::move_away(&handle, core);
            }
            workers.handles.push(handle);
        }
        workers.handles.reverse();
        Ok(workers)
    }

    /// Starts as many workers in this process.
    #[cold]
    fn restart(&mut self) -> io::Result<()> {
        *self = Self::start(self.handles.len())?;
        Ok(())
    }
}

/// The workers, of so many, that a part's thread wakes; the caller has part 0.
fn woken_by(part: usize, workers: usize) -> Range<usize> {
    let first = (WOKEN * part).min(workers);
    first..(first + WOKEN).min(workers)
}

/// Number of forks between the first process of the program and this one, from the first call on.
fn forks() -> usize {
    static FORKS: AtomicUsize = AtomicUsize::new(0);
    #[cfg(all(unix, not(miri)))]
    {
        static REGISTERED: Once = Once::new();
        extern "C" fn count() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the handler is one that a child may run: it changes an atomic number only. If it cannot be
        // registered for want of memory, this process is as before, and a child waits for its workers.
        REGISTERED.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(count));
        });
    }
    FORKS.load(Ordering::Relaxed)
}

/// Waits for the workers, also when the caller's own part panics.
struct Waiting<'a>(&'a Shared);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut polls = 0;
        while self.0.running.0.load(Ordering::Acquire) != 0 {
            polls += 1;
            if polls < self.0.polls.before_yield { hint::spin_loop() } else { thread::yield_now() }
        }
    }
}

impl Sleeper {
    fn awake() -> Self {
        Self { is_asleep: AtomicBool::new(false), waker: AtomicUsize::new(usize::MAX) }
    }
}

impl Shared {
    /// Runs the jobs of a worker, which wakes the workers of these threads.
    fn work(&self, worker: usize, woken: &[Thread]) {
        let mut seen = 0;
        loop {
            seen = self.wait_for_job(worker, seen);
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            self.wake(woken_by(worker + 1, self.sleepers.len()), woken);
            // SAFETY: the epoch moved on after the caller stored the job, and the caller waits in
            // `Waiting` until `running` is 0, so the pointer is valid until the decrement below.
            let job = unsafe { &*(*self.job.get()).expect("an epoch has a job") };
            if panic::catch_unwind(AssertUnwindSafe(|| job(worker + 1))).is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            self.running.0.fetch_sub(1, Ordering::Release);
        }
    }

    /// Wakes those of some workers that sleep, whose threads these are.
    fn wake<'t>(&self, workers: Range<usize>, threads: impl IntoIterator<Item = &'t Thread>) {
        for (sleeper, thread) in self.sleepers[workers].iter().zip(threads) {
            if sleeper.is_asleep.load(Ordering::SeqCst) {
                let core = cores::current().unwrap_or(usize::MAX);
                sleeper.waker.store(core, Ordering::Relaxed);
                thread.unpark();
            }
        }
    }

    fn wait_for_job(&self, worker: usize, seen: usize) -> usize {
        for _ in 0..self.polls.before_sleep {
            // One order of all accesses: this thread looks for sleepers next.
            let epoch = self.epoch.load(Ordering::SeqCst);
            if epoch != seen {
                return epoch;
            }
            hint::spin_loop();
        }
        // Announce, then look again: those that wake see the increment, then look for sleepers.
        let sleeper = &self.sleepers[worker];
        sleeper.is_asleep.store(true, Ordering::SeqCst);
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            if epoch != seen {
                sleeper.is_asleep.store(false, Ordering::Relaxed);
                cores::move_away_myself(sleeper.waker.load(Ordering::Relaxed));
                return epoch;
            }
            thread::park();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if self.forks != forks() {
            // Their threads are in another process: there is nobody to join or to detach.
            return self.handles.drain(..).for_each(mem::forget);
        }
        self.shared.stop.store(true, Ordering::Release);
        self.shared.epoch.fetch_add(1, Ordering::SeqCst);
        for worker in self.handles.drain(..) {
            worker.thread().unpark();
            // A job's panic was caught; a worker itself has nothing to report.
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(total: usize, visit: impl Fn(&[AtomicUsize])) -> Vec<usize> {
        let seen: Vec<_> = (0..total).map(|_| AtomicUsize::new(0)).collect();
        visit(&seen);
        seen.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn what_a_job_returns_is_in_the_order_of_the_indices() {
        for (threads, count) in [(1, 5), (3, 0), (3, 2), (3, 3), (3, 11)] {
            let squares: Vec<_> = (0..count).map(|index| index * index).collect();
            let threads = Threads::new(threads);
            assert_eq!(threads.map(count, |index| index * index), squares);
            assert_eq!(threads.on_the_caller().map(count, |index| index * index), squares);
        }
    }

    #[test]
    #[should_panic(expected = "no system starts")]
    fn a_count_beyond_every_system_is_refused_before_memory_runs_out() {
        Threads::new(1 << 45);
    }

    #[test]
    fn each_part_runs_once() {
        for count in [1, 2, 5] {
            let threads = Threads::new(count);
            for _ in 0..1000 {
                let seen = counts(count, |seen| {
                    threads.run(|part| {
                        seen[part].fetch_add(1, Ordering::Relaxed);
                    });
                });
                assert_eq!(seen, vec![1; count]);
            }
        }
    }

    #[test]
    fn chunks_cover_the_loop_once() {
        let threads = Threads::new(3);
        for schedule in [Schedule::Static, Schedule::Dynamic] {
            for chunk in [0, 1, 4, 100, usize::MAX] {
                for total in [0, 1, 13] {
                    let seen = counts(total, |seen| {
                        threads.for_each_chunk(total, schedule, chunk, |range| {
                            assert!(!range.is_empty());
                            for i in range {
                                seen[i].fetch_add(1, Ordering::Relaxed);
                            }
                        });
                    });
                    assert_eq!(seen, vec![1; total], "{schedule:?} chunk {chunk} total {total}");
                }
            }
        }
    }

    #[test]
    fn a_nested_call_runs_on_the_caller() {
        let threads = Threads::new(2);
        let seen = counts(4, |seen| {
            threads.run(|outer| {
                threads.run(|inner| {
                    seen[outer * 2 + inner].fetch_add(1, Ordering::Relaxed);
                });
            });
        });
        assert_eq!(seen, [1; 4]);
    }

    /// The second caller finds the pool busy until it is done itself.
    #[test]
    fn a_second_caller_does_all_its_parts_itself() {
        let (threads, started) = (Threads::new(3), std::sync::Barrier::new(2));
        let (done, start) = (AtomicBool::new(false), std::time::Instant::now());
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                threads.run(|part| {
                    if part == 0 {
                        started.wait();
                    }
                    while !done.load(Ordering::Acquire) {
                        assert!(start.elapsed().as_secs() < 60, "the second caller waits");
                        thread::yield_now();
                    }
                });
            });
            started.wait();
            let me = thread::current().id();
            let seen = counts(3, |seen| {
                threads.run(|part| {
                    assert_eq!(thread::current().id(), me);
                    seen[part].fetch_add(1, Ordering::Relaxed);
                });
            });
            done.store(true, Ordering::Release);
            assert_eq!(seen, [1; 3]);
            first.join().unwrap();
        });
    }

    #[test]
    fn a_panic_of_any_part_reaches_the_caller_and_the_team_lives_on() {
        let threads = Threads::new(2);
        for bad in [0, 1] {
            let job = || threads.run(|part| assert_ne!(part, bad));
            assert!(panic::catch_unwind(AssertUnwindSafe(job)).is_err());
        }
        let seen = counts(2, |seen| {
            threads.run(|part| {
                seen[part].fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(seen, [1; 2]);
    }

    #[test]
    fn a_panic_of_all_parts_is_forgotten_by_the_next_job() {
        let threads = Threads::new(3);
        let job = || threads.run(|part| panic!("part {part}"));
        assert!(panic::catch_unwind(AssertUnwindSafe(job)).is_err());
        threads.run(|_| {});
    }

    /// Runs `child` in a forked process, and expects it to return true within a minute.
    #[cfg(all(unix, not(miri)))]
    fn in_a_child(child: impl FnOnce() -> bool) {
        // SAFETY: the child starts threads, multiplies and ends without unwinding or running destructors.
        let process = unsafe { libc::fork() };
        assert!(process >= 0);
        if process == 0 {
            let passed = panic::catch_unwind(AssertUnwindSafe(child)).unwrap_or(false);
            // SAFETY: ends the process.
            unsafe { libc::_exit(if passed { 0 } else { 1 }) };
        }
        let start = std::time::Instant::now();
        let mut status = 0;
        // SAFETY: the process is a child of this one; `status` is a place for its status.
        while unsafe { libc::waitpid(process, &raw mut status, libc::WNOHANG) } == 0 {
            if start.elapsed().as_secs() >= 60 {
                // SAFETY: the process is a child of this one, which has not been waited for.
                unsafe { libc::kill(process, libc::SIGKILL) };
            }
            thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(status, 0, "the child failed, or hung");
    }

    #[cfg(all(unix, not(miri)))]
    #[test]
    fn a_forked_process_has_workers_of_its_own() {
        let (threads, dropped) = (Threads::new(3), Threads::new(2));
        let ids = |threads: &Threads| {
            let ids = Mutex::new(Vec::new());
            threads.run(|_| ids.lock().unwrap().push(thread::current().id()));
            let mut ids = ids.into_inner().unwrap();
            ids.sort_by_key(|id| format!("{id:?}"));
            ids.dedup();
            ids.len()
        };
        dropped.run(|_| {});
        assert_eq!(ids(&threads), 3);
        in_a_child(|| {
            // The parent's workers are neither waited for nor joined.
            drop(dropped);
            let found = ids(&threads) == 3;
            in_a_child(|| ids(&threads) == 3);
            found
        });
        assert_eq!(ids(&threads), 3);
    }

    #[test]
    fn settling_ends_whatever_is_expected() {
        for (count, expected) in [(1, 0.0), (3, 0.0), (3, 1e9)] {
            let threads = Threads::new(count);
            threads.settle(expected);
            threads.on_the_caller().settle(expected);
        }
    }

    #[test]
    fn all_parts_may_run_on_the_caller() {
        let (threads, me) = (Threads::new(3), thread::current().id());
        let alone = threads.on_the_caller();
        let seen = counts(3, |seen| {
            alone.run(|part| {
                assert_eq!(thread::current().id(), me);
                seen[part].fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(seen, [1; 3]);
        assert_eq!((alone.count(), alone.working(), threads.working()), (3, 1, 3));
    }

    #[test]
    fn sleeping_workers_wake_up() {
        // Workers that the caller wakes, and those that these wake in turn.
        for count in [2, 2 + WOKEN * WOKEN] {
            let threads = Threads::new(count);
            for _ in 0..3 {
                thread::sleep(std::time::Duration::from_millis(20));
                threads.run(|_| {});
            }
        }
    }

    #[test]
    fn each_worker_is_woken_by_one_thread_before_it() {
        for workers in [0, 1, WOKEN, 63] {
            let woken = (0..=workers).flat_map(|part| {
                let woken = woken_by(part, workers);
                assert!(woken.start >= part || woken.is_empty(), "{woken:?} by part {part}");
                woken
            });
            assert!(woken.eq(0..workers), "{workers} workers");
        }
    }
}
