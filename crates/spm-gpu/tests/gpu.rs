//! Every registered kernel against the reference, and what holds of devices, on a GPU. Without one these
//! tests are reported as ignored.

mod common;

use std::process::ExitCode;

use common::cases::{Case, small, spmm_cases};
use common::{device, scaled, spmm, spmv, streams, transpose, values, vectors};
use libtest_mimic::{Arguments, Trial};
use spm_formats::{Complex, DenseShape, MemoryBudget, Scalar};
use spm_gpu::nccl::{self, NcclId, NcclRank};
use spm_gpu::{Device, DeviceBuffer, DeviceReal, DeviceScalar, Stream, cusparse};
use spm_testing::exact::Whole;

fn main() -> ExitCode {
    let (device, why) = match Device::available() {
        Ok(device) => (Some(device), None),
        Err(error) if error.is_absent() => (None, Some(error.to_string())),
        Err(error) => panic!("{error}"),
    };
    let no_cusparse = match &device {
        Some(device) => cusparse::version(device).err().map(|error| error.to_string()),
        None => why.clone(),
    };
    if let Some(why) = why.as_ref().or(no_cusparse.as_ref()) {
        println!("{why}");
    }
    let trials = tests().into_iter().map(|Test { name, baseline, run }| {
        let (device, missing) = (device.clone(), if baseline { &no_cusparse } else { &why });
        let reason = missing.clone().unwrap_or_default();
        let trial = Trial::test(name, move || {
            run(&device.ok_or(reason)?);
            Ok(())
        });
        match missing {
            Some(_) => trial.with_kind(if baseline { "no cuSPARSE" } else { "no GPU" }),
            None => trial,
        }
        .with_ignored_flag(missing.is_some())
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

struct Test {
    name: String,
    /// Needs cuSPARSE, too.
    baseline: bool,
    run: Box<dyn FnOnce(&Device) + Send>,
}

impl Test {
    fn new(name: String, run: impl FnOnce(&Device) + Send + 'static) -> Self {
        Self { name, baseline: false, run: Box::new(run) }
    }
}

/// Rates of an opened device, and none beyond the budget.
fn rates_are_measured_once(device: &Device) {
    let device = Device::open(device.info().ordinal).unwrap();
    let nothing = MemoryBudget::bytes(0);
    assert_eq!(device.rates(&nothing), None);
    let Some(rates) = device.rates(&MemoryBudget::unlimited()) else {
        return println!("no memory to measure rates with");
    };
    println!("{rates:?}");
    let sound = |rate: f64| rate.is_finite() && rate > 0.0;
    assert!(sound(rates.launch_s) && sound(rates.l2) && sound(rates.memory));
    assert_eq!(device.rates(&nothing), Some(rates));
}

/// NCCL with one rank: messages to itself, and sums. Without NCCL there is nothing to try.
fn nccl_with_one_rank(device: &Device) {
    let (version, path) = match nccl::version() {
        Ok(found) => found,
        Err(error) => return println!("{error}"),
    };
    println!("NCCL {version:?}, {}", path.display());
    let id = NcclId::new().unwrap();
    let rank = NcclRank::new(device, &id, 0, 1).unwrap();
    let stream = Stream::new(device).unwrap();
    let mut x = DeviceBuffer::from_slice(device, &[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    let mut y = DeviceBuffer::<f64>::zeroed(device, 6).unwrap();
    rank.exchange(&[(0, 1..4)], &x, &[(0, 2..5)], &mut y, &stream).unwrap();
    rank.exchange(&[], &x, &[], &mut y, &stream).unwrap();
    rank.sum(&mut x, 3, &stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.0, 0.0, 2.0, 3.0, 4.0, 0.0]);
    assert_eq!(x.to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert!(rank.exchange(&[(0, 1..4)], &x, &[], &mut y, &stream).is_err());
    assert!(rank.exchange(&[(1, 1..4)], &x, &[], &mut y, &stream).is_err());
    assert!(rank.exchange(&[(0, 1..7)], &x, &[(0, 0..6)], &mut y, &stream).is_err());
    assert!(rank.sum(&mut x, 6, &stream).is_err());
    assert!(NcclRank::new(device, &id, 1, 1).is_err());
}

fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> =
        device::ALL.map(|(name, run)| Test::new(format!("device::{name}"), run)).into();
    tests.push(Test::new("nccl_with_one_rank".to_owned(), nccl_with_one_rank));
    tests.push(Test::new("rates_are_measured_once".to_owned(), rates_are_measured_once));
    macro_rules! kernels {
        ($operation:ident, $on_gpu:ident, $single:ty, $double:ty, $name:literal) => {
            for kernel in spm_gpu::$operation::registry::<$double>() {
                let id = kernel.info.id;
                let run = move |device: &Device| {
                    $on_gpu::<$single>(id, device);
                    $on_gpu::<$double>(id, device);
                };
                let test = Test::new(format!(concat!($name, "::{}"), id), run);
                tests.push(Test { baseline: kernel.baseline, ..test });
            }
        };
    }
    kernels!(spmv, spmv_on_gpu, f32, f64, "spmv");
    kernels!(spmm, spmm_on_gpu, f32, f64, "spmm");
    kernels!(transpose, transpose_on_gpu, f32, f64, "transpose");
    kernels!(spmv, spmv_on_gpu, Complex<f32>, Complex<f64>, "complex::spmv");
    kernels!(spmm, spmm_on_gpu, Complex<f32>, Complex<f64>, "complex::spmm");
    kernels!(transpose, transpose_on_gpu, Complex<f32>, Complex<f64>, "complex::transpose");
    tests.push(Test::new("complex::values".to_owned(), values::check::<Complex<f64>>));
    tests.push(Test::new("complex::everything_once".to_owned(), complex_once));
    tests.push(Test::new("values::every_kernel".to_owned(), |device| {
        values::check::<f32>(device);
        values::check::<f64>(device);
    }));
    for baseline in [false, true] {
        let run = move |device: &Device| {
            scaled::check::<f32>(device, baseline, true);
            scaled::check::<f64>(device, baseline, true);
            scaled::check::<Complex<f32>>(device, baseline, true);
            scaled::check::<Complex<f64>>(device, baseline, true);
        };
        let name = if baseline { "scaled::baselines" } else { "scaled::every_kernel" };
        tests.push(Test { baseline, ..Test::new(name.to_owned(), run) });
    }
    tests.push(Test::new("transpose::everything_once".to_owned(), everything_once));
    tests.push(Test::new("transpose::conversions".to_owned(), conversions));
    tests.push(Test::new("transpose::procedures".to_owned(), |device| {
        transpose::check_procedures(device, &[1, 300, 5000, 1_000_000]);
    }));
    tests.push(Test::new("streams::every_plan_in_two_streams".to_owned(), |device| {
        in_two_streams(device, large().into_iter().map(|case| case.with(Whole::Wide)), 1_000_000);
    }));
    tests.push(Test::new("streams::every_small_plan_in_two_streams".to_owned(), |device| {
        in_two_streams(device, [streams::small()], 3000);
    }));
    tests.push(Test::new("complex::in_two_streams".to_owned(), |device| {
        streams::products(device, &streams::small::<Complex<f64>>());
        streams::transpositions(device, &streams::small::<Complex<f64>>());
    }));
    let dropped = "streams::dropped_behind_a_launch".to_owned();
    tests.push(Test::new(dropped, streams::dropped_behind_a_launch));
    tests.extend(vectors::ALL.map(|(name, run)| Test::new(format!("vectors::{name}"), run)));
    tests
}

/// Matrices that are too large for the emulator.
fn large<T: Scalar>() -> Vec<Case<T>> {
    vec![
        Case::new("30000 rows of 0 to 40", (30_000, 2_000), |_, random| random.between(0, 41)),
        Case::new("a row of 10^5 among rows of 3", (2_000, 100_000), |row, _| match row {
            1_000 => 100_000,
            _ => 3,
        })
        .with(Whole::Wide),
    ]
}

fn spmv_on_gpu<T: DeviceScalar>(id: &str, device: &Device) {
    for case in small::<T>().into_iter().chain(large()) {
        let mut bits = None;
        for _ in 0..3 {
            spmv::check(id, device, &case, &mut bits);
        }
    }
}

fn spmm_on_gpu<T: DeviceScalar>(id: &str, device: &Device) {
    for case in small::<T>().into_iter().chain(spmm_cases()).chain(large()) {
        for layout in spmm::LAYOUTS {
            for k in [1, 2, 3, 4, 8, 33, 64] {
                let mut bits = None;
                for _ in 0..2 {
                    let dense = DenseShape { k, layout };
                    spmm::check(id, device, &case, dense, k == 8, &mut bits);
                }
            }
        }
    }
}

fn transpose_on_gpu<T: DeviceScalar>(id: &str, device: &Device) {
    let sets = transpose::sets::<T>(id);
    for case in small::<T>().into_iter().chain(large()) {
        for _ in 0..3 {
            transpose::check(id, device, &case, &sets);
        }
    }
}

/// What [`everything_once`] looks at.
const ONCE: [&str; 2] = ["rows of 0 to 90", "a full row among short and empty ones"];

/// Every transposition once, with values and without, every procedure, and the conversions that
/// sort: few and short launches, which compute-sanitizer gets through.
fn everything_once(device: &Device) {
    for kernel in transpose::own_kernels() {
        let mut sets = transpose::small_cuts(&kernel.info);
        sets.push(kernel.info.defaults());
        for case in small::<f64>() {
            if ONCE.contains(&&*case.name) {
                transpose::check(kernel.info.id, device, &case, &sets);
            }
        }
    }
    for case in small::<f64>().iter().filter(|case| ONCE.contains(&&*case.name)) {
        transpose::check_conversions(device, case);
    }
    transpose::check_procedures(device, &[300, 5000]);
}

/// The same for every kernel for complex matrices.
fn complex_once(device: &Device) {
    fn check<T: DeviceScalar>(device: &Device) {
        for case in small::<T>().iter().filter(|case| ONCE.contains(&&*case.name)) {
            for kernel in spm_gpu::spmv::registry::<T>().iter().filter(|kernel| !kernel.baseline) {
                spmv::check(kernel.info.id, device, case, &mut None);
            }
        }
        for case in spmm_cases::<T>() {
            for kernel in spm_gpu::spmm::registry::<T>().iter().filter(|kernel| !kernel.baseline) {
                for layout in spmm::LAYOUTS {
                    let dense = DenseShape { k: 3, layout };
                    spmm::check(kernel.info.id, device, &case, dense, false, &mut None);
                }
            }
        }
        for case in small::<T>().iter().filter(|case| ONCE.contains(&&*case.name)) {
            for kernel in
                spm_gpu::transpose::registry::<T>().iter().filter(|kernel| !kernel.baseline)
            {
                transpose::check(kernel.info.id, device, case, &[kernel.info.defaults()]);
            }
        }
    }
    check::<Complex<f32>>(device);
    check::<Complex<f64>>(device);
}

fn conversions(device: &Device) {
    fn check<T: DeviceReal>(device: &Device) {
        for case in small::<T>().iter().chain(&large()) {
            transpose::check_conversions(device, case);
            transpose::check_padded(device, case);
        }
    }
    check::<f64>(device);
    check::<f32>(device);
}

/// Launches that overlap.
fn in_two_streams(device: &Device, cases: impl IntoIterator<Item = Case<f64>>, length: usize) {
    for case in cases {
        streams::products(device, &case);
        streams::transpositions(device, &case);
        streams::conversions(device, &case);
    }
    streams::procedures(device, &[length]);
}
