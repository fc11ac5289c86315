//! How a candidate is timed.

use std::time::Instant;

/// How long a candidate is timed: at least so many samples, or so many of calls that take longer than that, and at
/// least so many seconds.
const SAMPLES: usize = 3;
const FEW_SAMPLES: usize = 2;
const TIME: f64 = 2e-4;
/// A call that takes more is timed in few samples, and compared in few rounds.
pub(super) const MEDIUM: f64 = 1e-4;
/// Calls that take less are timed together, and in so many more samples before they are slow.
const SHORT: f64 = 1e-5;
const MORE_OF_SHORT: usize = 8;
/// A call that takes more need not be repeated to see that it is slow; a shorter one may have been
/// disturbed.
pub(super) const LONG: f64 = 1e-3;
/// Times the best one from which a call is slow: one that met cold caches, and others.
pub(super) const SLOW_COLD: f64 = 3.0;
pub(super) const SLOW: f64 = 1.25;
/// The same for the first way of a candidate, beyond which its other ways are not timed, where a call takes more than
/// [`MEDIUM`]: the time that they would take is that of another candidate.
const BEHIND: f64 = 1.1;
/// The same, from which on one call is enough.
pub(super) const FAR: f64 = 2.0;

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

/// What the first call of a plan meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caches {
    /// Memory that may not be in the caches, and that no one may have touched.
    Cold,
    /// What calls before have left there.
    Warm,
}

/// What is known of the first call of a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct First {
    pub(crate) caches: Caches,
    /// Whether a model expects calls to take more than [`FAR`] times the best ones: then one that does is enough.
    pub(crate) is_expected_far: bool,
}

impl From<Caches> for First {
    fn from(caches: Caches) -> Self {
        Self { caches, is_expected_far: false }
    }
}

/// Seconds that timing a candidate takes in so many ways, of which a call takes `seconds`.
pub(crate) fn trial(seconds: f64, ways: usize) -> f64 {
    seconds + ways as f64 * TIME.max(samples(seconds) as f64 * seconds)
}

/// Samples of a call that takes `seconds`, at least.
fn samples(seconds: f64) -> usize {
    if seconds > MEDIUM { FEW_SAMPLES } else { SAMPLES }
}

