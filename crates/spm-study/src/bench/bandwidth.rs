//! Bandwidth by working set: what bounds a case whose arrays lie in a cache, and one whose arrays do not.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spm_cpu::Threads;
use spm_formats::kernel::Schedule;
use spm_gpu::{Device, GpuError, Stream};

use super::timing::{Sampling, sample};

/// What was measured over arrays of some size; in `environment.json` an array of three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(u64, f64, f64)", into = "(u64, f64, f64)")]
pub struct Level {
    /// Bytes of all arrays together: the working set.
    pub bytes: u64,
    /// GB/s of copying one half of them onto the other, bytes read and bytes written both counted.
    pub copy: f64,
    /// GB/s of reading all of them (CPU), of y = a x + y (GPU).
    pub read: f64,
}

impl From<(u64, f64, f64)> for Level {
    fn from((bytes, copy, read): (u64, f64, f64)) -> Self {
        Self { bytes, copy, read }
    }
}

impl From<Level> for (u64, f64, f64) {
    fn from(level: Level) -> Self {
        (level.bytes, level.copy, level.read)
    }
}

/// The bandwidth that bounds a case that moves `bytes`, in GB/s: the greatest that was measured, of
/// copying or reading, with a working set as large or larger. A larger one has no nearer cache.
/// `None` without measurements.
pub fn roof(levels: &[Level], bytes: f64) -> Option<f64> {
    // Working sets were measured in steps: one that is a little smaller counts as as large.
    let of = |level: &Level| level.copy.max(level.read);
    let largest = levels.iter().max_by_key(|level| level.bytes)?;
    let larger = levels.iter().filter(|level| level.bytes as f64 >= 0.75 * bytes);
    Some(larger.map(of).fold(of(largest), f64::max))
}

/// Bytes of the working sets on the CPU, and those on a GPU, where less is all latency.
const CPU_SETS: [u32; 14] = [14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 27, 29];
const GPU_SETS: [u32; 12] = [18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30];

const SAMPLING: Sampling = Sampling {
    warm_up: 1,
    iterations: 5,
    min_time: Duration::from_millis(2),
    max_time: Duration::from_millis(60),
};

/// Bandwidth of some threads, smallest working set first; nothing where memory does not hold the arrays.
pub fn of_threads(threads: &Threads) -> Vec<Level> {
    let elements = 1usize << (CPU_SETS[CPU_SETS.len() - 1] - 4);
    let array = |element: u64| {
        let mut array = Vec::new();
        array.try_reserve_exact(elements).ok()?;
        array.resize(elements, element);
        Some(array)
    };
    let (Some(source), Some(mut target)) = (array(1), array(0)) else { return Vec::new() };
    let level = |exponent: &u32| {
        let bytes = 1u64 << exponent;
        let half = (bytes / 16) as usize;
        let copy = median(threads, bytes, &source[..half], &mut target[..half], |from, to| {
            to.copy_from_slice(black_box(from));
        });
        let halves = (&source[..half], &mut target[..half]);
        let read = median(threads, bytes, halves.0, halves.1, |a, b| {
            black_box(sum(black_box(a)).wrapping_add(sum(black_box(b))));
        });
        Level { bytes, copy, read }
    };
    CPU_SETS.iter().map(level).collect()
}

fn sum(slice: &[u64]) -> u64 {
    slice.iter().fold(0, |sum, &element| sum.wrapping_add(element))
}

/// GB/s of a pass over two arrays, each thread over a part of its own. Small arrays are passed over many
/// times by one job, whose start would hide the caches.
fn median(
    threads: &Threads,
    bytes: u64,
    source: &[u64],
    target: &mut [u64],
    pass: impl Fn(&[u64], &mut [u64]) + Sync,
) -> f64 {
    const LEAST: u64 = 2 << 20;
    let passes = (threads.count() as u64 * LEAST).div_ceil(bytes).max(1);
    let chunk = source.len().div_ceil(threads.count());
    let parts: Vec<_> =
        source.chunks(chunk).zip(target.chunks_mut(chunk)).map(Mutex::new).collect();
    let timing = sample(&SAMPLING, None::<fn()>, || {
        threads.for_each_chunk(parts.len(), Schedule::Static, 1, |mine| {
            for part in &parts[mine] {
                let mut part = part.lock().expect("no pass panics");
                let (source, target) = &mut *part;
                for _ in 0..passes {
                    pass(source, target);
                }
            }
        });
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(timing) = timing;
    (passes * bytes) as f64 / timing.median_s / 1e9
}

/// Bandwidth inside a device, smallest working set first, each pass timed as a kernel is.
///
/// # Errors
/// Those of the device.
pub fn of_device(device: &Device) -> Result<Vec<Level>, GpuError> {
    let stream = Stream::new(device)?;
    let sampling = Sampling { iterations: 20, ..SAMPLING };
    let level = |exponent: &u32| {
        let bytes = 1u64 << exponent;
        let passes = spm_gpu::time_passes(&stream, bytes, &sampling)?;
        let [copy, read] = passes.map(|pass| pass.bytes as f64 / pass.timing.median_s / 1e9);
        Ok(Level { bytes, copy, read })
    };
    GPU_SETS.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels() -> Vec<Level> {
        [(1 << 14, 80.0, 90.0), (1 << 20, 40.0, 30.0), (1 << 26, 45.0, 20.0), (1 << 29, 10.0, 12.0)]
            .map(Level::from)
            .to_vec()
    }

    #[test]
    fn the_roof_is_that_of_the_working_set_or_a_larger_one() {
        let at = |bytes: u64| roof(&levels(), bytes as f64);
        assert_eq!(at(1 << 10), Some(90.0));
        assert_eq!(at((1 << 14) + 1000), Some(90.0));
        // A larger working set was faster: noise, and so the roof of the smaller one as well.
        assert_eq!(at(1 << 20), Some(45.0));
        assert_eq!(at(1 << 28), Some(12.0));
        assert_eq!(at(1 << 40), Some(12.0));
        assert_eq!(roof(&[], 1.0), None);
    }

    #[test]
    fn levels_are_three_numbers() {
        let text = serde_json::to_string(&levels()[..1]).unwrap();
        assert_eq!(text, "[[16384,80.0,90.0]]");
        assert_eq!(serde_json::from_str::<Vec<Level>>(&text).unwrap(), levels()[..1]);
    }

    #[test]
    fn every_working_set_is_measured() {
        for threads in [1, 3] {
            let measured = of_threads(&Threads::new(threads));
            assert_eq!(measured.len(), CPU_SETS.len());
            let sound = |gb: f64| gb.is_finite() && gb > 0.0;
            assert!(measured.iter().all(|l| sound(l.copy) && sound(l.read)), "{measured:?}");
        }
    }
}
