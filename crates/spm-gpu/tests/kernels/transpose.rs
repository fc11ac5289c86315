//! CSR to CSC: the same bits as the reference, every time.

use spm_formats::Csr;
use spm_formats::kernel::{KernelInfo, Parameters, PlanError, TransposeOutput, TransposePlan};
use spm_gpu::{
    Device, DeviceCsc, DeviceScalar, DeviceTransposePlan, GpuError, PlanOptions, Stream, transpose,
};
use spm_testing::reference;

use crate::cases::{Case, large, small};
use crate::devices::{emulator, kernel_tests};

kernel_tests! {
    transpose::registry::<f64>;
    scan_trans "scan-trans",
    merge_trans "merge-trans",
    radix "radix",
    auto "auto",
}

/// The parameters to try, and for the kernels that cut the entries some that make many small cuts:
/// several tiles for a block, buckets of one column, buckets that no block sorts alone.
fn sets<T: DeviceScalar>(id: &str) -> Vec<Parameters> {
    let info = transpose::find::<T>(id).expect("a registered kernel").info;
    let mut sets = info.variants();
    sets.extend(small_cuts(&info));
    sets
}

/// Those that make many small cuts.
fn small_cuts(info: &KernelInfo) -> Vec<Parameters> {
    let small: &[&str] = match info.id {
        "radix" => &[
            "block=32",
            "block=32,chunks=1",
            "block=64,width=1,chunks=3",
            "block=32,width=64,chunks=2",
            "block=96,width=4",
        ],
        "scan-trans" => &["block=32", "block=32,ranges=3,chunks=2", "block=32,ranges=100,chunks=1"],
        _ => &[],
    };
    small.iter().map(|text| info.parse_parameters(text).expect("its parameters")).collect()
}

fn on_emulator<T: DeviceScalar>(id: &str) {
    let info = transpose::find::<T>(id).expect("a registered kernel").info;
    for (seed, case) in (1..).zip(small::<T>()) {
        // All parameters on the matrix of many lengths only: the emulator is slow.
        let sets = match case.name {
            "rows of 0 to 90" => sets::<T>(id),
            "a full row among short and empty ones" => small_cuts(&info),
            _ => vec![info.defaults()],
        };
        check(id, &emulator(seed), &case, &sets);
    }
}

fn on_gpu<T: DeviceScalar>(id: &str, device: &Device) {
    let sets = sets::<T>(id);
    for case in small::<T>().into_iter().chain(large()) {
        for _ in 0..3 {
            check(id, device, &case, &sets);
        }
    }
}

/// Runs the kernel with each set of parameters on one matrix.
fn check<T: DeviceScalar>(id: &str, device: &Device, case: &Case<T>, sets: &[Parameters]) {
    let kernel = transpose::find::<T>(id).expect("a registered kernel");
    let (pointers, indices, values) = reference::transpose(&case.coo);
    let expected = TransposeOutput { pointers, indices, values };
    for parameters in sets {
        let what = format!("{}, {}, {}", kernel.info.label(parameters), T::NAME, case.name);
        let options = PlanOptions::default();
        let mut plan = match kernel.plan(device, case.csr.view(), parameters, &options) {
            Ok(plan) => plan,
            Err(PlanError::Unsupported { reason, .. }) if kernel.baseline => {
                println!("{what} skipped: {reason}");
                continue;
            }
            Err(error) => panic!("{what}: {error}"),
        };
        let output = run(&mut *plan).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(output == expected, "{what}: not the transpose");
        let mut plan = kernel
            .plan_pattern(device, case.csr.view(), parameters, &PlanOptions::default())
            .unwrap_or_else(|error| panic!("{what}, pattern: {error}"));
        let pattern = run_pattern(&mut *plan).unwrap_or_else(|e| panic!("{what}, pattern: {e}"));
        assert!(pattern.0 == expected.pointers && pattern.1 == expected.indices, "{what}: pattern");
    }
}

