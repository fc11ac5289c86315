//! Candidates for a plan against the clock: what the `auto` kernels share.

use std::time::Instant;

use crate::{PlanOptions, Threads};

/// How long a candidate is timed: at least so many calls, and at least so many seconds.
const CALLS: usize = 3;
const TIME: f64 = 2e-3;
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

/// What a race measures time with.
pub(crate) trait Clock {
    /// Seconds since a fixed moment; never fewer than before.
    fn seconds(&mut self) -> f64;
}

/// The machine's monotonic clock.
pub(crate) struct Monotonic(Instant);

impl Monotonic {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Monotonic {
    fn seconds(&mut self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// Candidates against each other, and the best ones once more in turns against each other and the
/// serial kernel: a busy machine may have slowed one down the first time. One that is not clearly
/// faster than the serial kernel does not win, so that no `auto` is slower than that.
pub(crate) struct Race<P, C> {
    clock: C,
    serial: P,
    /// Seconds of a call of the serial plan.
    of_serial: f64,
    /// The fastest first.
    finalists: Vec<Finalist<P>>,
}

struct Finalist<P> {
    plan: P,
    /// What the plan is, for its user.
    choice: String,
    /// Of a call.
    seconds: f64,
}

/// Times the best one up to which a candidate may still be the winner: short calls are compared
/// once more.
fn near(seconds: f64) -> f64 {
    if seconds < QUICK { NEAR } else { 1.0 }
}

impl<P, C: Clock> Race<P, C> {
    /// Starts with the serial kernel's plan.
    pub(crate) fn new(mut clock: C, mut serial: P, run: &mut impl FnMut(&mut P)) -> Self {
        let of_serial = seconds(&mut clock, f64::INFINITY, || run(&mut serial));
        Self { clock, serial, of_serial, finalists: Vec::new() }
    }

    /// Bytes that the plans in the race hold; `bytes` says how many one does.
    pub(crate) fn held(&self, bytes: impl Fn(&P) -> u64) -> u64 {
        bytes(&self.serial) + self.finalists.iter().map(|other| bytes(&other.plan)).sum::<u64>()
    }

    /// Times a candidate; `choice` says what it is. Returns whether it is the fastest so far.
    pub(crate) fn enter(
        &mut self,
        mut plan: P,
        choice: impl FnOnce() -> String,
        run: &mut impl FnMut(&mut P),
    ) -> bool {
        let first = self.finalists.first().map_or(f64::INFINITY, |first| first.seconds);
        let best = first.min(self.of_serial);
        let seconds = seconds(&mut self.clock, best, || run(&mut plan));
        if seconds < near(seconds) * best {
            let place = self.finalists.partition_point(|other| other.seconds <= seconds);
            self.finalists.insert(place, Finalist { plan, choice: choice(), seconds });
            let first = self.finalists[0].seconds;
            self.finalists.retain(|other| other.seconds <= near(first) * first);
            self.finalists.truncate(FINALISTS);
        }
        seconds < best
    }

    /// The winner, or nothing where that is the serial kernel.
    pub(crate) fn finish(mut self, run: &mut impl FnMut(&mut P)) -> Option<(P, String)> {
        let quickest = self.finalists.first()?.seconds;
        let calls = |seconds: f64| (SIDE / seconds.max(1e-9)).ceil().max(1.0) as usize;
        let (calls, calls_of_serial) = (calls(quickest), calls(self.of_serial));
        let mut side = |plan: &mut P, calls: usize| {
            // The others have taken its place in the caches.
            run(plan);
            let begin = self.clock.seconds();
            (0..calls).for_each(|_| run(plan));
            (self.clock.seconds() - begin) / calls as f64
        };
        if quickest < QUICK {
            self.finalists.iter_mut().for_each(|finalist| finalist.seconds = f64::INFINITY);
            for _ in 0..ROUNDS {
                for Finalist { plan, seconds, .. } in &mut self.finalists {
                    *seconds = seconds.min(side(plan, calls));
                }
                self.of_serial = self.of_serial.min(side(&mut self.serial, calls_of_serial));
            }
        }
        let limit = MARGIN * self.of_serial - AROUND;
        let finalists = self.finalists.into_iter().filter(|finalist| finalist.seconds <= limit);
        let winner = finalists.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        winner.map(|Finalist { plan, choice, .. }| (plan, choice))
    }
}

/// The options that candidates are planned with: on the thread pool where `work` is above `small`, and
/// alone where it is not, or below `large` too.
pub(crate) fn pools<'o>(
    options: &'o PlanOptions,
    alone: &'o PlanOptions,
    work: usize,
    (small, large): (usize, usize),
) -> Vec<&'o PlanOptions> {
    let pool = options.threads.count() > 1 && work > small;
    let alone = (!pool || work < large).then_some(alone);
    pool.then_some(options).into_iter().chain(alone).collect()
}

/// Seconds that timing a candidate takes whose call takes `seconds`.
pub(crate) fn trial(seconds: f64) -> f64 {
    2.0 * seconds + TIME.max(CALLS as f64 * seconds)
}

/// Seconds of the last comparison, where the best call takes `seconds` and the serial one `serial`.
pub(crate) fn last(seconds: f64, serial: f64) -> f64 {
    if seconds >= QUICK {
        return 0.0;
    }
    let side = |seconds: f64| seconds + SIDE.max(seconds);
    ROUNDS as f64 * (FINALISTS as f64 * side(seconds) + side(serial))
}

/// What [`Plan::choice`](spm_formats::kernel::ProductPlan::choice) says of a label and a thread pool.
pub(crate) fn on(label: &str, threads: &Threads) -> String {
    let count = threads.count();
    let plural = if count == 1 { "" } else { "s" };
    format!("{label} on {count} thread{plural}")
}

/// Seconds of the fastest call: what disturbs a call only ever makes it slower. Gives up on
/// long calls that take more than twice `best`.
fn seconds(clock: &mut impl Clock, best: f64, mut call: impl FnMut()) -> f64 {
    let start = clock.seconds();
    call();
    let first = clock.seconds() - start;
    // The first call may meet cold caches and memory that no one has touched.
    if first > 8.0 * best && first > LONG {
        return first;
    }
    // Twice, lest something else took the core.
    let mut second = f64::INFINITY;
    for _ in 0..2 {
        let start = clock.seconds();
        call();
        second = second.min(clock.seconds() - start);
        if second <= (2.0 * best).max(LONG) {
            break;
        }
    }
    if second > 2.0 * best && second > LONG {
        return second;
    }
    let together = (SHORT / second.max(1e-8)).ceil().max(1.0) as usize;
    let (mut fastest, mut calls, start) = (f64::INFINITY, 0, clock.seconds());
    while calls < CALLS || clock.seconds() - start < TIME {
        let begin = clock.seconds();
        (0..together).for_each(|_| call());
        fastest = fastest.min((clock.seconds() - begin) / together as f64);
        calls += 1;
    }
    fastest
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock that only goes on while a plan runs, by what the plan says.
    #[derive(Clone, Copy)]
    struct Driven<'a>(&'a Cell<f64>);

