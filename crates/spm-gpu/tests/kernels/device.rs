//! What a device does without any kernel, on the emulator; and what a machine without one says.

use spm_gpu::transpose::primitives;
use spm_gpu::{Device, DeviceCsc, Event, GpuError, Stream};
use spm_gpu_kernels::emulator::EmulatorOptions;

use crate::common::device;

#[test]
fn copies_allocations_and_times_on_the_emulator() {
    for (_, test) in device::ALL {
        test(&Device::emulated(EmulatorOptions { memory: 1 << 20, ..EmulatorOptions::default() }));
    }
}

#[test]
fn a_machine_without_a_device_says_why() {
    match Device::open(0) {
        Ok(device) => assert!(device.info().compute_capability >= (1, 0), "{device:?}"),
        Err(error @ (GpuError::NoDriver { .. } | GpuError::NoDevice)) => {
            assert!(error.is_absent());
            assert!(error.to_string().starts_with("no "), "{error}");
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_number_after_the_last_device_is_refused() {
    match Device::open(4096) {
        Err(GpuError::NoSuchDevice { ordinal: 4096, count }) => assert!(count > 0),
        Err(error) => assert!(error.is_absent(), "{error}"),
        Ok(_) => panic!("no machine has that many"),
    }
}

#[test]
fn streams_and_events_of_another_device_are_refused() {
    let (device, other) =
        (Device::emulated(Default::default()), Device::emulated(Default::default()));
    let stream = Stream::new(&device).unwrap();
    let error = Event::new(&other).unwrap().record(&stream).unwrap_err();
    assert_eq!(error, GpuError::OtherDevice { what: "stream" });
    let event = Event::new(&device).unwrap();
    assert_eq!(event.elapsed_since(&event), Err(GpuError::NotRecorded));
}

#[test]
fn lengths_that_no_device_has_are_refused() {
    let device =
        Device::emulated(EmulatorOptions { memory: 1 << 20, ..EmulatorOptions::default() });
    for length in [1 << 20, 1 << 31, (1 << 32) - (1 << 27), usize::MAX / 4, usize::MAX] {
        for (cols, entries) in [(length, 0), (0, length)] {
            let error = DeviceCsc::<f64>::new(&device, cols, entries).unwrap_err();
            assert!(matches!(error, GpuError::OutOfMemory { .. }), "{error}");
        }
        // Before the host makes data of this length.
        for primitive in primitives::registry() {
            let prepared = primitive.prepare(&device, length, &primitive.info.defaults());
            assert!(prepared.is_err(), "{} of {length}", primitive.info.id);
        }
    }
}