/// Seconds of the fastest call in each of some ways, which take turns: what disturbs a call only ever makes it
/// slower, and what has just been planned may be slow for a while. Gives up on calls that take much more
/// than `best`. `call` is given the way and a number of calls.
pub(super) fn times(
    clock: &mut impl Clock,
    (best, first): (f64, impl Into<First>),
    ways: usize,
    mut call: impl FnMut(usize, usize),
) -> Vec<f64> {
    let mut timed = |way: usize, calls: usize| {
        let begin = clock.seconds();
        call(way, calls);
        clock.seconds() - begin
    };
    let First { caches, is_expected_far } = first.into();
    let first = timed(0, 1);
    let slow = if caches == Caches::Cold { SLOW_COLD } else { SLOW };
    let is_far = is_expected_far && first > FAR * best && first > SHORT;
    if is_far || first > slow * best && first > LONG {
        return vec![first; ways];
    }
    let (mut fastest, mut samples_of) = (vec![f64::INFINITY; ways], vec![0; ways]);
    if caches == Caches::Warm {
        fastest[0] = first;
    }
    // A short call by itself is no sample.
    let is_sample = caches == Caches::Warm && first > MEDIUM;
    samples_of[0] = usize::from(is_sample);
    let (mut spent, mut left) = (0.0, true);
    while left {
        let of_best = fastest.iter().zip(&samples_of).min_by(|a, b| a.0.total_cmp(b.0));
        let (&best_way, &sampled) = of_best.expect("a first way");
        if sampled >= samples(best_way) && spent >= TIME * ways as f64 {
            break;
        }
        left = false;
        let mut best_so_far = best_way;
        let is_alone = ways > 1 && fastest[1..].iter().all(|of| of.is_infinite());
        for (way, (fastest, sampled)) in fastest.iter_mut().zip(&mut samples_of).enumerate() {
            // Where the first way is slow, the others are not looked at.
            let behind = if best_so_far > MEDIUM { BEHIND } else { SLOW };
            if fastest.is_infinite() && best_so_far.is_finite() && best_so_far > behind * best {
                continue;
            }
            // Twice, lest something else took the core, and more often if calls are short or no other way tells; the
            // first calls of all ways may be slow.
            let more = match *fastest {
                ..=SHORT => MORE_OF_SHORT,
                ..=MEDIUM => 1,
                _ => usize::from(is_alone),
            };
            let calls = *sampled + usize::from(way == 0 && !is_sample);
            let is_slow = calls >= 2 + more && *fastest > SLOW * best
                || calls > more && *fastest > FAR * best
                || *sampled >= 2 + more && *fastest > SLOW * best_way;
            if is_slow && fastest.is_finite() {
                continue;
            }
            let together = (SHORT / fastest.clamp(1e-8, SHORT)).ceil() as usize;
            let sample = timed(way, together);
            *fastest = fastest.min(sample / together as f64);
            best_so_far = best_so_far.min(*fastest);
            *sampled += 1;
            (spent, left) = (spent + sample, true);
        }
    }
    fastest
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock that only goes on while a plan runs, by what the plan says.
    #[derive(Clone, Copy)]
    pub(in crate::race) struct Driven<'a>(pub(in crate::race) &'a Cell<f64>);

    impl Clock for Driven<'_> {
        fn seconds(&mut self) -> f64 {
            self.0.get()
        }
    }

    /// A clock that goes on by 0.1 to 100 ms at each look, drawn from a seed: any candidate may win
    /// a race.
    pub(crate) struct Dice(u64, f64, f64);

    impl Dice {
        pub(crate) fn new(seed: u64) -> Self {
            Self(seed, 0.0, 3.0)
        }

        /// By up to 1 ms: later candidates are not far from the first ones.
        pub(crate) fn near(seed: u64) -> Self {
            Self(seed, 0.0, 1.0)
        }
    }

    impl Clock for Dice {
        fn seconds(&mut self) -> f64 {
            // splitmix64
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let unit = (bits ^ (bits >> 31)) as f64 / u64::MAX as f64;
            self.1 += 10_f64.powf(-4.0 + self.2 * unit);
            self.1
        }
    }

    /// The first call counts where caches are warm.
    #[test]
    fn caches_decide_whether_the_first_call_counts() {
        let calls_of = |first: First, best: f64, seconds: f64| {
            let (time, count) = (Cell::new(0.0), Cell::new(0));
            times(&mut Driven(&time), (best, first), 1, |_, calls| {
                count.set(count.get() + calls);
                time.set(time.get() + calls as f64 * seconds);
            });
            count.get()
        };
        let calls = |caches: Caches, best, seconds| calls_of(caches.into(), best, seconds);
        let (cold, warm) = (Caches::Cold, Caches::Warm);
        assert_eq!((calls(cold, 1e-3, 2.9e-3), calls(warm, 1e-3, 2.9e-3)), (2, 1));
        assert_eq!((calls(cold, 1e-3, 3.1e-3), calls(warm, 1e-3, 1.2e-3)), (1, 2));
        assert_eq!((calls(cold, 1e-4, 5e-4), calls(warm, 1e-4, 5e-4)), (2, 1));
        assert_eq!(calls(warm, 3e-4, 5e-4), 2);
        // A model and one call that is not short agree.
        let far = First { caches: Caches::Cold, is_expected_far: true };
        assert_eq!(calls_of(far, 1e-4, 2.1e-4), 1);
        for (best, seconds) in [(1e-4, 1.9e-4), (1e-6, 9e-6)] {
            assert_eq!(calls_of(far, best, seconds), calls(cold, best, seconds));
        }
    }

    /// The ways that are called, one after the other, and their times in microseconds, where the best plan so far takes
    /// 100.
    fn called(ways: [u32; 2]) -> (Vec<usize>, Vec<f64>) {
        let (time, mut order) = (Cell::new(0.0), Vec::new());
        let times = times(&mut Driven(&time), (1e-4, Caches::Cold), 2, |way, calls| {
            order.push(way);
            time.set(time.get() + calls as f64 * f64::from(ways[way]) * 1e-6);
        });
        (order, times.into_iter().map(|seconds| (seconds * 1e6).round()).collect())
    }

    #[test]
    fn other_ways_are_timed_where_the_first_one_is_not_slow() {
        assert_eq!(called([250, 110]), (vec![0, 0], vec![250.0, f64::INFINITY]));
        assert_eq!(called([150, 110]), (vec![0, 0, 0], vec![150.0, f64::INFINITY]));
        assert_eq!(called([120, 110]), (vec![0; 5], vec![120.0, f64::INFINITY]));
        assert_eq!(called([109, 110]), (vec![0, 0, 1, 0, 1], vec![109.0, 110.0]));
        // The first call is cold, and the one behind it was disturbed: the other way has as many samples as this one.
        let (time, mut micros) =
            (Cell::new(0.0), [300.0, 180.0, 109.0, 105.0, 140.0, 105.0].into_iter());
        let mut order = Vec::new();
        times(&mut Driven(&time), (1e-4, Caches::Cold), 2, |way, _| {
            order.push(way);
            time.set(time.get() + micros.next().unwrap_or(105.0) * 1e-6);
        });
        assert_eq!(order, [0, 0, 0, 1, 0, 1]);
    }

    #[test]
    fn short_calls_are_timed_more_often_before_they_are_slow() {
        let samples = |micros: f64| {
            let (time, mut count) = (Cell::new(0.0), 0);
            times(&mut Driven(&time), (micros * 1e-6 / 3.0, Caches::Cold), 1, |_, calls| {
                count += 1;
                time.set(time.get() + calls as f64 * micros * 1e-6);
            });
            count
        };
        assert_eq!((samples(200.0), samples(60.0), samples(6.0)), (2, 2, 2 + MORE_OF_SHORT - 1));
    }
}
