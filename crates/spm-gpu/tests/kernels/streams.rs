//! Plans that are launched into two streams in turns: on the emulator with deferred work, for several
//! schedules; on a GPU, also under compute-sanitizer (docs/testing.md).

use std::collections::BTreeSet;

use spm_formats::kernel::{PlanError, TransposeOutput};
use spm_formats::{DenseShape, FormatError, Layout, MemoryBudget};
use spm_gpu::transpose::convert::{self, DeviceCoo};
use spm_gpu::transpose::primitives;
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsc, Event, GpuError, PlanOptions, Stream, spmm, spmv, transpose,
};
use spm_gpu_kernels::emulator::{Defect, EmulatorError, EmulatorOptions};
use spm_testing::reference;

use crate::cases::{Case, large, spmm_cases};
use crate::devices::gpu;

/// Launches of a plan, into one stream and the other.
const ROUNDS: usize = 2;

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

/// With values whose sums are exact in any order, for a comparison bit by bit.
fn whole_numbers(case: Case<f64>) -> Case<f64> {
    case.map_values(|i, _| ((7 * i) % 9) as f64 - 4.0)
}

/// Operand number `which`.
fn operand(which: usize, length: usize) -> Vec<f64> {
    (0..length).map(|i| (((5 + 2 * which) * i + which) % 11) as f64 - 5.0).collect()
}

