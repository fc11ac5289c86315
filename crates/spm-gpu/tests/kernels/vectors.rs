//! Vectors on the emulator.

use spm_gpu::Device;
use spm_gpu_kernels::emulator::EmulatorOptions;

use crate::common::vectors;

/// With the detector of races, and with schedules in which a missing wait gives other results.
#[test]
fn vectors_on_the_emulator() {
    let deferred = |seed| EmulatorOptions { seed, deferred: true, ..EmulatorOptions::default() };
    for options in [EmulatorOptions::default(), deferred(1), deferred(2), deferred(3)] {
        for (name, test) in vectors::ALL {
            println!("{name}, {options:?}");
            test(&Device::emulated(options));
        }
    }
}
