//! Repeated timing of one planned operation.

use std::time::{Duration, Instant};

pub use spm_gpu::Timing;

/// Timings below this are dominated by reading the clock, so short runs are timed in batches.
const SHORTEST_SAMPLE: Duration = Duration::from_micros(5);

/// What the clock encloses.
///
/// It matters for kernels of a device. A CPU kernel has its operands in place and nobody to wait
/// for: its time is always that of the product alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Scope {
    /// The kernel alone, by events of the device.
    #[default]
    Kernel,
    /// Launch and synchronization, by the host's clock; operands in place.
    Launch,
    /// From a CSR matrix and x in host memory to y there, by the host's clock: conversion of the
    /// format, allocation, copies both ways, freeing.
    Call,
}

impl Scope {
    /// All three, from the narrowest to the widest.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Launch, Self::Call];

    /// Whether a row's column says this one.
    pub fn is(self, column: &str) -> bool {
        column == self.name() || (column.is_empty() && self == Self::default())
    }

    /// Name in `results.csv` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Launch => "launch",
            Self::Call => "call",
        }
    }
}

/// How often something is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Runs before the first sample, as far as `max_time` allows.
    pub warm_up: usize,
    /// Samples at the least.
    pub iterations: usize,
    /// Sampling goes on until this has passed, too.
    pub min_time: Duration,
    /// No further sample is begun after this, even if `iterations` is not reached (one is always
    /// taken).
    pub max_time: Duration,
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
    let mut once = Duration::MAX;
    let begin = Instant::now();
    for _ in 0..sampling.warm_up.max(1) {
        let start = Instant::now();
        run()?;
        once = once.min(start.elapsed());
        if begin.elapsed() >= sampling.max_time {
            return Ok(statistics(vec![once.as_secs_f64()]));
        }
    }
    let batch = match between {
        Some(_) => 1,
        None => SHORTEST_SAMPLE.as_nanos().div_ceil(once.as_nanos().max(1)).clamp(1, 10_000),
    };
    // Grown as it fills: nobody's memory holds as many as somebody may ask for.
    let mut samples = Vec::new();
    let begin = Instant::now();
    loop {
        if let Some(between) = &mut between {
            between();
        }
        let start = Instant::now();
        for _ in 0..batch {
            run()?;
        }
        samples.push(start.elapsed().as_secs_f64() / batch as f64);
        let (passed, taken) = (begin.elapsed(), samples.len());
        let enough = taken >= sampling.iterations && passed >= sampling.min_time;
        if enough || passed >= sampling.max_time {
            return Ok(statistics(samples));
        }
    }
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
        // Far below the shortest sample: alone, runs are timed by the batch.
        let mut runs = 0;
        let mut run = || {
            runs += 1;
            Ok::<(), ()>(())
        };
        sample(&sampling, NOTHING, &mut run).unwrap();
        let mut pauses = 0;
        sample(&sampling, Some(|| pauses += 1), &mut run).unwrap();
        let batched = runs - 1 - 6;
        assert_eq!(pauses, 5);
        assert!(batched > 5, "{batched}");
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
}
