//! Plans that are launched into two streams in turns, on the emulator with deferred work, for several
//! schedules.

use std::collections::BTreeSet;

use spm_formats::Complex;
use spm_gpu::{Device, DeviceBuffer, Event, GpuError, Scratch, Stream, spmm, spmv};
use spm_gpu_kernels::emulator::{Defect, EmulatorError, EmulatorOptions};
use spm_testing::exact::Whole;

use crate::common::cases::Case;
use crate::common::streams::{
    conversions, dropped_behind_a_launch, procedures, products, small, transpositions,
};

fn deferred(seed: u64, detect_races: bool) -> Device {
    Device::emulated(EmulatorOptions { seed, deferred: true, detect_races, ..Default::default() })
}

/// Reports a race whatever the schedule.
fn detecting(seed: u64) -> Device {
    deferred(seed, true)
}

/// A race shows in the results, with some schedules.
fn silent(seed: u64) -> Device {
    deferred(seed, false)
}

#[test]
fn every_plan_in_two_streams_on_the_emulator() {
    let cases =
        [small(), Case::generated("banded[n=30,lower=1,upper=1,unknowns=2]").with(Whole::Wide)];
    let mut seen = BTreeSet::new();
    // What the detector says depends on no schedule.
    for device in [detecting(0)].into_iter().chain((0..4).map(silent)) {
        for case in &cases {
            seen.append(&mut products(&device, case));
            transpositions(&device, case);
            conversions(&device, case);
        }
        procedures(&device, &[3000]);
    }
    let own = |baseline: bool, what: String| (!baseline).then_some(what);
    let (spmv, spmm) = (spmv::registry::<f64>(), spmm::registry::<f64>());
    let spmv = spmv.iter().filter_map(|k| own(k.baseline, format!("spmv {}", k.info.id)));
    let spmm = spmm.iter().filter_map(|k| own(k.baseline, format!("spmm {}", k.info.id)));
    assert_eq!(seen, spmv.chain(spmm).collect());
}

#[test]
fn every_complex_plan_in_two_streams_on_the_emulator() {
    for device in [detecting(0), silent(1)] {
        products(&device, &small::<Complex<f64>>());
        transpositions(&device, &small::<Complex<f64>>());
    }
}

#[test]
fn what_is_dropped_behind_a_launch_is_used_before() {
    (0..8).for_each(|seed| dropped_behind_a_launch(&detecting(seed)));
}

/// y = x through a workspace: what a plan would be that does not order its launches.
struct Through {
    workspace: DeviceBuffer<f64>,
    /// Recorded behind each launch, and waited for by the next one.
    event: Option<Event>,
}

impl Through {
    fn launch(
        &mut self,
        x: &DeviceBuffer<f64>,
        y: &mut DeviceBuffer<f64>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        if let Some(event) = &self.event {
            stream.wait(event)?;
        }
        self.workspace.copy_from_on(x, stream)?;
        y.copy_from_on(&self.workspace, stream)?;
        self.event.as_ref().map_or(Ok(()), |event| event.record(stream))
    }

    /// What two streams get of two operands.
    fn results(device: &Device, ordered: bool) -> Result<[Vec<f64>; 2], GpuError> {
        let event = ordered.then(|| Event::new(device)).transpose()?;
        let mut plan = Self { workspace: DeviceBuffer::zeroed(device, 4)?, event };
        let mut ys = [DeviceBuffer::zeroed(device, 4)?, DeviceBuffer::zeroed(device, 4)?];
        let xs = [1.0, 2.0].map(|x| DeviceBuffer::from_slice(device, &[x; 4]).unwrap());
        let streams = [Stream::new(device)?, Stream::new(device)?];
        for ((x, y), stream) in xs.iter().zip(&mut ys).zip(&streams) {
            plan.launch(x, y, stream)?;
        }
        device.synchronize()?;
        let mut results = [vec![0.0; 4], vec![0.0; 4]];
        for (y, result) in ys.iter().zip(&mut results) {
            y.copy_to_slice(result)?;
        }
        Ok(results)
    }
}

#[test]
fn a_planted_race_between_two_streams_is_found() {
    let right = [vec![1.0; 4], vec![2.0; 4]];
    let wrong = (0..20).filter(|&seed| Through::results(&silent(seed), false).unwrap() != right);
    assert!(wrong.count() > 0, "no schedule shows the race");
    for seed in 0..20 {
        let error = Through::results(&detecting(seed), false).unwrap_err();
        let GpuError::Emulator(EmulatorError::Operation { defect, .. }) = &error else {
            panic!("seed {seed}: {error}")
        };
        assert!(matches!(defect, Defect::StreamRace { .. }), "seed {seed}: {defect}");
        assert_eq!(Through::results(&detecting(seed), true).unwrap(), right);
        assert_eq!(Through::results(&silent(seed), true).unwrap(), right);
    }
}

/// Copies through the scratch memory in two streams in turns: each gets its own number.
#[test]
fn scratch_memory_is_used_by_one_stream_at_a_time() {
    for device in [detecting(0)].into_iter().chain((0..8).map(silent)) {
        let streams = [Stream::new(&device).unwrap(), Stream::new(&device).unwrap()];
        let mut scratch = Scratch::default();
        let mut targets: Vec<_> =
            (0..6).map(|_| DeviceBuffer::zeroed(&device, 4).unwrap()).collect();
        let number = |i: usize| 1 + i as u32;
        let sources: Vec<_> =
            (0..6).map(|i| DeviceBuffer::from_slice(&device, &[number(i); 4]).unwrap()).collect();
        for (i, (source, target)) in sources.iter().zip(&mut targets).enumerate() {
            let stream = &streams[i % 2];
            let copied = scratch.enter(&device, [4, 0], stream, |[through, _]| {
                through.copy_from_on(source, stream)?;
                target.copy_from_on(through, stream)
            });
            copied.unwrap().unwrap();
        }
        for (i, target) in targets.iter().enumerate() {
            assert_eq!(target.to_vec().unwrap(), [number(i); 4]);
        }
        let of_other_length =
            scratch.enter(&device, [7, 2], &streams[0], |arrays| arrays.map(|array| array.len()));
        assert_eq!(of_other_length.unwrap(), [7, 2]);
    }
}