/// Launches in turns into two streams, each with its own operand and results, none of which is
/// waited for, and checks all results.
fn in_turns(
    what: &str,
    device: &Device,
    (cols, rows): (usize, usize),
    expected: impl Fn(&[f64]) -> Vec<f64>,
    mut launch: impl FnMut(&DeviceBuffer<f64>, &mut DeviceBuffer<f64>, &Stream) -> Result<(), GpuError>,
) {
    let streams = [Stream::new(device).unwrap(), Stream::new(device).unwrap()];
    let x = [operand(0, cols), operand(1, cols)];
    let on_device = x.each_ref().map(|x| DeviceBuffer::from_slice(device, x).unwrap());
    let fresh = || DeviceBuffer::from_slice(device, &vec![f64::NAN; rows]).unwrap();
    let mut results: Vec<_> = (0..2 * ROUNDS).map(|_| fresh()).collect();
    for (round, y) in results.iter_mut().enumerate() {
        let side = round % 2;
        let launched = launch(&on_device[side], y, &streams[side]);
        launched.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    device.synchronize().unwrap_or_else(|error| panic!("{what}: {error}"));
    let expected = x.map(|x| expected(&x));
    for (round, y) in results.iter().enumerate() {
        let mut result = vec![0.0; rows];
        y.copy_to_slice(&mut result).unwrap();
        assert!(result == expected[round % 2], "{what}: launch {round} is wrong");
    }
}

/// Refusals that say nothing about streams: padding beyond the budget, a baseline that this machine
/// does not have, what a kernel does not take.
fn planned<P>(what: &str, baseline: bool, plan: Result<P, PlanError>) -> Option<P> {
    match plan {
        Ok(plan) => Some(plan),
        Err(PlanError::Unsupported { .. }) if baseline => None,
        Err(PlanError::Format(FormatError::OverBudget { .. })) => None,
        // Rows of more than 2^16 columns; many diagonals.
        Err(PlanError::Unsupported { kernel: "csr-compact" | "dia-thread-per-row", .. }) => None,
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Returns which kernels took the matrix.
fn products(device: &Device, case: &Case<f64>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let (rows, cols) = (case.coo.rows(), case.coo.cols());
    for kernel in spmv::registry::<f64>() {
        let (what, set) = (format!("spmv {}", kernel.info.id), kernel.info.defaults());
        let plan = kernel.plan(device, case.csr.view(), &set, &PlanOptions::default());
        let Some(mut plan) = planned(&what, kernel.baseline, plan) else { continue };
        let expected = |x: &[f64]| reference::spmv(&case.coo, x).values;
        in_turns(&what, device, (cols, rows), expected, |x, y, stream| plan.launch(x, y, stream));
        seen.insert(what);
    }
    for kernel in spmm::registry::<f64>() {
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let dense = DenseShape { k: 4, layout };
            let (what, set) = (format!("spmm {}", kernel.info.id), kernel.info.defaults());
            let plan = kernel.plan(device, case.csr.view(), dense, &set, &PlanOptions::default());
            let Some(mut plan) = planned(&what, kernel.baseline, plan) else { continue };
            let expected = |x: &[f64]| reference::spmm(&case.coo, x, dense).values;
            let lengths = (cols * dense.k, rows * dense.k);
            in_turns(&what, device, lengths, expected, |x, y, stream| plan.launch(x, y, stream));
            seen.insert(what);
        }
    }
    seen
}

fn transpositions(device: &Device, case: &Case<f64>) {
    let (cols, entries) = (case.coo.cols(), case.coo.entries());
    let (pointers, indices, values) = reference::transpose(&case.coo);
    let expected = TransposeOutput { pointers, indices, values };
    let streams = [Stream::new(device).unwrap(), Stream::new(device).unwrap()];
    for kernel in transpose::registry::<f64>() {
        let (what, set) = (format!("transpose {}", kernel.info.id), kernel.info.defaults());
        let plan = kernel.plan(device, case.csr.view(), &set, &PlanOptions::default());
        let Some(mut plan) = planned(&what, kernel.baseline, plan) else { continue };
        let fresh = || DeviceCsc::new(device, cols, entries).unwrap();
        let mut results: Vec<_> = (0..2 * ROUNDS).map(|_| fresh()).collect();
        for (round, output) in results.iter_mut().enumerate() {
            plan.launch(output, &streams[round % 2]).unwrap();
        }
        device.synchronize().unwrap_or_else(|error| panic!("{what}: {error}"));
        for output in &results {
            let mut result = TransposeOutput::new(cols, entries);
            output.copy_to(&mut result).unwrap();
            assert!(result == expected, "{what}: wrong");
        }
    }
    // Twice at the same time: what they share is the device.
    let coo = DeviceCoo::from_coo(device, &case.coo).unwrap();
    let csr = || {
        let csr = convert::coo_to_csr(&coo, &MemoryBudget::default()).unwrap();
        let mut columns = vec![0; entries];
        csr.indices().copy_to_slice(&mut columns).unwrap();
        assert!(columns == case.csr.col_ind(), "COO to CSR");
    };
    std::thread::scope(|scope| {
        scope.spawn(csr);
        scope.spawn(csr);
    });
}

fn procedures(device: &Device, lengths: &[usize]) {
    let streams = [Stream::new(device).unwrap(), Stream::new(device).unwrap()];
    for primitive in primitives::registry() {
        for &length in lengths {
            let set = primitive.info.defaults();
            let mut prepared = primitive.prepare(device, length, &set).unwrap();
            for round in 0..2 * ROUNDS {
                prepared.launch(&streams[round % 2]).unwrap();
            }
            let id = primitive.info.id;
            device.synchronize().unwrap_or_else(|error| panic!("{id}: {error}"));
            assert!(prepared.check(&streams[1]).unwrap(), "{id}: wrong");
        }
    }
}

/// Columns all over, an empty and a full row.
fn small() -> Case<f64> {
    let full = "a full row among short and empty ones";
    let case = spmm_cases().into_iter().find(|case| case.name == full);
    whole_numbers(case.expect("a listed case"))
}

#[test]
fn every_plan_in_two_streams_on_the_emulator() {
    let cases = [small(), whole_numbers(Case::generated("banded[n=60,lower=3,upper=2]"))];
    let mut seen = BTreeSet::new();
    // What the detector says depends on no schedule.
    for device in [detecting(0)].into_iter().chain((0..4).map(silent)) {
        for case in &cases {
            seen.append(&mut products(&device, case));
            transpositions(&device, case);
        }
        procedures(&device, &[3000]);
    }
    let own = |baseline: bool, what: String| (!baseline).then_some(what);
    let (spmv, spmm) = (spmv::registry::<f64>(), spmm::registry::<f64>());
    let spmv = spmv.iter().filter_map(|k| own(k.baseline, format!("spmv {}", k.info.id)));
    let spmm = spmm.iter().filter_map(|k| own(k.baseline, format!("spmm {}", k.info.id)));
    assert_eq!(seen, spmv.chain(spmm).collect());
}

fn on_gpu(test: &str, cases: impl IntoIterator<Item = Case<f64>>, length: usize) {
    let Some(device) = gpu(test) else { return };
    for case in cases {
        products(&device, &case);
        transpositions(&device, &case);
    }
    procedures(&device, &[length]);
}

/// Launches that overlap.
#[test]
fn every_plan_in_two_streams_on_gpu() {
    let name = concat!(module_path!(), "::every_plan_in_two_streams_on_gpu");
    on_gpu(name, large().into_iter().map(whole_numbers), 1_000_000);
}

/// Launches that compute-sanitizer gets through.
#[test]
fn every_small_plan_in_two_streams_on_gpu() {
    on_gpu(concat!(module_path!(), "::every_small_plan_in_two_streams_on_gpu"), [small()], 3000);
}

#[test]
fn what_is_dropped_behind_a_launch_is_used_before() {
    let case = small();
    let (rows, cols) = (case.coo.rows(), case.coo.cols());
    let kernel = spmv::find::<f64>("csr-merge").unwrap();
    let expected = reference::spmv(&case.coo, &operand(0, cols)).values;
    let check = |device: &Device| {
        let plan =
            kernel.plan(device, case.csr.view(), &kernel.info.defaults(), &PlanOptions::default());
        let (mut plan, streams) = (plan.unwrap(), [(); 2].map(|()| Stream::new(device).unwrap()));
        let x = DeviceBuffer::from_slice(device, &operand(0, cols)).unwrap();
        let mut ys = [(); 2].map(|()| DeviceBuffer::zeroed(device, rows).unwrap());
        for (y, stream) in ys.iter_mut().zip(streams) {
            plan.launch(&x, y, &stream).unwrap();
            drop(stream);
        }
        drop((plan, x));
        for y in &ys {
            let mut result = vec![0.0; rows];
            y.copy_to_slice(&mut result).unwrap();
            assert_eq!(result, expected);
        }
    };
    (0..8).for_each(|seed| check(&detecting(seed)));
    if let Some(device) = gpu(concat!(module_path!(), "::what_is_dropped")) {
        check(&device);
    }
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
