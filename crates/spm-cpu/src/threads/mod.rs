//! The thread pool that runs a plan; the plan's owner sets its size and lifetime.

mod workers;

use std::fmt;
use std::hint;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use spm_formats::kernel::Schedule;
use spm_formats::{parallel, partition};

use workers::{Job, OwnLine, Workers};

use crate::disjoint::Disjoint;

/// Empty jobs in succession that are quick when the threads have cores of their own, and how long to wait for
/// that: longer than a system lets two threads share a core while another one is free.
const SETTLED: u32 = 16;
const SETTLING: Duration = Duration::from_millis(5);

/// Shares of each thread, at most, and entries of a share, at least, of which a thread takes some microseconds: to take one
/// costs some tenths of a microsecond.
const SHARES: usize = 16;
const SHARE: usize = 1 << 13;
/// Shares of each thread from which on others may take some of them, and the part of its shares, as a divisor, that is
/// left to it: what it has begun and the next one are sooner done where they are in its cache.
const TAKEN_FROM: usize = 8;
const LEFT: usize = 8;

/// Threads that no system starts at once (Linux numbers 2^22 at most): a larger count is refused
/// before memory for it is asked for.
const MOST_THREADS: usize = 1 << 22;

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
    /// Shares of each thread that have been begun in the job that runs.
    begun: Vec<OwnLine<AtomicUsize>>,
}

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
        let begun = (0..count).map(|_| OwnLine(AtomicUsize::new(0))).collect();
        Self { pool: Arc::new(Pool { count, workers: Mutex::new(workers), begun }), alone: false }
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
        let ran = self.workers().is_some_and(|mut workers| workers.run(job));
        if !ran {
            (0..self.count()).for_each(job);
        }
    }

    /// The workers, unless the caller runs all parts: alone, or because the pool is busy.
    fn workers(&self) -> Option<MutexGuard<'_, Workers>> {
        if self.working() == 1 {
            return None;
        }
        match self.pool.workers.try_lock() {
            Ok(workers) => Some(workers),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The first share of each thread, and the number of shares, of a matrix with so many entries: as many for each
    /// thread, one where it is too small to be shared.
    pub(crate) fn shares(&self, entries: usize) -> Vec<usize> {
        let count = self.count();
        let of_thread = match (entries / count / SHARE).min(SHARES) {
            several @ TAKEN_FROM.. if count > 1 => several,
            _ => 1,
        };
        (0..=count).map(|thread| thread * of_thread).collect()
    }

    /// Calls `job(thread, share)` once for each share of `0..bounds[count()]`. Thread t begins with its own shares,
    /// `bounds[t]..bounds[t + 1]`, in order; where threads have several each, one that is done takes shares of others that are
    /// behind: on a virtual machine a core may be at half of its speed, because another guest has its other half. No two
    /// calls with the same thread run at the same time.
    ///
    /// # Panics
    /// As [`Threads::run`].
    pub(crate) fn share(&self, bounds: &[usize], job: impl Fn(usize, usize) + Sync) {
        self.share_parts(&|_| {}, bounds, &job);
    }

    /// The same behind a call of `first(thread)` for each thread.
    pub(crate) fn share_after(
        &self,
        first: impl Fn(usize) + Sync,
        bounds: &[usize],
        job: impl Fn(usize, usize) + Sync,
    ) {
        self.share_parts(&first, bounds, &job);
    }

    /// The same of any job: compiled once.
    fn share_parts(&self, first: &Job<'_>, bounds: &[usize], job: &(dyn Fn(usize, usize) + Sync)) {
        let count = self.count();
        let own = |thread: usize| bounds[thread]..bounds[thread + 1];
        let all_own = |thread: usize| {
            first(thread);
            own(thread).for_each(|share| job(thread, share));
        };
        if bounds[count] - bounds[0] < TAKEN_FROM * count {
            return self.run_parts(&all_own);
        }
        let Some(mut workers) = self.workers() else { return (0..count).for_each(all_own) };
        let begun = &self.pool.begun;
        begun.iter().for_each(|OwnLine(begun)| begun.store(0, Ordering::Relaxed));
        let ran = workers.run(&|thread| {
            let next = |of: usize, left: usize| {
                let (shares, OwnLine(begun)) = (own(of), &begun[of]);
                let is_there = |begun: usize| begun + left < shares.len();
                let begin = |begun: usize| is_there(begun).then_some(begun + 1);
                let nth = begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, begin).ok()?;
                Some(shares.start + nth)
            };
            first(thread);
            while let Some(share) = next(thread, 0) {
                job(thread, share);
            }
            for of in (thread + 1..count).chain(0..thread) {
                while let Some(share) = next(of, own(of).len() / LEFT) {
                    job(thread, share);
                }
            }
        });
        if !ran {
            (0..count).for_each(all_own);
        }
    }

    /// What `job` returns for each index of `0..count`, in order. Each of these threads has consecutive indices, as many as
    /// the others, so that what it makes is where it will be read. Where this is one thread, those of rayon share them if
    /// there are several.
    pub(crate) fn map<R: Send>(&self, count: usize, job: impl Fn(usize) -> R + Sync) -> Vec<R> {
        if self.count() == 1 && count > 1 {
            return parallel::map(count, 1, job);
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

#[cfg(test)]
mod tests {
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::atomic::AtomicBool;

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
    fn each_share_is_run_once_whoever_is_behind() {
        let runs = |threads: &Threads, bounds: &[usize], slow: usize| {
            let by = Mutex::new(vec![]);
            let firsts = AtomicUsize::new(0);
            let first = |thread: usize| {
                firsts.fetch_add(1 << (8 * thread), Ordering::Relaxed);
            };
            threads.share_after(first, bounds, |thread, share| {
                if thread == slow {
                    thread::sleep(Duration::from_millis(20));
                }
                by.lock().unwrap().push((share, thread));
            });
            let all = (0..threads.count()).map(|thread| 1 << (8 * thread)).sum::<usize>();
            assert_eq!(firsts.into_inner(), all);
            let mut by = by.into_inner().unwrap();
            by.sort();
            assert!(by.iter().map(|run| run.0).eq(bounds[0]..bounds[bounds.len() - 1]));
            by
        };
        let threads = Threads::new(3);
        let owner = |bounds: &[usize], share| bounds[1..].partition_point(|&end| end <= share);
        let is_own = |bounds: &[usize], by: &[(usize, usize)]| {
            by.iter().all(|&(share, thread)| thread == owner(bounds, share))
        };
        for slow in 0..3 {
            // Few shares stay where they are, and so do those of a caller alone.
            let (few, many) = ([0, 2, 3, 5], [0, 16, 24, 40]);
            assert!(is_own(&few, &runs(&threads, &few, slow)));
            assert!(is_own(&many, &runs(&threads.on_the_caller(), &many, 9)));
            assert!(is_own(&[0, 7], &runs(&Threads::new(1), &[0, 7], 9)));
            let by = runs(&threads, &many, slow);
            let of_slow = by.iter().filter(|run| run.1 == slow).count();
            assert!(of_slow < many[slow + 1] - many[slow], "all shares stay with thread {slow}");
            // What it does itself are its own, and its last ones are left to it.
            let last = many[slow + 1] - (many[slow + 1] - many[slow]) / LEFT..many[slow + 1];
            assert!(last.into_iter().all(|share| by[share].1 == slow), "{by:?}");
            assert!(by.iter().filter(|run| run.1 == slow).all(|run| owner(&many, run.0) == slow));
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
        for count in [2, 2 + workers::WOKEN * workers::WOKEN] {
            let threads = Threads::new(count);
            for _ in 0..3 {
                thread::sleep(std::time::Duration::from_millis(20));
                threads.run(|_| {});
            }
        }
    }
}