fn run_pattern<T: DeviceScalar>(
    plan: &mut dyn DeviceTransposePlan<T>,
) -> Result<(Vec<u32>, Vec<u32>), GpuError> {
    let device = plan.device().clone();
    let stream = Stream::new(&device)?;
    let (cols, entries) = (plan.shape().1, plan.entries());
    let mut output = DeviceCsc::pattern(&device, cols, entries)?;
    plan.launch(&mut output, &stream)?;
    let (mut pointers, mut indices) = (vec![0; cols + 1], vec![0; entries]);
    output.pointers.copy_to_slice(&mut pointers)?;
    output.indices.copy_to_slice(&mut indices)?;
    Ok((pointers, indices))
}

pub(crate) fn run<T: DeviceScalar>(
    plan: &mut dyn DeviceTransposePlan<T>,
) -> Result<TransposeOutput<T>, GpuError> {
    let device = plan.device().clone();
    let stream = Stream::new(&device)?;
    let (cols, entries) = (plan.shape().1, plan.entries());
    let mut output = DeviceCsc::new(&device, cols, entries)?;
    // A second run finds the workspace as the first one left it.
    plan.launch(&mut output, &stream)?;
    plan.launch(&mut output, &stream)?;
    let mut result = TransposeOutput::new(cols, entries);
    output.copy_to(&mut result)?;
    Ok(result)
}

/// What [`everything_once_on_gpu`] looks at.
const ONCE: [&str; 2] = ["rows of 0 to 90", "a full row among short and empty ones"];

/// Every transposition once, with values and without, every procedure, and the conversions that
/// sort: few and short launches, which compute-sanitizer gets through.
#[test]
fn everything_once_on_gpu() {
    let name = concat!(module_path!(), "::everything_once_on_gpu");
    let Some(device) = crate::devices::gpu(name) else { return };
    for kernel in own_kernels() {
        let mut sets = small_cuts(&kernel.info);
        sets.push(kernel.info.defaults());
        for case in small::<f64>() {
            if ONCE.contains(&case.name) {
                check(kernel.info.id, &device, &case, &sets);
            }
        }
    }
    for case in small::<f64>().iter().filter(|case| ONCE.contains(&case.name)) {
        convert::check(&device, case);
    }
    primitives::check(&device, &[300, 5000]);
}

fn sample() -> Csr<f64> {
    Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap()
}

fn own_kernels() -> impl Iterator<Item = transpose::TransposeKernel<f64>> {
    transpose::registry::<f64>().into_iter().filter(|kernel| !kernel.baseline)
}

#[test]
fn an_output_of_the_wrong_size_or_device_is_refused() {
    let (device, other) = (emulator(1), emulator(1));
    let stream = Stream::new(&device).unwrap();
    for kernel in own_kernels() {
        let parameters = kernel.info.defaults();
        let options = PlanOptions::default();
        let mut plan = kernel.plan(&device, sample().view(), &parameters, &options).unwrap();
        let mut output = DeviceCsc::new(&device, 3, 2).unwrap();
        let error = plan.launch(&mut output, &stream).unwrap_err();
        let expected = GpuError::Shape { what: "row indices", expected: 3, found: 2 };
        assert_eq!(error, expected, "{}", kernel.info.id);
        let mut output = DeviceCsc::new(&other, 3, 3).unwrap();
        let error = plan.launch(&mut output, &stream).unwrap_err();
        assert_eq!(error, GpuError::OtherDevice { what: "column pointers" }, "{}", kernel.info.id);
    }
}

#[test]
fn results_in_host_memory_are_copied() {
    let device = emulator(1);
    for kernel in own_kernels() {
        let parameters = kernel.info.defaults();
        let options = PlanOptions::default();
        let mut plan =
            kernel.plan_on_host(&device, sample().view(), &parameters, &options).unwrap();
        let mut output = TransposeOutput::new(3, 3);
        plan.run(&mut output).unwrap();
        assert_eq!(output.pointers, [0, 1, 2, 3], "{}", kernel.info.id);
        assert_eq!(output.indices, [0, 1, 0], "{}", kernel.info.id);
        assert_eq!(output.values, [1.0, 3.0, 2.0], "{}", kernel.info.id);
    }
}

