//! Candidates for a plan against the clock: what the `auto` kernels share.

mod timing;

#[cfg(test)]
pub(crate) use timing::tests::Dice;
pub(crate) use timing::{Caches, Clock, First, Monotonic, trial};
use timing::{FAR, LONG, MEDIUM, SLOW, SLOW_COLD, times};

use crate::machine::{Rates, settled};
use crate::{PlanOptions, Threads};

/// Times the best one from which on the serial kernel is not called at all, if a model says so. It may be wrong by more;
/// then candidates on one thread are there.
const FAR_BY_MODEL: f64 = 2.5;
/// What a plan of another kernel around the winner costs a call, in seconds.
const AROUND: f64 = 3e-9;
/// A winner takes at most this share of the serial kernel's time: less than that is noise.
const MARGIN: f64 = 0.97;
/// Candidates of the last comparison at most, and how much slower than the best one may seem.
const FINALISTS: usize = 3;
const NEAR: f64 = 1.15;
/// The same where a call takes more than [`MEDIUM`]: a comparison costs as much as another candidate.
const NEAR_OF_MEDIUM: f64 = 1.08;
/// Times one of two candidates that read the same arrays up to which the other one is left out: comparing both once more
/// would take more than it saves.
const ALIKE: f64 = 1.05;
/// A call that takes less is compared once more, and one that takes more need not be repeated to be warm.
const QUICK: f64 = 5e-3;
/// Rounds of the last comparison, of calls that take up to [`MEDIUM`] and of longer ones, whose times from before count as
/// a round, and what a side of a round takes at least.
const ROUNDS: usize = 4;
const FEW_ROUNDS: usize = 1;
const SIDE: f64 = 3e-5;

/// Calls of a plan at most until it is warm, and how many are no faster then.
const MOST_WARMING: usize = 8;
const WARM: usize = 2;

/// Times the start of the threads by the model that it may take of threads that have cores of their own.
const SETTLED: f64 = 20.0;

/// Candidates against each other, and the best ones once more in turns against each other and the
/// serial kernel: a busy machine may have slowed one down the first time. One that is not clearly
/// faster than the serial kernel does not win, so that no `auto` is slower than that. Where a model puts the serial
/// kernel far behind it is not timed.
pub(crate) struct Race<P, C> {
    clock: C,
    /// When the race began, by the clock.
    start: f64,
    serial: P,
    /// Calls that a candidate makes before it is timed.
    practice: usize,
    /// Calls of a plan before each comparison in turns: the others have taken its place in the caches.
    warm_up: usize,
    /// Seconds of a call of the serial plan by a model; 0 without one.
    expected: f64,
    /// The same by the clock, once it has been timed.
    of_serial: Option<f64>,
    /// The fastest first.
    finalists: Vec<Finalist<P>>,
}

struct Finalist<P> {
    plan: P,
    /// What the plan is, for its user.
    choice: String,
    /// Of a call, times the weight.
    seconds: f64,
    /// What its times count beside others.
    weight: f64,
}

/// Times the best one up to which a candidate may still be the winner: short calls are compared
/// once more.
fn near(seconds: f64) -> f64 {
    match seconds {
        ..=MEDIUM => NEAR,
        ..QUICK => NEAR_OF_MEDIUM,
        _ => 1.0,
    }
}

impl<P, C: Clock> Race<P, C> {
    /// A race against the serial kernel's plan, which is timed when the others have been.
    pub(crate) fn new(mut clock: C, serial: P) -> Self {
        let start = clock.seconds();
        let finalists = Vec::new();
        let (practice, warm_up, expected, of_serial) = (0, 1, 0.0, None);
        Self { clock, start, serial, practice, warm_up, expected, of_serial, finalists }
    }

    /// The same where a model says that a call of the serial plan takes so many seconds: it is not timed if that is
    /// far behind the others.
    pub(crate) fn expecting(self, seconds: f64) -> Self {
        Self { expected: seconds, ..self }
    }

    /// The same with so many calls of a candidate before it is timed and compared: for plans whose branches the
    /// processor learns.
    pub(crate) fn with_practice(self, calls: usize) -> Self {
        Self { practice: calls, ..self }
    }

    /// The same with so many calls of a plan before each comparison in turns.
    pub(crate) fn with_warm_up(self, calls: usize) -> Self {
        Self { warm_up: calls, ..self }
    }

