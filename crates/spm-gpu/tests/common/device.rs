//! What a device does without any kernel.

use std::time::Duration;

use spm_gpu::{Device, DeviceBuffer, GpuError, Lines, Sampling, Stream, time};

/// Tries something on a device.
type Test = fn(&Device);

/// What to try, with its name.
pub(crate) const ALL: [(&str, Test); 5] = [
    ("copies_keep_every_bit", copies_keep_every_bit),
    ("arrays_without_elements_are_ordinary", arrays_without_elements_are_ordinary),
    (
        "more_than_the_memory_is_an_error_and_a_panic_leaks_nothing",
        more_than_the_memory_is_an_error_and_a_panic_leaks_nothing,
    ),
    ("a_copy_is_timed", a_copy_is_timed),
    ("lines_are_copied_and_gaps_stay", lines_are_copied_and_gaps_stay),
];

fn copies_keep_every_bit(device: &Device) {
    let data: Vec<u32> = (0..1000_u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let mut buffer = DeviceBuffer::from_slice(device, &data).unwrap();
    let mut other = DeviceBuffer::zeroed(device, data.len()).unwrap();
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

fn arrays_without_elements_are_ordinary(device: &Device) {
    let mut buffer = DeviceBuffer::<f64>::zeroed(device, 0).unwrap();
    buffer.copy_from_slice(&[]).unwrap();
    buffer.copy_to_slice(&mut []).unwrap();
    assert!(buffer.is_empty() && buffer.bytes() == 0);
}

fn more_than_the_memory_is_an_error_and_a_panic_leaks_nothing(device: &Device) {
    let half = (device.memory().unwrap().1 / 2) as usize;
    for _ in 0..8 {
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _buffer = DeviceBuffer::<u16>::uninitialized(device, half / 2).unwrap();
            std::panic::resume_unwind(Box::new("an early end"));
        }));
        assert!(unwound.is_err());
    }
    let too_much = DeviceBuffer::<f64>::uninitialized(device, half);
    assert!(matches!(too_much, Err(GpuError::OutOfMemory { .. })), "{too_much:?}");
    let beyond_counting = DeviceBuffer::<f64>::uninitialized(device, usize::MAX);
    assert!(matches!(beyond_counting, Err(GpuError::OutOfMemory { .. })));
}

fn a_copy_is_timed(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let source = DeviceBuffer::from_slice(device, &[1.0_f64; 1000]).unwrap();
    let mut target = DeviceBuffer::zeroed(device, 1000).unwrap();
    // No time ends the sampling: the machine may be busy.
    let (min_time, max_time) = (Duration::ZERO, Duration::MAX);
    let sampling = Sampling { warm_up: 1, iterations: 40, min_time, max_time };
    let timing = time(&stream, &sampling, |stream| target.copy_from_on(&source, stream)).unwrap();
    assert!((40..=64).contains(&timing.iterations), "{timing:?}");
    assert!(timing.min_s <= timing.p10_s && timing.p10_s <= timing.median_s, "{timing:?}");
    assert!(timing.median_s <= timing.p90_s, "{timing:?}");
}

fn lines_are_copied_and_gaps_stay(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let copy = |target: &mut [u32], to: Lines, source: &[u32], from: Lines| {
        let mut on_device = DeviceBuffer::from_slice(device, target).unwrap();
        let source = DeviceBuffer::from_slice(device, source).unwrap();
        let result = on_device.copy_lines_from_on(to, &source, from, &stream);
        stream.synchronize().unwrap();
        on_device.copy_to_slice(target).unwrap();
        result
    };
    let source: Vec<u32> = (1..=60).collect();
    for (count, length) in [(0, 3), (3, 0), (1, 1), (1, 4), (5, 1), (4, 3)] {
        for (first, pitch) in [(0, 4), (2, 7), (1, 4)] {
            let gapped = Lines { first, count, length, pitch };
            let dense = Lines::without_gaps(count, length);
            let of_line = |line: usize| first + line * pitch..first + line * pitch + length;
            let mut picked = vec![0; count * length];
            copy(&mut picked, dense, &source, gapped).unwrap();
            let expected: Vec<u32> =
                (0..count).flat_map(|line| source[of_line(line)].to_vec()).collect();
            assert_eq!(picked, expected, "{gapped:?}");
            let mut target = vec![0; 60];
            copy(&mut target, gapped, &picked, dense).unwrap();
            let mut expected = vec![0; 60];
            (0..count)
                .for_each(|line| expected[of_line(line)].copy_from_slice(&source[of_line(line)]));
            assert_eq!(target, expected, "{gapped:?}");
        }
    }
    let shape = |result: Result<(), GpuError>| matches!(result, Err(GpuError::Shape { .. }));
    let dense = Lines::without_gaps(3, 2);
    let mut target = vec![0; 6];
    // The last line begins inside, and ends outside.
    assert!(shape(copy(&mut target, dense, &source, Lines { first: 51, pitch: 4, ..dense })));
    copy(&mut target, dense, &source, Lines { first: 50, pitch: 4, ..dense }).unwrap();
    assert!(shape(copy(&mut target[..5], dense, &source, dense)));
    assert!(shape(copy(&mut target, dense, &source, Lines::without_gaps(2, 3))));
    assert!(shape(copy(&mut target, dense, &source, Lines { pitch: 1, ..dense })));
    assert!(shape(copy(&mut target, dense, &source, Lines { pitch: usize::MAX, ..dense })));
    assert_eq!(target, [51, 52, 55, 56, 59, 60]);
}
