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
/// Rounds of the last comparison, and what a side of a round takes at least.
const ROUNDS: usize = 5;
const SIDE: f64 = 2e-4;

/// Candidates against each other and, in the end, the best against the serial kernel, so that no
/// `auto` is slower than that: a candidate which is not clearly faster does not win.
pub(crate) struct Race<P> {
    serial: P,
    of_serial: f64,
    best: Option<(P, String)>,
    seconds: f64,
}

impl<P> Race<P> {
    /// Starts with the serial kernel's plan.
    pub(crate) fn new(mut serial: P, run: &mut impl FnMut(&mut P)) -> Self {
        let of_serial = seconds(f64::INFINITY, || run(&mut serial));
        Self { serial, of_serial, best: None, seconds: of_serial * MARGIN - AROUND }
    }

    /// Times a candidate. It stays if it is the fastest so far; `choice` says then what it is.
    /// Returns whether it stays.
    pub(crate) fn enter(
        &mut self,
        mut plan: P,
        choice: impl FnOnce() -> String,
        run: &mut impl FnMut(&mut P),
    ) -> bool {
        let seconds = seconds(self.seconds, || run(&mut plan));
        let stays = seconds < self.seconds;
        if stays {
            self.seconds = seconds;
            self.best = Some((plan, choice()));
        }
        stays
    }

    /// The winner, or nothing where that is the serial kernel.
    ///
    /// Both take turns once more: a busy machine may have slowed one down before.
    pub(crate) fn finish(self, run: &mut impl FnMut(&mut P)) -> Option<(P, String)> {
        let (mut serial, (mut best, choice)) = (self.serial, self.best?);
        if self.seconds < 0.5 * self.of_serial {
            return Some((best, choice));
        }
        let calls = (SIDE / self.of_serial.max(1e-9)).ceil().max(1.0) as usize;
        let mut side = |plan: &mut P| {
            let begin = Instant::now();
            (0..calls).for_each(|_| run(plan));
            begin.elapsed().as_secs_f64() / calls as f64
        };
        let (mut of_best, mut of_serial) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            of_best = of_best.min(side(&mut best));
            of_serial = of_serial.min(side(&mut serial));
        }
        (of_best + AROUND <= MARGIN * of_serial).then_some((best, choice))
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
    let start = Instant::now();
    call();
    let second = start.elapsed().as_secs_f64();
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