mod convert {
    use super::*;
    use spm_formats::convert::{coo_to_csr, csr_to_coo, csr_to_hll, csr_to_sell};
    use spm_formats::{Coo, FormatError, MemoryBudget};
    use spm_gpu::transpose::convert::{self, DeviceCompressed, DeviceCoo};
    use spm_gpu::{DeviceBuffer, DeviceHll, DeviceSell};

    /// The arrays in host memory.
    fn downloaded<T: DeviceScalar>(a: &DeviceCompressed<T>) -> TransposeOutput<T> {
        let mut host = TransposeOutput::new(a.outer(), a.values().len());
        a.pointers().copy_to_slice(&mut host.pointers).unwrap();
        a.indices().copy_to_slice(&mut host.indices).unwrap();
        a.values().copy_to_slice(&mut host.values).unwrap();
        host
    }

    fn arrays<T: DeviceScalar>(a: &Csr<T>) -> TransposeOutput<T> {
        let pointers = a.row_ptr().to_vec();
        TransposeOutput { pointers, indices: a.col_ind().to_vec(), values: a.values().to_vec() }
    }

    pub(super) fn check<T: DeviceScalar>(device: &Device, case: &Case<T>) {
        let (pointers, indices, values) = reference::transpose(&case.coo);
        let transpose = TransposeOutput { pointers, indices, values };
        let csr = DeviceCompressed::from_csr(device, case.csr.view()).unwrap();
        let csc = convert::csr_to_csc(&csr, &MemoryBudget::default()).unwrap();
        assert!(downloaded(&csc) == transpose, "{}: CSC", case.name);
        assert_eq!((csc.outer(), csc.inner()), (case.csr.cols(), case.csr.rows()));
        let back = convert::csc_to_csr(&csc, &MemoryBudget::default()).unwrap();
        assert!(downloaded(&back) == arrays(&case.csr), "{}: CSR", case.name);
        // Backwards, and every third entry a second time.
        let coo = csr_to_coo(case.csr.view());
        let (mut rows, mut cols, mut values) = coo.clone().into_arrays();
        rows.reverse();
        cols.reverse();
        values.reverse();
        for k in (0..rows.len()).step_by(3) {
            rows.push(rows[k]);
            cols.push(cols[k]);
            values.push(values[k / 2]);
        }
        let twice = Coo::new(coo.rows(), coo.cols(), rows, cols, values).unwrap();
        for (what, coo) in [("triplets", &coo), ("duplicates", &twice)] {
            let triplets = DeviceCoo::from_coo(device, coo).unwrap();
            let csr =
                downloaded(&convert::coo_to_csr(&triplets, &MemoryBudget::default()).unwrap());
            assert!(csr == arrays(&coo_to_csr(coo)), "{}: CSR of {what}", case.name);
        }
    }

