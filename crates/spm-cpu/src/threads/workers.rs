//! The threads of a pool besides the caller: how they get a job, wait for the next one, and wake each other.

use std::cell::UnsafeCell;
use std::hint;
use std::io;
use std::mem;
use std::num::NonZero;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
#[cfg(all(unix, not(miri)))]
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle, Thread};

use crate::cores;

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
pub(super) const WOKEN: usize = 4;

/// What is called with the number of each part.
pub(super) type Job<'a> = dyn Fn(usize) + Sync + 'a;

/// The threads besides the caller, of one pool.
pub(super) struct Workers {
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
    /// Whether each worker sleeps and must be woken.
    asleep: Vec<AtomicBool>,
    /// The core of each thread when it began its last job: the caller's, then those of the workers.
    cores: Vec<AtomicUsize>,
    /// Whether a worker's part of the current job has panicked.
    panicked: AtomicBool,
    stop: AtomicBool,
}

/// What nothing else shares a cache line with, nor the line that processors fetch beside it: workers that are done
/// write it while others poll `epoch`.
#[repr(align(128))]
pub(super) struct OwnLine<T>(pub(super) T);

// SAFETY: `job` is written by `Workers::run` only while no worker runs (`running` is 0, and it has the
// workers to itself), and read by workers only after the Release increment of `epoch` that follows.
unsafe impl Sync for Shared {}
// SAFETY: as above; the pointee is Sync, and outlives the job because the caller waits for it.
unsafe impl Send for Shared {}

impl Workers {
    /// Starts so many workers.
    pub(super) fn start(count: usize) -> io::Result<Self> {
        let forks = forks();
        let shared = Arc::new(Shared {
            polls: Polls::of(count + 1),
            epoch: AtomicUsize::new(0),
            job: UnsafeCell::new(None),
            running: OwnLine(AtomicUsize::new(0)),
            asleep: (0..count).map(|_| AtomicBool::new(false)).collect(),
            cores: (0..=count).map(|_| AtomicUsize::new(usize::MAX)).collect(),
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

    /// Calls `job(part)` for part 0 on the caller and for the others on a worker each, and returns true when all are done.
    /// Returns false without a call in a forked process that can start no workers.
    ///
    /// # Panics
    /// When a part panics, after all parts have ended.
    pub(super) fn run(&mut self, job: &Job<'_>) -> bool {
        if self.forks != forks() && self.restart().is_err() {
            return false;
        }
        let Self { shared, handles, .. } = self;
        let pointer: *const Job<'_> = job;
        // SAFETY: only the lifetime changes; `Waiting` keeps this call alive until no worker can
        // use the pointer any more. No worker runs now, so nobody reads the cell.
        unsafe {
            *shared.job.get() =
                Some(mem::transmute::<*const Job<'_>, *const Job<'static>>(pointer));
        }
        // The job before may have panicked on the caller too, which then asked no further.
        shared.panicked.store(false, Ordering::Relaxed);
        shared.note_core(0);
        shared.running.0.store(handles.len(), Ordering::Relaxed);
        shared.epoch.fetch_add(1, Ordering::SeqCst);
        let woken = woken_by(0, handles.len());
        shared.wake(woken.clone(), handles[woken].iter().map(JoinHandle::thread));
        let waiting = Waiting(shared);
        job(0);
        drop(waiting);
        assert!(!shared.panicked.load(Ordering::Relaxed), "a thread of the pool panicked");
        true
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

impl Shared {
    /// Runs the jobs of a worker, which wakes the workers of these threads.
    fn work(&self, worker: usize, woken: &[Thread]) {
        let mut seen = 0;
        loop {
            seen = self.wait_for_job(worker, seen);
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            self.note_core(worker + 1);
            self.wake(woken_by(worker + 1, self.asleep.len()), woken);
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
        for (is_asleep, thread) in self.asleep[workers].iter().zip(threads) {
            if is_asleep.load(Ordering::SeqCst) {
                thread.unpark();
            }
        }
    }

    /// Notes the core of the calling thread, which has this part. It hardly ever changes, and others read it.
    fn note_core(&self, part: usize) {
        let core = cores::current().unwrap_or(usize::MAX);
        if self.cores[part].load(Ordering::Relaxed) != core {
            self.cores[part].store(core, Ordering::Relaxed);
        }
    }

    /// The cores of the threads that have other parts.
    fn cores_of_others(&self, part: usize) -> impl Iterator<Item = usize> + Clone {
        let (before, rest) = self.cores.split_at(part);
        before.iter().chain(&rest[1..]).map(|core| core.load(Ordering::Relaxed))
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
        let is_asleep = &self.asleep[worker];
        is_asleep.store(true, Ordering::SeqCst);
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            if epoch != seen {
                is_asleep.store(false, Ordering::Relaxed);
                cores::move_away_myself(self.cores_of_others(worker + 1));
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

    #[test]
    fn a_worker_keeps_away_from_the_cores_of_all_others() {
        let workers = Workers::start(3).unwrap();
        for (part, core) in workers.shared.cores.iter().enumerate() {
            core.store(7 + part, Ordering::Relaxed);
        }
        let of_others = |part| workers.shared.cores_of_others(part).collect::<Vec<_>>();
        assert_eq!([of_others(0), of_others(2)], [[8, 9, 10], [7, 8, 10]]);
    }

    #[test]
    fn threads_note_their_cores() {
        let mut workers = Workers::start(2).unwrap();
        let noted = Vec::from_iter((0..3).map(|_| AtomicUsize::new(0)));
        // The system may move a thread in between, but not each time.
        let same = (0..100).any(|_| {
            workers.run(&|part| {
                noted[part].store(cores::current().unwrap_or(usize::MAX), Ordering::Relaxed);
            });
            let of_jobs = noted.iter().map(|core| core.load(Ordering::Relaxed));
            of_jobs.eq(workers.shared.cores.iter().map(|core| core.load(Ordering::Relaxed)))
        });
        assert!(same);
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