    /// Seconds since the race began.
    pub(crate) fn spent(&mut self) -> f64 {
        self.clock.seconds() - self.start
    }

    /// Bytes that the plans in the race hold; `bytes` says how many one does.
    pub(crate) fn held(&self, bytes: impl Fn(&P) -> u64) -> u64 {
        bytes(&self.serial) + self.finalists.iter().map(|other| bytes(&other.plan)).sum::<u64>()
    }

    /// Seconds of a call of the fastest candidate so far.
    pub(crate) fn best(&self) -> f64 {
        self.finalists.first().map_or(f64::INFINITY, |first| first.seconds)
    }

    /// Whether a call that a model expects to take `seconds` takes far more than the best ones so far.
    pub(crate) fn is_expected_far(&self, seconds: f64) -> bool {
        seconds > FAR * self.best()
    }

    /// Whether a candidate whose call takes `seconds` is far from the best one so far.
    pub(crate) fn is_slow(&self, seconds: f64) -> bool {
        seconds > SLOW * self.best()
    }

    /// Seconds of a call of a candidate in each of some ways to run it, which are timed in turns; `set` makes
    /// the plan run in one of them. `first` says what is known of the first call.
    pub(crate) fn times(
        &mut self,
        plan: &mut P,
        first: impl Into<First>,
        ways: usize,
        mut set: impl FnMut(&mut P, usize),
        run: &mut impl FnMut(&mut P),
    ) -> Vec<f64> {
        let best = self.best();
        times(&mut self.clock, (best, first), ways, |way, calls| {
            if ways > 1 {
                set(plan, way);
            }
            (0..calls).for_each(|_| run(plan));
        })
    }

    /// Calls a plan that has just been made until its calls become no faster: a cache that several cores share keeps what is
    /// read again and again. Says whether it may be the winner.
    pub(crate) fn warm(&mut self, plan: &mut P, run: &mut impl FnMut(&mut P)) -> bool {
        let fastest = settled((MOST_WARMING, WARM), QUICK, || {
            let begin = self.clock.seconds();
            run(plan);
            self.clock.seconds() - begin
        });
        fastest <= LONG || fastest <= SLOW_COLD * self.best()
    }

    /// Keeps a candidate whose call takes `seconds` if it may be the winner; `choice` says what it is.
    pub(crate) fn keep(&mut self, plan: P, seconds: f64, choice: impl FnOnce() -> String) {
        self.keep_weighted(plan, (seconds, 1.0), choice);
    }

    /// The same of a candidate whose times count `weight` times, here and in the last comparison.
    pub(crate) fn keep_weighted(
        &mut self,
        plan: P,
        (seconds, weight): (f64, f64),
        choice: impl FnOnce() -> String,
    ) {
        let seconds = weight * seconds;
        if seconds < near(seconds) * self.best() {
            let place = self.finalists.partition_point(|other| other.seconds <= seconds);
            self.finalists.insert(place, Finalist { plan, choice: choice(), seconds, weight });
            let first = self.finalists[0].seconds;
            self.finalists.retain(|other| other.seconds <= near(first) * first);
            self.finalists.truncate(FINALISTS);
        }
    }

    /// Keeps a candidate if it may be the winner, and only the faster one of it and of `other`, what has been said of a
    /// candidate that reads the same arrays, where both take about the same time.
    pub(crate) fn keep_beside(&mut self, plan: P, seconds: f64, choice: String, other: &str) {
        if let Some(at) = self.finalists.iter().position(|of| of.choice == other) {
            let of_other = self.finalists[at].seconds;
            if (of_other..ALIKE * of_other).contains(&seconds) {
                return;
            }
            if (seconds..ALIKE * seconds).contains(&of_other) {
                self.finalists.remove(at);
            }
        }
        self.keep(plan, seconds, || choice);
    }

    /// Times a candidate, and keeps it if it may be the winner.
    pub(crate) fn enter(
        &mut self,
        mut plan: P,
        choice: impl FnOnce() -> String,
        run: &mut impl FnMut(&mut P),
    ) {
        let begin = self.clock.seconds();
        for calls in 1..=self.practice {
            run(&mut plan);
            // One that is far behind learns too little.
            if self.clock.seconds() - begin > SLOW_COLD * calls as f64 * self.best() {
                break;
            }
        }
        let times = self.times(&mut plan, Caches::Cold, 1, |_, _| {}, run);
        self.keep(plan, times[0], choice);
    }

