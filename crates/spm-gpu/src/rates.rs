//! How fast a device moves bytes.

use std::time::Duration;

use spm_formats::timing::{Sampling, Timing};

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::stream::Stream;
use crate::timing::time;
use crate::vector::DeviceVector;

/// Bytes of the large working set at least, and in units of L2: then L2 holds little of it.
const LEAST_LARGE: u64 = 64 << 20;
const LARGE: u64 = 4;

/// The shortest of a few runs counts: others may use the device meanwhile.
const SAMPLING: Sampling = Sampling {
    warm_up: 1,
    iterations: 8,
    min_time: Duration::ZERO,
    max_time: Duration::from_millis(5),
};

/// The model of a device's time: a launch, and bytes at the rate of the memory that holds them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Seconds of a kernel with next to nothing to do.
    pub launch_s: f64,
    /// Bytes per second of a working set that L2 holds.
    pub l2: f64,
    /// Bytes per second of a working set that is much larger than L2.
    pub memory: f64,
}

impl Rates {
    /// The time of a kernel that moves `bytes`, all of them once, on a device with `l2_bytes` of L2;
    /// nothing if that is no time.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let rates = spm_gpu::Rates { launch_s: 2e-6, l2: 5e12, memory: 4e12 };
    /// assert_eq!(rates.time(10_000_000, 50 << 20), Some(Duration::from_micros(4)));
    /// assert_eq!(rates.time(400_000_000, 50 << 20), Some(Duration::from_micros(102)));
    /// ```
    pub fn time(&self, bytes: u64, l2_bytes: u64) -> Option<Duration> {
        let rate = if bytes <= l2_bytes { self.l2 } else { self.memory };
        Duration::try_from_secs_f64(self.launch_s + bytes as f64 / rate).ok()
    }
}

/// A pass over a working set.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Pass {
    /// Bytes read and bytes written.
    pub bytes: u64,
    /// Times of the pass.
    pub timing: Timing,
}

impl Pass {
    fn new(bytes: u64, timing: Timing) -> Self {
        Self { bytes, timing }
    }
}

/// Times two passes over a working set of `bytes` in the device's memory, each as a kernel is timed: copying
/// one half onto the other, and y = a x + y of the halves.
///
/// # Errors
/// [`GpuError::OutOfMemory`]; a device that fails.
pub fn time_passes(
    stream: &Stream,
    bytes: u64,
    sampling: &Sampling,
) -> Result<[Pass; 2], GpuError> {
    let half = usize::try_from(bytes / 16).unwrap_or(usize::MAX);
    let source = DeviceBuffer::<f64>::zeroed(stream.device(), half)?;
    let mut target = DeviceBuffer::<f64>::zeroed(stream.device(), half)?;
    let copy = time(stream, sampling, |s| target.copy_from_on(&source, s))?;
    let x = DeviceVector::new(source, stream)?;
    let mut y = DeviceVector::new(target, stream)?;
    let axpy = time(stream, sampling, |_| y.axpy(1.0, &x))?;
    let half = half as u64 * 8;
    Ok([Pass::new(2 * half, copy), Pass::new(3 * half, axpy)])
}

/// The two working sets to measure: one that L2 holds, and a much larger one; nothing if half of the `free`
/// memory is less.
fn working_sets(l2_bytes: u64, free: u64) -> Option<[u64; 2]> {
    let large = l2_bytes.saturating_mul(LARGE).max(LEAST_LARGE);
    // Of a device that does not tell its L2 both rates are that of memory.
    let small = if l2_bytes == 0 { large } else { l2_bytes / 2 };
    (large <= free / 2).then_some([small, large])
}

/// The rates of a device, in some milliseconds; nothing without memory for the working sets.
pub(crate) fn measure(device: &Device) -> Result<Option<Rates>, GpuError> {
    let (free, _) = device.memory()?;
    match working_sets(device.info().l2_bytes, free) {
        Some(sets) => measure_with(device, sets),
        None => Ok(None),
    }
}

/// The rates with these working sets; nothing if one takes no longer than a launch.
fn measure_with(device: &Device, [small, large]: [u64; 2]) -> Result<Option<Rates>, GpuError> {
    let stream = Stream::new(device)?;
    let launches = time_passes(&stream, 16, &SAMPLING)?;
    let rate = |bytes| -> Result<Option<f64>, GpuError> {
        let passes = time_passes(&stream, bytes, &SAMPLING)?;
        let rates = passes.iter().zip(&launches).map(|(pass, launch)| {
            // What the model adds to a launch.
            let moving_s = pass.timing.min_s - launch.timing.min_s;
            if moving_s > 0.0 { pass.bytes as f64 / moving_s } else { 0.0 }
        });
        Ok(rates.reduce(f64::max).filter(|&rate| rate > 0.0))
    };
    let launch_s = launches[1].timing.min_s;
    Ok(match (rate(small)?, rate(large)?) {
        (Some(l2), Some(memory)) => Some(Rates { launch_s, l2, memory }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::EmulatedDevice;
    use spm_formats::MemoryBudget;
    use spm_gpu_kernels::emulator::EmulatorOptions;

    #[test]
    fn the_rate_is_that_of_the_memory_that_holds_the_bytes() {
        let rates = Rates { launch_s: 1e-6, l2: 1e9, memory: 1e8 };
        assert_eq!(rates.time(0, 0), Some(Duration::from_micros(1)));
        assert_eq!(rates.time(1000, 1000), Some(Duration::from_micros(2)));
        assert_eq!(rates.time(1000, 999), Some(Duration::from_micros(11)));
        for wrong in [0.0, -1.0, f64::NAN] {
            assert_eq!(Rates { l2: wrong, ..rates }.time(1 << 40, u64::MAX), None);
        }
    }

    #[test]
    fn working_sets_leave_half_of_the_memory() {
        assert_eq!(working_sets(50 << 20, 1 << 30), Some([25 << 20, 200 << 20]));
        assert_eq!(working_sets(50 << 20, 400 << 20), Some([25 << 20, 200 << 20]));
        assert_eq!(working_sets(50 << 20, (400 << 20) - 1), None);
        assert_eq!(working_sets(0, 1 << 30), Some([LEAST_LARGE; 2]));
        assert_eq!(working_sets(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn passes_move_their_bytes_and_keep_no_memory() {
        let device = Device::emulated(EmulatorOptions::default());
        let before = device.memory().unwrap();
        let stream = Stream::new(&device).unwrap();
        let [copy, axpy] = time_passes(&stream, 1 << 12, &SAMPLING).unwrap();
        assert_eq!((copy.bytes, axpy.bytes), (4096, 6144));
        let rates = measure_with(&device, [1 << 12, 1 << 14]).unwrap();
        let sound = |rate: f64| rate.is_finite() && rate > 0.0;
        assert!(rates.is_none_or(|of| of.launch_s >= 0.0 && sound(of.l2) && sound(of.memory)));
        assert_eq!(device.memory().unwrap(), before);
    }

    #[test]
    fn an_emulated_device_says_its_rates() {
        let (options, budget) = (EmulatorOptions::default, MemoryBudget::bytes(0));
        assert_eq!(Device::emulated(options()).rates(&budget), None);
        let rates = Some(Rates { launch_s: 1e-6, l2: 1e9, memory: 1e8 });
        let device = EmulatedDevice { rates, ..Default::default() };
        assert_eq!(Device::emulated_as(options(), device).rates(&budget), rates);
    }
}