    /// The padded formats: the host's, bit by bit.
    fn check_padded<T: DeviceScalar>(device: &Device, case: &Case<T>) {
        let (view, budget) = (case.csr.view(), MemoryBudget::default());
        let csr = DeviceCompressed::from_csr(device, view).unwrap();
        let x = crate::cases::vector::<T>(case.csr.cols());
        let reference = reference::spmv(&case.coo, &x);
        let product = |plan: Result<spm_gpu::spmv::BoxedPlan<T>, PlanError>| {
            let (mut plan, stream) = (plan.unwrap(), Stream::new(device).unwrap());
            let x = DeviceBuffer::from_slice(device, &x).unwrap();
            let mut y = vec![T::from_f64(f64::NAN); case.csr.rows()];
            let mut output = DeviceBuffer::from_slice(device, &y).unwrap();
            plan.launch(&x, &mut output, &stream).unwrap();
            output.copy_to_slice(&mut y).unwrap();
            assert!(reference::compare(&y, &reference).acceptable(), "{}", case.name);
        };
        for hack in [1, 7, 32, 1000] {
            let hll: DeviceHll<T> = convert::csr_to_hll(&csr, hack, &budget).unwrap();
            let expected = csr_to_hll(view, hack, &budget).unwrap();
            assert!(hll.to_host().unwrap() == expected, "{}: HLL {hack}", case.name);
            product(hll.into_spmv(64));
        }
        for (chunk, sigma) in [(32, 1), (32, 64), (4, 6), (7, 50), (32, 5000), (500, 3)] {
            let sell: DeviceSell<T> = convert::csr_to_sell(&csr, chunk, sigma, &budget).unwrap();
            let expected = csr_to_sell(view, chunk, sigma, &budget).unwrap();
            let what = format!("{}: SELL-{chunk}-{sigma}", case.name);
            assert!(sell.to_host().unwrap() == expected, "{what}");
            if chunk == DeviceSell::<T>::CHUNK {
                product(sell.into_spmv(64));
            } else {
                assert!(matches!(sell.into_spmv(64), Err(PlanError::Unsupported { .. })), "{what}");
            }
        }
    }

    #[test]
    fn padding_beyond_the_budget_is_refused_as_on_the_host() {
        let device = crate::devices::emulator(1);
        let csr = DeviceCompressed::from_csr(&device, sample().view()).unwrap();
        let budget = MemoryBudget::bytes(60);
        let error = |result: Result<(), PlanError>| result.unwrap_err().to_string();
        let host =
            |result: Result<(), FormatError>| PlanError::from(result.unwrap_err()).to_string();
        let sample = sample();
        assert_eq!(
            error(convert::csr_to_hll(&csr, 32, &budget).map(drop)),
            host(csr_to_hll(sample.view(), 32, &budget).map(drop)),
        );
        assert_eq!(
            error(convert::csr_to_sell(&csr, 32, 2, &budget).map(drop)),
            host(csr_to_sell(sample.view(), 32, 2, &budget).map(drop)),
        );
        let none = MemoryBudget::unlimited();
        assert!(error(convert::csr_to_hll(&csr, 0, &none).map(drop)).contains("hack size"));
        assert!(error(convert::csr_to_sell(&csr, 0, 1, &none).map(drop)).contains("chunk"));
        assert!(error(convert::csr_to_sell(&csr, 32, 0, &none).map(drop)).contains("sigma"));
    }

    #[test]
    fn emulator() {
        for (seed, case) in (1..).zip(small::<f64>()) {
            check(&crate::devices::emulator(seed), &case);
            check_padded(&crate::devices::emulator(seed), &case);
        }
    }

    #[test]
    fn gpu() {
        let Some(device) = crate::devices::gpu(concat!(module_path!(), "::gpu")) else { return };
        for case in small::<f64>().iter().chain(&large()) {
            check(&device, case);
            check_padded(&device, case);
        }
        for case in small::<f32>().iter().chain(&large()) {
            check(&device, case);
            check_padded(&device, case);
        }
    }
}

mod primitives {
    use super::*;
    use spm_gpu::transpose::primitives;

    /// Runs each procedure with all its parameters on each length.
    pub(super) fn check(device: &Device, lengths: &[usize]) {
        let stream = Stream::new(device).unwrap();
        for primitive in primitives::registry() {
            for parameters in primitive.info.variants() {
                for &length in lengths {
                    let what = format!("{}, {length}", primitive.info.label(&parameters));
                    let prepared = primitive.prepare(device, length, &parameters);
                    let mut prepared = prepared.unwrap_or_else(|error| panic!("{what}: {error}"));
                    let right = prepared.check(&stream).unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert!(right, "{what}: wrong");
                }
            }
        }
    }

    #[test]
    fn emulator() {
        check(&crate::devices::emulator(3), &[1, 300, 5000]);
    }

    #[test]
    fn gpu() {
        if let Some(device) = crate::devices::gpu(concat!(module_path!(), "::gpu")) {
            check(&device, &[1, 300, 5000, 1_000_000]);
        }
    }
}