    /// Makes a plan whose call takes `all` seconds on all `threads` run on the caller alone if that is faster, and
    /// returns what it runs on and the seconds of a call. `on` makes it run on threads, if it can; `weight` says
    /// what a time on the caller counts beside one on all threads.
    pub(crate) fn threads(
        &mut self,
        plan: &mut P,
        (threads, all): (&Threads, f64),
        weight: impl Fn(f64) -> f64,
        on: impl Fn(&mut P, &Threads) -> bool,
        run: &mut impl FnMut(&mut P),
    ) -> (Threads, f64) {
        let caller = threads.on_the_caller();
        if threads.working() > 1 && on(plan, &caller) {
            // Not in turns: each would take what it needs out of the other's caches.
            let calls = |_, calls| (0..calls).for_each(|_| run(plan));
            let alone = times(&mut self.clock, (all, Caches::Warm), 1, calls)[0];
            if weight(alone) * alone < all {
                return (caller, alone);
            }
            on(plan, threads);
        }
        (threads.clone(), all)
    }

    /// Seconds that [`Race::finish`] may take with one more candidate, where the serial plan is as expected.
    pub(crate) fn remaining(&self) -> f64 {
        last(self.best(), self.expected, (self.finalists.len() + 1).min(FINALISTS))
    }

    /// Seconds of a call of the serial kernel, whose matrix the candidates have read; infinite if it is far behind.
    fn time_serial(&mut self, run: &mut impl FnMut(&mut P)) -> f64 {
        let best = self.best();
        if self.expected > FAR_BY_MODEL * best {
            return f64::INFINITY;
        }
        let mut calls = |_, calls| (0..calls).for_each(|_| run(&mut self.serial));
        let timed = || times(&mut self.clock, (best, Caches::Warm), 1, &mut calls)[0];
        *self.of_serial.get_or_insert_with(timed)
    }

    /// Whether the serial kernel is as fast as the candidates so far.
    pub(crate) fn serial_leads(&mut self, run: &mut impl FnMut(&mut P)) -> bool {
        self.time_serial(run) <= self.best()
    }

    /// The winner, or nothing where that is the serial kernel.
    pub(crate) fn finish(mut self, run: &mut impl FnMut(&mut P)) -> Option<(P, String)> {
        let quickest = self.finalists.first()?.seconds;
        let mut of_serial = self.time_serial(run);
        let calls = |seconds: f64| (SIDE / seconds.max(1e-9)).ceil().max(1.0) as usize;
        let (calls, calls_of_serial) = (calls(quickest), calls(of_serial));
        let practice = self.practice.max(self.warm_up);
        let mut side = |plan: &mut P, calls: usize| {
            (0..practice).for_each(|_| run(plan));
            let begin = self.clock.seconds();
            (0..calls).for_each(|_| run(plan));
            (self.clock.seconds() - begin) / calls as f64
        };
        let serial_is_near = of_serial < near(quickest) * quickest;
        if quickest < QUICK && (self.finalists.len() > 1 || serial_is_near) {
            // Practice makes rounds long.
            let rounds = if self.practice > 0 { ROUNDS / 2 } else { rounds(quickest) };
            if rounds > FEW_ROUNDS {
                self.finalists.iter_mut().for_each(|finalist| finalist.seconds = f64::INFINITY);
            }
            for _ in 0..rounds {
                for Finalist { plan, seconds, weight, .. } in &mut self.finalists {
                    *seconds = seconds.min(*weight * side(plan, calls));
                }
                if serial_is_near {
                    of_serial = of_serial.min(side(&mut self.serial, calls_of_serial));
                }
            }
        }
        let limit = MARGIN * of_serial - AROUND;
        let finalists = self.finalists.into_iter().filter(|finalist| finalist.seconds <= limit);
        let winner = finalists.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        winner.map(|Finalist { plan, choice, .. }| (plan, choice))
    }
}

