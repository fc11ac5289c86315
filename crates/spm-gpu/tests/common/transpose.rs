//! Transpositions, and what sorts entries on the device, against the reference: the same bits.

use spm_formats::convert::{coo_to_csr, csr_to_coo, csr_to_hll, csr_to_sell};
use spm_formats::kernel::{KernelInfo, Parameters, PlanError, TransposeOutput};
use spm_formats::{Coo, Csr, MemoryBudget};
use spm_gpu::transpose::convert::{self, DeviceCompressed, DeviceCoo};
use spm_gpu::transpose::primitives;
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsc, DeviceHll, DeviceReal, DeviceScalar, DeviceSell,
    DeviceTransposePlan, GpuError, PlanOptions, Stream, transpose,
};
use spm_testing::edge_cases::vector;
use spm_testing::reference;

use super::cases::Case;
use super::planned;

/// The parameters to try, and for the kernels that cut the entries some that make many small cuts:
/// several tiles for a block, buckets of one column, buckets that no block sorts alone.
pub(crate) fn sets<T: DeviceScalar>(id: &str) -> Vec<Parameters> {
    let info = transpose::find::<T>(id).expect("a registered kernel").info;
    let mut sets = info.variants();
    sets.extend(small_cuts(&info));
    sets
}

/// Those that make many small cuts.
pub(crate) fn small_cuts(info: &KernelInfo) -> Vec<Parameters> {
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

pub(crate) fn own_kernels() -> impl Iterator<Item = transpose::TransposeKernel<f64>> {
    transpose::registry::<f64>().into_iter().filter(|kernel| !kernel.baseline)
}

/// Runs the kernel with each set of parameters on one matrix.
pub(crate) fn check<T: DeviceScalar>(
    id: &str,
    device: &Device,
    case: &Case<T>,
    sets: &[Parameters],
) {
    let kernel = transpose::find::<T>(id).expect("a registered kernel");
    let (col_ptr, row_ind, values) = reference::transpose(&case.coo);
    let expected = TransposeOutput { col_ptr, row_ind, values };
    for parameters in sets {
        let what = format!("{}, {}, {}", kernel.info.label(parameters), T::NAME, case.name);
        let options = PlanOptions::default();
        let plan = kernel.plan(device, case.csr.view(), parameters, &options);
        let Some(mut plan) = planned(&what, plan) else { continue };
        let output = run(&mut *plan).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(output == expected, "{what}: not the transpose");
        let mut plan = kernel
            .plan_pattern(device, case.csr.view(), parameters, &options)
            .unwrap_or_else(|error| panic!("{what}, pattern: {error}"));
        let pattern = run_pattern(&mut *plan).unwrap_or_else(|e| panic!("{what}, pattern: {e}"));
        assert!(pattern.0 == expected.col_ptr && pattern.1 == expected.row_ind, "{what}: pattern");
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
    let (mut col_ptr, mut row_ind) = (vec![0; cols + 1], vec![0; entries]);
    output.col_ptr.copy_to_slice(&mut col_ptr)?;
    output.row_ind.copy_to_slice(&mut row_ind)?;
    Ok((col_ptr, row_ind))
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

/// The arrays in host memory.
fn downloaded<T: DeviceReal>(a: &DeviceCompressed<T>) -> TransposeOutput<T> {
    let mut host = TransposeOutput::new(a.outer(), a.values().len());
    a.pointers().copy_to_slice(&mut host.col_ptr).unwrap();
    a.indices().copy_to_slice(&mut host.row_ind).unwrap();
    a.values().copy_to_slice(&mut host.values).unwrap();
    host
}

fn arrays<T: DeviceReal>(a: &Csr<T>) -> TransposeOutput<T> {
    TransposeOutput {
        col_ptr: a.row_ptr().to_vec(),
        row_ind: a.col_ind().to_vec(),
        values: a.values().to_vec(),
    }
}

pub(crate) fn check_conversions<T: DeviceReal>(device: &Device, case: &Case<T>) {
    let (col_ptr, row_ind, values) = reference::transpose(&case.coo);
    let transpose = TransposeOutput { col_ptr, row_ind, values };
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
        let csr = downloaded(&convert::coo_to_csr(&triplets, &MemoryBudget::default()).unwrap());
        assert!(csr == arrays(&coo_to_csr(coo)), "{}: CSR of {what}", case.name);
    }
}

/// The padded formats: the host's, bit by bit.
pub(crate) fn check_padded<T: DeviceReal>(device: &Device, case: &Case<T>) {
    let (view, budget) = (case.csr.view(), MemoryBudget::default());
    let csr = DeviceCompressed::from_csr(device, view).unwrap();
    let x = vector::<T>(case.csr.cols());
    let expected = reference::spmv(&case.coo, &x);
    let product = |plan: Result<spm_gpu::spmv::BoxedPlan<T>, PlanError>| {
        let (mut plan, stream) = (plan.unwrap(), Stream::new(device).unwrap());
        let x = DeviceBuffer::from_slice(device, &x).unwrap();
        let mut y = vec![T::from_f64(f64::NAN); case.csr.rows()];
        let mut output = DeviceBuffer::from_slice(device, &y).unwrap();
        plan.launch(&x, &mut output, &stream).unwrap();
        output.copy_to_slice(&mut y).unwrap();
        assert!(reference::compare(&y, &expected).acceptable(), "{}", case.name);
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

/// Runs each procedure with all its parameters on each length.
pub(crate) fn check_procedures(device: &Device, lengths: &[usize]) {
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