    impl Clock for Driven<'_> {
        fn seconds(&mut self) -> f64 {
            self.0.get()
        }
    }

    /// A clock that goes on by 0.1 to 100 ms at each look, drawn from a seed: any candidate may win
    /// a race.
    pub(crate) struct Dice(u64, f64);

    impl Dice {
        pub(crate) fn new(seed: u64) -> Self {
            Self(seed, 0.0)
        }
    }

    impl Clock for Dice {
        fn seconds(&mut self) -> f64 {
            // splitmix64
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let unit = (bits ^ (bits >> 31)) as f64 / u64::MAX as f64;
            self.1 += 10_f64.powf(-4.0 + 3.0 * unit);
            self.1
        }
    }

    /// What comes of a race in which the serial plan and the candidates take so many microseconds:
    /// the winner, and whether each candidate led when it had been timed.
    fn race(serial: u32, candidates: &[u32]) -> (Option<u32>, Vec<bool>) {
        let time = Cell::new(0.0);
        let mut run = |micros: &mut u32| time.set(time.get() + f64::from(*micros) * 1e-6);
        let mut race = Race::new(Driven(&time), serial, &mut run);
        let enter = |&micros: &u32| race.enter(micros, || micros.to_string(), &mut run);
        let led = candidates.iter().map(enter).collect();
        let winner = race.finish(&mut run).map(|(plan, choice)| {
            assert_eq!(plan.to_string(), choice);
            plan
        });
        (winner, led)
    }

    #[test]
    fn the_fastest_wins_if_it_is_faster_than_the_serial_one() {
        let winner = |serial, candidates: &[u32]| race(serial, candidates).0;
        assert_eq!(winner(400, &[200, 40, 4000]), Some(40));
        assert_eq!(winner(20_000, &[1000, 12_000]), Some(1000));
        assert_eq!(winner(100_000, &[90_000, 20_000]), Some(20_000));
        assert_eq!(winner(40, &[400, 4000]), None);
        assert_eq!(winner(100, &[100]), None);
        assert_eq!(winner(40, &[]), None);
        // Less than the margin is noise.
        assert_eq!(winner(1000, &[980]), None);
        assert_eq!(winner(1000, &[960]), Some(960));
    }

    #[test]
    fn a_candidate_learns_whether_it_leads() {
        assert_eq!(race(400, &[200, 900, 20, 90]).1, [true, false, true, false]);
        assert_eq!(race(100, &[200, 50]).1, [false, true]);
    }
}
