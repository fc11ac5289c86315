//! Repeated timing: warm-up, sampling and quantiles, the same for CPU cores and GPUs.

use std::time::{Duration, Instant};

/// Timings below this are dominated by reading the clock, so short runs are timed in batches.
const SHORTEST_SAMPLE: Duration = Duration::from_micros(5);

/// Times of one operation, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Timing {
    /// Measured runs.
    pub iterations: usize,
    /// Median.
    pub median_s: f64,
    /// Shortest.
    pub min_s: f64,
    /// 10th percentile.
    pub p10_s: f64,
    /// 90th percentile.
    pub p90_s: f64,
}

impl Timing {
    /// The quantiles of some times in seconds, interpolated between the two nearest; `None` for no
    /// times.
    pub fn of(mut seconds: Vec<f64>) -> Option<Self> {
        seconds.sort_by(f64::total_cmp);
        let min_s = *seconds.first()?;
        let quantile = |q: f64| {
            let position = q * (seconds.len() - 1) as f64;
            let (low, high) = (position.floor() as usize, position.ceil() as usize);
            seconds[low] + (seconds[high] - seconds[low]) * position.fract()
        };
        Some(Self {
            iterations: seconds.len(),
            median_s: quantile(0.5),
            min_s,
            p10_s: quantile(0.1),
            p90_s: quantile(0.9),
        })
    }
}

/// The number and the duration of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Runs before the first sample, as far as `max_time` allows.
    pub warm_up: usize,
    /// Minimum number of samples.
    pub iterations: usize,
    /// Minimum duration of sampling.
    pub min_time: Duration,
    /// No further sample is begun after this, even if `iterations` is not reached (one is always
    /// taken).
    pub max_time: Duration,
}

impl Default for Sampling {
    /// 5 runs of warm-up, 50 samples and 50 ms at least, 1 s at most.
    fn default() -> Self {
        Self {
            warm_up: 5,
            iterations: 50,
            min_time: Duration::from_millis(50),
            max_time: Duration::from_secs(1),
        }
    }
}

impl Sampling {
    /// The times of some runs. `one` runs once and returns the seconds of that; it is given the
    /// shortest time of the warm-up, and nothing during that.
    ///
    /// # Errors
    /// The first error of `one`.
    pub fn run<E>(&self, mut one: impl FnMut(Option<f64>) -> Result<f64, E>) -> Result<Timing, E> {
        let mut once = f64::INFINITY;
        let begin = Instant::now();
        for _ in 0..self.warm_up.max(1) {
            once = once.min(one(None)?);
            if begin.elapsed() >= self.max_time {
                return Ok(statistics(vec![once]));
            }
        }
        // Grown as it fills: nobody's memory holds as many as somebody may ask for.
        let mut samples = Vec::new();
        let begin = Instant::now();
        loop {
            samples.push(one(Some(once))?);
            let (passed, taken) = (begin.elapsed(), samples.len());
            let enough = taken >= self.iterations && passed >= self.min_time;
            if enough || passed >= self.max_time {
                return Ok(statistics(samples));
            }
        }
    }
}

/// Times `run` by a monotonic clock; `between` is called, untimed, before each sample. Without it,
/// samples that would be too short to time are means of a batch of runs.
///
/// # Errors
/// The first error of `run`.
pub fn sample<E>(
    sampling: &Sampling,
    mut between: Option<impl FnMut()>,
    mut run: impl FnMut() -> Result<(), E>,
) -> Result<Timing, E> {
    sampling.run(|once| {
        let batch = match (once, &mut between) {
            (None, _) => 1,
            (Some(_), Some(between)) => {
                between();
                1
            }
            (Some(once), None) => batch_of(once),
        };
        let start = Instant::now();
        for _ in 0..batch {
            run()?;
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(batch))
    })
}

/// The runs of a sample, each of which takes `once` seconds.
fn batch_of(once: f64) -> u32 {
    let wanted = SHORTEST_SAMPLE.as_secs_f64() / once.max(1e-9);
    (wanted.ceil() as u32).clamp(1, 10_000)
}

fn statistics(samples: Vec<f64>) -> Timing {
    Timing::of(samples).expect("at least one sample")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Option<fn()> = None;

    #[test]
    fn what_comes_between_comes_before_every_run() {
        let sampling = Sampling {
            warm_up: 1,
            iterations: 5,
            min_time: Duration::ZERO,
            max_time: Duration::MAX,
        };
        let (mut runs, mut pauses) = (0, 0);
        let run = || {
            runs += 1;
            Ok::<(), ()>(())
        };
        sample(&sampling, Some(|| pauses += 1), run).unwrap();
        assert_eq!((runs, pauses), (6, 5));
    }

    #[test]
    fn samples_of_short_runs_are_batches() {
        let batches = [0.0, 1e-9, 1.5e-6, 2e-6, 1e-5, 1.0].map(batch_of);
        assert_eq!(batches, [5000, 5000, 4, 3, 1, 1]);
    }

    #[test]
    fn iterations_minimum_time_and_errors_are_honoured() {
        let mut sampling = Sampling {
            warm_up: 2,
            iterations: 7,
            min_time: Duration::ZERO,
            max_time: Duration::from_secs(10),
        };
        let nap = || {
            std::thread::sleep(Duration::from_micros(100));
            Ok::<(), ()>(())
        };
        let mut pauses = 0;
        let timing = sample(&sampling, Some(|| pauses += 1), nap).unwrap();
        assert_eq!((timing.iterations, pauses), (7, 7));
        assert!(timing.min_s >= 1e-4);
        sampling.min_time = Duration::from_millis(20);
        assert!(sample(&sampling, NOTHING, nap).unwrap().iterations >= 7);
        sampling.max_time = Duration::ZERO;
        assert_eq!(sample(&sampling, NOTHING, nap).unwrap().iterations, 1);
        assert_eq!(sample(&sampling, NOTHING, || Err("broken")), Err("broken"));
    }

    #[test]
    fn quantiles_lie_between_samples() {
        let of = |last: i32| Timing::of((1..=last).rev().map(f64::from).collect()).unwrap();
        let expected =
            Timing { iterations: 11, median_s: 6.0, min_s: 1.0, p10_s: 2.0, p90_s: 10.0 };
        assert_eq!(of(11), expected);
        assert_eq!(of(10).median_s, 5.5);
        assert_eq!(of(1).p90_s, 1.0);
        assert_eq!(Timing::of(Vec::new()), None);
    }
}
