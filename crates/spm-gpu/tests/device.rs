//! What a device does without any kernel: the emulator always, a GPU where there is one.

use std::time::Duration;

use spm_gpu::{Device, DeviceBuffer, Event, GpuError, Stream, TimingOptions, time};
use spm_gpu_kernels::emulator::EmulatorOptions;

/// The emulator, and the first GPU if there is one.
fn devices(test: &str) -> Vec<Device> {
    let options = EmulatorOptions { memory: 1 << 20, ..EmulatorOptions::default() };
    let mut devices = vec![Device::emulated(options)];
    match Device::available() {
        Ok(device) => devices.push(device),
        Err(error) if error.is_absent() => println!("{test} skipped on a GPU: {error}"),
        Err(error) => panic!("{error}"),
    }
    devices
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
fn copies_keep_every_bit() {
    for device in devices("copies_keep_every_bit") {
        let data: Vec<u32> = (0..1000_u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        let mut buffer = DeviceBuffer::from_slice(&device, &data).unwrap();
        let mut other = DeviceBuffer::zeroed(&device, data.len()).unwrap();
        other.copy_from(&buffer).unwrap();
        buffer.fill_zero().unwrap();
        let mut back = vec![1; data.len()];
        other.copy_to_slice(&mut back).unwrap();
        assert_eq!(back, data);
        buffer.copy_to_slice(&mut back).unwrap();
        assert_eq!(back, vec![0; data.len()]);
        assert!(matches!(
            buffer.copy_from_slice(&[1]),
            Err(GpuError::Shape { expected: 1000, found: 1, .. })
        ));
    }
}

#[test]
fn arrays_without_elements_are_ordinary() {
    for device in devices("arrays_without_elements_are_ordinary") {
        let mut buffer = DeviceBuffer::<f64>::zeroed(&device, 0).unwrap();
        buffer.copy_from_slice(&[]).unwrap();
        buffer.copy_to_slice(&mut []).unwrap();
        assert!(buffer.is_empty() && buffer.bytes() == 0);
    }
}

#[test]
fn more_than_the_memory_is_an_error_and_a_panic_leaks_nothing() {
    for device in devices("more_than_the_memory_is_an_error_and_a_panic_leaks_nothing") {
        let half = (device.memory().unwrap().1 / 2) as usize;
        for _ in 0..8 {
            let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _buffer = DeviceBuffer::<u16>::uninitialized(&device, half / 2).unwrap();
                std::panic::resume_unwind(Box::new("an early end"));
            }));
            assert!(unwound.is_err());
        }
        let too_much = DeviceBuffer::<f64>::uninitialized(&device, half);
        assert!(matches!(too_much, Err(GpuError::OutOfMemory { .. })), "{too_much:?}");
        let beyond_counting = DeviceBuffer::<f64>::uninitialized(&device, usize::MAX);
        assert!(matches!(beyond_counting, Err(GpuError::OutOfMemory { .. })));
    }
}

#[test]
fn a_copy_is_timed() {
    for device in devices("a_copy_is_timed") {
        let stream = Stream::new(&device).unwrap();
        let source = DeviceBuffer::from_slice(&device, &[1.0_f64; 1000]).unwrap();
        let mut target = DeviceBuffer::zeroed(&device, 1000).unwrap();
        let options = TimingOptions {
            warm_up: 1,
            iterations: 40,
            min_time: Duration::ZERO,
            ..Default::default()
        };
        let timing = time(&stream, options, |stream| target.copy_from_on(&source, stream)).unwrap();
        assert!((40..=64).contains(&timing.iterations), "{timing:?}");
        assert!(timing.min_s <= timing.p10_s && timing.p10_s <= timing.median_s, "{timing:?}");
        assert!(timing.median_s <= timing.p90_s && timing.median_s < 0.01, "{timing:?}");
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
