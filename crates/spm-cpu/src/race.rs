//! Candidates for a plan against the clock: what the `auto` kernels share.

use std::time::{Duration, Instant};

use crate::Threads;

/// How long a candidate is timed: at least so many calls, and at least so long.
const CALLS: usize = 3;
const TIME: Duration = Duration::from_millis(2);
/// Calls that take less are timed together.
const SHORT: f64 = 2e-5;
/// A call that takes more need not be repeated to see that it is slow; a shorter one may have been
/// disturbed.
const LONG: f64 = 1e-3;
/// What a plan of another kernel around the winner costs a call, in seconds.
const AROUND: f64 = 3e-9;
/// A winner takes at most this share of the serial kernel's time: less than that is noise.
const MARGIN: f64 = 0.97;
/// Candidates of the last comparison at most, and how much slower than the best one may seem.
const FINALISTS: usize = 3;
const NEAR: f64 = 1.3;
/// A call that takes less is compared once more.
const QUICK: f64 = 5e-3;
/// Rounds of the last comparison, and what a side of a round takes at least.
const ROUNDS: usize = 10;
const SIDE: f64 = 2e-4;

/// Candidates against each other, and the best ones once more in turns against each other and the
/// serial kernel: a busy machine may have slowed one down the first time. One that is not clearly
/// faster than the serial kernel does not win, so that no `auto` is slower than that.
pub(crate) struct Race<P> {
    serial: P,
    of_serial: f64,
    /// The fastest first.
    finalists: Vec<(P, String, f64)>,
}

impl<P> Race<P> {
    /// Starts with the serial kernel's plan.
    pub(crate) fn new(mut serial: P, run: &mut impl FnMut(&mut P)) -> Self {
        let of_serial = seconds(f64::INFINITY, || run(&mut serial));
        Self { serial, of_serial, finalists: Vec::new() }
    }

    /// Times a candidate; `choice` says what it is. Returns whether it is the fastest so far.
    pub(crate) fn enter(
        &mut self,
        mut plan: P,
        choice: impl FnOnce() -> String,
        run: &mut impl FnMut(&mut P),
    ) -> bool {
        let best = self.finalists.first().map_or(self.of_serial, |&(.., seconds)| seconds);
        let best = best.min(self.of_serial);
        let seconds = seconds(best, || run(&mut plan));
        let near = if seconds < QUICK { NEAR } else { 1.0 };
        if seconds < near * best {
            let place = self.finalists.partition_point(|&(.., other)| other <= seconds);
            self.finalists.insert(place, (plan, choice(), seconds));
            let best = self.finalists[0].2;
            let near = if best < QUICK { NEAR } else { 1.0 };
            self.finalists.retain(|&(.., other)| other <= near * best);
            self.finalists.truncate(FINALISTS);
        }
        seconds < best
    }

    /// The winner, or nothing where that is the serial kernel.
    pub(crate) fn finish(mut self, run: &mut impl FnMut(&mut P)) -> Option<(P, String)> {
        let (.., quickest) = self.finalists.first()?;
        let calls = (SIDE / quickest.max(1e-9)).ceil().max(1.0) as usize;
        let calls_of_serial = (SIDE / self.of_serial.max(1e-9)).ceil().max(1.0) as usize;
        let mut side = |plan: &mut P, calls: usize| {
            // The others have taken its place in the caches.
            run(plan);
            let begin = Instant::now();
            (0..calls).for_each(|_| run(plan));
            begin.elapsed().as_secs_f64() / calls as f64
        };
        if *quickest < QUICK {
            self.finalists.iter_mut().for_each(|(.., seconds)| *seconds = f64::INFINITY);
            for _ in 0..ROUNDS {
                for (plan, _, seconds) in &mut self.finalists {
                    *seconds = seconds.min(side(plan, calls));
                }
                self.of_serial = self.of_serial.min(side(&mut self.serial, calls_of_serial));
            }
        }
        let limit = MARGIN * self.of_serial - AROUND;
        let finalists = self.finalists.into_iter().filter(|&(.., seconds)| seconds <= limit);
        let winner = finalists.min_by(|(.., a), (.., b)| a.total_cmp(b));
        winner.map(|(plan, choice, _)| (plan, choice))
    }
}

/// What [`Plan::choice`](spm_formats::kernel::SpmvPlan::choice) says of a label and a team.
pub(crate) fn on(label: &str, threads: &Threads) -> String {
    let count = threads.count();
    let plural = if count == 1 { "" } else { "s" };
    format!("{label} on {count} thread{plural}")
}

/// Seconds of the fastest call: what disturbs a call only ever makes it slower. Gives up on
/// long calls that take more than twice `best`.
fn seconds(best: f64, mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    call();
    let first = start.elapsed().as_secs_f64();
    // The first call may meet cold caches and memory that no one has touched.
    if first > 8.0 * best && first > LONG {
        return first;
    }
    // Twice, lest something else took the core.
    let mut second = f64::INFINITY;
    for _ in 0..2 {
        let start = Instant::now();
        call();
        second = second.min(start.elapsed().as_secs_f64());
        if second <= (2.0 * best).max(LONG) {
            break;
        }
    }
    if second > 2.0 * best && second > LONG {
        return second;
    }
    let together = (SHORT / second.max(1e-8)).ceil().max(1.0) as usize;
    let (mut fastest, mut calls, start) = (f64::INFINITY, 0, Instant::now());
    while calls < CALLS || start.elapsed() < TIME {
        let begin = Instant::now();
        (0..together).for_each(|_| call());
        fastest = fastest.min(begin.elapsed().as_secs_f64() / together as f64);
        calls += 1;
    }
    fastest
}
