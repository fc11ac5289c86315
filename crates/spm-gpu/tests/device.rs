//! What a device does without any kernel. On a machine without one the tests say so and pass.

use spm_gpu::{Device, DeviceBuffer, GpuError, Stream, TimingOptions, time};

fn device(test: &str) -> Option<Device> {
    match Device::available() {
        Ok(device) => Some(device),
        Err(error) if error.is_absent() => {
            println!("{test} skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
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
    let Some(_) = device("the_number_after_the_last_device_is_refused") else { return };
    assert!(matches!(Device::open(4096), Err(GpuError::NoSuchDevice { ordinal: 4096, .. })));
}

#[test]
fn copies_keep_every_bit() {
    let Some(device) = device("copies_keep_every_bit") else { return };
    let data: Vec<u32> = (0..1000).map(|i| i * 0x9e37_79b9_u32 % 0x7fff_ffff).collect();
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

#[test]
fn more_than_the_memory_is_an_error_and_dropped_buffers_are_free_again() {
    let name = "more_than_the_memory_is_an_error_and_dropped_buffers_are_free_again";
    let Some(device) = device(name) else { return };
    let half = (device.memory().unwrap().1 / 2) as usize;
    for _ in 0..8 {
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _buffer = DeviceBuffer::<u16>::uninitialized(&device, half / 2).unwrap();
            std::panic::resume_unwind(Box::new("an early end"));
        }));
        assert!(unwound.is_err());
    }
    let too_much = DeviceBuffer::<f64>::uninitialized(&device, 4 * half);
    assert!(matches!(too_much, Err(GpuError::OutOfMemory { .. })), "{too_much:?}");
}

#[test]
fn a_launch_of_nothing_takes_no_time_worth_speaking_of() {
    let Some(device) = device("a_launch_of_nothing_takes_no_time_worth_speaking_of") else {
        return;
    };
    let stream = Stream::new(&device).unwrap();
    let options = TimingOptions { warm_up: 1, iterations: 3, ..TimingOptions::default() };
    let timing = time(&stream, options, |_| Ok(())).unwrap();
    assert!(timing.iterations >= 3 && timing.median_s < 1e-3, "{timing:?}");
}