/// What a time on one thread counts beside one on all threads, where the model expects these seconds of them. Other
/// programs and other guests of the host slow all threads more than one, often for as long as a race and no
/// longer: one thread has to be ahead by half as much, as a logarithm, as the model expects it to be behind.
pub(crate) fn weight(alone: f64, all: f64) -> f64 {
    (alone / all).max(1.0).sqrt()
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

/// Waits until threads start a job about as fast as they did when the machine was measured: planning has left
/// other threads on their cores.
pub(crate) fn settle(threads: &Threads) {
    if threads.working() > 1 {
        threads.settle(SETTLED * Rates::of_races().start(threads.count()));
    }
}

/// Seconds of the last comparison of some finalists, where the best call takes `seconds` and the serial one `serial`.
pub(crate) fn last(seconds: f64, serial: f64, finalists: usize) -> f64 {
    // One that is far is called once, or not at all.
    let of_serial = match serial / seconds {
        FAR_BY_MODEL.. => 0.0,
        FAR.. => serial,
        SLOW.. => 2.0 * serial,
        _ => trial(serial, 1),
    };
    if seconds >= QUICK || finalists == 1 && serial > NEAR * seconds {
        return of_serial;
    }
    of_serial + (rounds(seconds) * finalists) as f64 * (seconds + SIDE.max(seconds))
}

/// Rounds of the last comparison, where the best call takes `seconds`.
fn rounds(seconds: f64) -> usize {
    if seconds > MEDIUM { FEW_ROUNDS } else { ROUNDS }
}

/// What [`Plan::choice`](spm_formats::kernel::ProductPlan::choice) says of a label and a number of threads.
pub(crate) fn on(label: &str, count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{label} on {count} thread{plural}")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::timing::tests::Driven;
    use super::*;

    /// What comes of a race in which the serial plan and the candidates take so many microseconds, and how
    /// many microseconds it takes.
    fn race(serial: u32, candidates: &[u32]) -> (Option<u32>, f64) {
        let time = Cell::new(0.0);
        let mut run = |micros: &mut u32| time.set(time.get() + f64::from(*micros) * 1e-6);
        let mut race = Race::new(Driven(&time), serial);
        candidates.iter().for_each(|&micros| race.enter(micros, || micros.to_string(), &mut run));
        let winner = race.finish(&mut run).map(|(plan, choice)| {
            assert_eq!(plan.to_string(), choice);
            plan
        });
        (winner, (time.get() * 1e6).round())
    }

    /// A plan whose first calls take another time than the others, both in microseconds.
    #[derive(Debug, PartialEq)]
    struct Learning {
        calls: usize,
        first: u32,
        then: u32,
    }

    #[test]
    fn a_plan_is_warm_when_its_calls_become_no_faster() {
        let calls = |times: &[f64]| {
            let (clock, mut times, mut made) = (Cell::new(0.0), times.iter(), 0);
            let mut race = Race::new(Driven(&clock), ());
            let is_near = race.warm(&mut (), &mut |()| {
                made += 1;
                clock.set(clock.get() + times.next().copied().unwrap_or(1.0));
            });
            assert!(is_near);
            made
        };
        assert_eq!(calls(&[9e-4, 5e-4, 3e-4, 3e-4, 2.95e-4]), 5);
        assert_eq!(calls(&[9e-4, 9e-4, 5e-4, 5e-4, 3e-4, 3e-4, 3e-4]), 7);
        // However slowly they become faster, and however long one takes.
        assert_eq!(calls(&[8e-4, 7e-4, 6e-4, 5e-4, 4e-4, 3e-4, 2e-4, 1e-4]), 8);
        assert_eq!(calls(&[6e-3]), 1);
    }

    #[test]
    fn practice_shows_what_a_plan_takes_in_the_end() {
        let winner = |practice: usize| {
            let time = Cell::new(0.0);
            let mut run = |plan: &mut Learning| {
                plan.calls += 1;
                let micros = if plan.calls <= 12 { plan.first } else { plan.then };
                time.set(time.get() + f64::from(micros) * 1e-6);
            };
            let plan = |first, then| Learning { calls: 0, first, then };
            let mut race = Race::new(Driven(&time), plan(90, 90)).with_practice(practice);
            race.enter(plan(20, 20), || "even".to_owned(), &mut run);
            race.enter(plan(40, 10), || "learns".to_owned(), &mut run);
            race.finish(&mut run).map(|(_, choice)| choice)
        };
        assert_eq!(winner(0).as_deref(), Some("even"));
        assert_eq!(winner(16).as_deref(), Some("learns"));
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
    fn what_is_slow_is_called_once_or_twice() {
        let took = |serial, candidates: &[u32]| race(serial, candidates).1;
        // Three calls of the best one, one of a candidate that is much slower, two of one that is not, and
        // the serial one.
        let alone = took(500_000, &[10_000]);
        assert_eq!(alone, 3.0 * 10_000.0 + 500_000.0);
        assert_eq!(took(500_000, &[10_000, 50_000]), alone + 50_000.0);
        assert_eq!(took(500_000, &[10_000, 20_000]), alone + 2.0 * 20_000.0);
        assert_eq!(took(20_000, &[10_000]), 3.0 * 10_000.0 + 20_000.0);
        // Less than LONG: twice, unless that is far.
        assert_eq!(took(500, &[300]), 3.0 * 300.0 + 2.0 * 500.0);
        assert_eq!(took(800, &[300]), 3.0 * 300.0 + 800.0);
        // Up to MEDIUM four calls of the best one.
        assert_eq!(took(800, &[90]), 4.0 * 90.0 + 800.0);
    }

    /// The number of threads of three that a race takes where a call takes so many microseconds.
    fn threads_of_three(alone: u32, all: u32, gain: f64) -> (usize, f64) {
        let time = Cell::new(0.0);
        let mut run = |micros: &mut u32| time.set(time.get() + f64::from(*micros) * 1e-6);
        let mut race = Race::new(Driven(&time), 1);
        let on = |plan: &mut u32, on: &Threads| {
            *plan = if on.working() == 1 { alone } else { all };
            true
        };
        let (mut plan, three) = (all, Threads::new(3));
        let weight = |alone: f64| weight(alone, alone / gain);
        let of_all = (&three, f64::from(all) * 1e-6);
        let (threads, seconds) = race.threads(&mut plan, of_all, weight, on, &mut run);
        assert_eq!((seconds * 1e6).round(), f64::from(plan));
        (threads.working(), seconds)
    }

    #[test]
    fn one_thread_wins_if_it_is_ahead_by_half_of_what_the_model_expects_it_behind() {
        let of = |alone, all, gain| threads_of_three(alone, all, gain).0;
        assert_eq!((of(3000, 1000, 2.5), of(3000, 1000, 0.5)), (3, 3));
        // Something slows the other threads: 1.5 times are within the weight, 1.7 times are not.
        assert_eq!((of(3000, 4500, 2.5), of(3000, 5100, 2.5)), (3, 1));
        // The model expects nothing of them: the clock decides.
        assert_eq!((of(3000, 2900, 0.5), of(3000, 3100, 0.5)), (3, 1));
        let time = Cell::new(0.0);
        let mut race = Race::new(Driven(&time), 1);
        let mut run = |micros: &mut u32| time.set(time.get() + f64::from(*micros) * 1e-6);
        let one = Threads::new(1);
        let (threads, seconds) =
            race.threads(&mut 1, (&one, 3.0), |_| 0.0, |_, _| unreachable!(), &mut run);
        assert_eq!((threads.count(), seconds), (1, 3.0));
        // A plan that cannot change its threads stays on them.
        let three = Threads::new(3);
        let (threads, seconds) =
            race.threads(&mut 1, (&three, 3.0), |_| 0.0, |_, _| false, &mut run);
        assert_eq!((threads.count(), seconds), (3, 3.0));
    }

    /// What is near the best is called as often as that, and compared in turns; longer calls in fewer of them.
    #[test]
    fn the_last_comparison_takes_turns() {
        let took = |serial, candidates: &[u32]| race(serial, candidates).1;
        // Two calls in each round.
        assert_eq!(took(9000, &[300, 310]), (3.0 + 2.0) * 610.0 + 9000.0);
        assert_eq!(took(9000, &[90, 95]), (4.0 + 4.0 * 2.0) * 185.0 + 9000.0);
        let time = Cell::new(0.0);
        let new = |serial| Race::new(Driven(&time), 1).expecting(serial);
        let mut run = |_: &mut u32| {};
        let mut race = new(2.4e-2);
        race.keep(7, 1e-2, String::new);
        race.of_serial = Some(2.4e-2);
        assert_eq!(race.remaining(), 2.4e-2);
        // Shorter calls: a round of the best candidate and of one more.
        let mut short = new(2.4e-3);
        short.keep(7, 1e-3, String::new);
        assert!((short.remaining() - (2.4e-3 + 2.0 * 2e-3)).abs() < 1e-12);
        assert!(!race.serial_leads(&mut run));
    }

    #[test]
    fn of_two_that_read_the_same_arrays_the_faster_one_is_kept() {
        let kept = |first: f64, second: f64| {
            let time = Cell::new(0.0);
            let mut race = Race::new(Driven(&time), 0);
            race.keep(1, 1.1e-5, || "other".to_owned());
            race.keep(2, first, || "first".to_owned());
            race.keep_beside(3, second, "second".to_owned(), "first");
            race.finalists.iter().map(|of| of.plan).collect::<Vec<_>>()
        };
        assert_eq!(kept(1e-5, 1.04e-5), [2, 1]);
        assert_eq!(kept(1e-5, 1.06e-5), [2, 3, 1]);
        assert_eq!(kept(1.04e-5, 1e-5), [3, 1]);
        assert_eq!(kept(1.06e-5, 1e-5), [3, 2, 1]);
        // The first one was too slow to be kept.
        assert_eq!(kept(2e-5, 1e-5), [3, 1]);
        assert_eq!(kept(2e-5, 1.99e-5), [1]);
    }

    /// By a model, where that says that it takes more than 2.5 times as long.
    #[test]
    fn a_serial_plan_that_is_far_behind_is_not_called() {
        let called = |expected| {
            let (time, calls) = (Cell::new(0.0), Cell::new(0));
            let mut run = |plan: &mut u32| {
                time.set(time.get() + 1e-3);
                calls.set(calls.get() + usize::from(*plan == 1));
            };
            let mut race = Race::new(Driven(&time), 1).expecting(expected);
            race.keep(7, 1e-2, || "seven".to_owned());
            assert_eq!(race.remaining(), if expected > 2.5e-2 { 0.0 } else { expected });
            let leads = race.serial_leads(&mut run);
            (leads, race.finish(&mut run).map(|(plan, _)| plan), calls.get())
        };
        let (leads, winner, calls) = called(2.4e-2);
        assert!(leads && winner.is_none() && calls > 0);
        assert_eq!(called(2.6e-2), (false, Some(7), 0));
    }

    #[test]
    fn weights_and_warm_up_count_in_the_last_comparison() {
        let finish = |weighted: u32, other: u32| {
            let time = Cell::new(0.0);
            let mut run = |micros: &mut u32| time.set(time.get() + f64::from(*micros) * 1e-6);
            let mut race = Race::new(Driven(&time), 9000).with_warm_up(3);
            race.keep_weighted(weighted, (f64::from(weighted) * 1e-6, 1.08), String::new);
            race.keep(other, f64::from(other) * 1e-6, String::new);
            let least = (1.08 * f64::from(weighted)).min(f64::from(other));
            assert!((race.best() * 1e6 - least).abs() < 1e-9);
            let (winner, _) = race.finish(&mut run).unwrap();
            (winner, (time.get() * 1e6).round())
        };
        assert_eq!(finish(100, 105).0, 105);
        assert_eq!(finish(95, 105).0, 95);
        // Four rounds, with three calls of each plan before the one that counts; the serial one.
        assert_eq!(finish(80, 85).1, 4.0 * 4.0 * 165.0 + 9000.0);
    }

    #[test]
    fn ways_are_timed_in_turns_and_slow_ones_less_often() {
        let time = Cell::new(0.0);
        let mut run = |micros: &mut u32| time.set(time.get() + f64::from(*micros) * 1e-6);
        let mut race = Race::new(Driven(&time), 7);
        let (ways, mut order) = ([900, 100, 120], Vec::new());
        let set = |plan: &mut u32, way: usize| {
            order.push(way);
            *plan = ways[way];
        };
        let times = race.times(&mut 1, Caches::Cold, ways.len(), set, &mut run);
        let micros: Vec<f64> = times.into_iter().map(|seconds| (seconds * 1e6).round()).collect();
        assert_eq!(micros, [900.0, 100.0, 120.0]);
        assert_eq!(order, [0, 0, 1, 2, 0, 1, 2, 1, 2]);
        assert_eq!((race.spent() * 1e6).round(), 3.0 * (900.0 + 100.0 + 120.0));
    }
}
