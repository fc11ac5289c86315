//! Y = A X.

use std::sync::Arc;

use spm_formats::kernel::{Parameters, PlanError, RunError, SpmmPlan};
use spm_formats::{Csr, DenseShape, FormatError, Layout};
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsr, DeviceScalar, DeviceSpmmPlan, GpuError, PlanOptions, Stream,
    spmm,
};
use spm_testing::reference;

use crate::cases::{Case, large, small, spmm_cases, vector};
use crate::devices::{emulator, kernel_tests};

kernel_tests! {
    spmm::registry::<f64>;
    csr_thread_per_element_v1 "csr-thread-per-element-v1",
    csr_thread_per_element_v2 "csr-thread-per-element-v2",
    csr_thread_per_element_v3 "csr-thread-per-element-v3",
    csr_warp_per_element "csr-warp-per-element",
    csr_subwarp_per_element "csr-subwarp-per-element",
    csr_adaptive "csr-adaptive",
    csr_warp_per_row "csr-warp-per-row",
    csr_adaptive_subblocks "csr-adaptive-subblocks",
    ell_thread_per_element "ell-thread-per-element",
    ell_subwarp_per_element "ell-subwarp-per-element",
    csr_row_split "csr-row-split",
    csr_nonzero_split "csr-nonzero-split",
    csr_vector "csr-vector",
    csr_segmented_sum "csr-segmented-sum",
    sell_row_split "sell-row-split",
    sell_thread_per_row "sell-thread-per-row",
    auto "auto",
}

const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColumnMajor];

fn on_emulator<T: DeviceScalar>(id: &str) {
    let kernel = spmm::find::<T>(id).expect("a registered kernel");
    let tiled = kernel.info.parameters.iter().any(|parameter| parameter.name == "tile");
    for case in spmm_cases::<T>() {
        for layout in LAYOUTS {
            for k in [1, 3, 8, 33, 34] {
                let dense = DenseShape { k, layout };
                // All parameters for one k, or for two where columns come in tiles; other schedules
                // for another.
                if k == 34 && !tiled {
                    continue;
                }
                let mut bits = None;
                check(id, &emulator(1), &case, dense, k == 8 || k == 34, &mut bits);
                if k == 3 {
                    check(id, &emulator(2), &case, dense, false, &mut bits);
                }
            }
        }
    }
}

fn on_gpu<T: DeviceScalar>(id: &str, device: &Device) {
    for case in small::<T>().into_iter().chain(spmm_cases()).chain(large()) {
        for layout in LAYOUTS {
            for k in [1, 2, 3, 4, 8, 33, 64] {
                let mut bits = None;
                for _ in 0..2 {
                    let dense = DenseShape { k, layout };
                    check(id, device, &case, dense, k == 8, &mut bits);
                }
            }
        }
    }
}

/// Runs the kernel with its parameters on one matrix, with X finite and with an infinite element;
/// `bits` are those of earlier runs, which must come again.
fn check<T: DeviceScalar>(
    id: &str,
    device: &Device,
    case: &Case<T>,
    dense: DenseShape,
    all_parameters: bool,
    bits: &mut Option<Vec<Vec<Option<u64>>>>,
) {
    let kernel = spmm::find::<T>(id).expect("a registered kernel");
    let mut x = vector::<T>(case.coo.cols() * dense.k);
    let finite = reference::spmm(&case.coo, &x, dense);
    let finite = (x.clone(), finite);
    if let Some(element) = x.get_mut(dense.k / 2) {
        *element = T::from_f64(f64::INFINITY);
    }
    let infinite = reference::spmm(&case.coo, &x, dense);
    let problems = [finite, (x, infinite)];
    let mut results = Vec::new();
    let sets = if all_parameters { kernel.info.variants() } else { vec![kernel.info.defaults()] };
    for parameters in sets {
        let label = kernel.info.label(&parameters);
        let what = format!("{label}, {}, {}, {dense:?}", T::NAME, case.name);
        let options = PlanOptions::default();
        let mut plan = match kernel.plan(device, case.csr.view(), dense, &parameters, &options) {
            Ok(plan) => plan,
            Err(PlanError::Unsupported { reason, .. }) if kernel.baseline => {
                println!("{what} skipped: {reason}");
                continue;
            }
            // ELLPACK of a matrix with one long row.
            Err(PlanError::Format(error @ FormatError::OverBudget { .. })) => {
                println!("{what} skipped: {error}");
                continue;
            }
            Err(error) => panic!("{what}: {error}"),
        };
        // Padding must not bring an infinite x into a row that has no such column; the baselines
        // may do so.
        for (x, reference) in &problems[..if kernel.baseline { 1 } else { 2 }] {
            let y = run(&mut *plan, x).unwrap_or_else(|error| panic!("{what}: {error}"));
            let errors = reference::compare(&y, reference);
            let other = y.iter().zip(&reference.values).position(|(y, &exact)| {
                let y = y.to_f64();
                y != exact && !(y.is_nan() && exact.is_nan()) && !(y - exact).is_finite()
            });
            let first = other.map(|i| (i, y[i], reference.values[i]));
            let choice = plan.choice().unwrap_or_default();
            assert!(errors.acceptable(), "{what}, {choice}: {errors:?}, first {first:?}");
            // A NaN's payload is not specified.
            let of = |y: &T| (!y.to_f64().is_nan()).then(|| y.to_bits64());
            results.push(y.iter().map(of).collect());
        }
    }
    // The baselines' first algorithms may add in any order, and another plan of `auto` may have
    // chosen another kernel, by the clock.
    if !kernel.baseline && (id != "auto" || device.is_emulated()) {
        let earlier = bits.get_or_insert_with(|| results.clone());
        assert_eq!(*earlier, results, "{id}, {}, {dense:?}: other bits", case.name);
    }
}

/// A X into a Y that was NaN before.
pub(crate) fn run<T: DeviceScalar>(
    plan: &mut dyn DeviceSpmmPlan<T>,
    x: &[T],
) -> Result<Vec<T>, GpuError> {
    let device = plan.device().clone();
    let stream = Stream::new(&device)?;
    let mut result = vec![T::from_f64(f64::NAN); plan.shape().0 * plan.dense().k];
    let x = DeviceBuffer::from_slice(&device, x)?;
    let mut y = DeviceBuffer::from_slice(&device, &result)?;
    plan.launch(&x, &mut y, &stream)?;
    stream.synchronize()?;
    y.copy_to_slice(&mut result)?;
    Ok(result)
}

/// 1 0 2
/// 0 3 0
fn sample() -> Csr<f64> {
    Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap()
}

fn own_kernels() -> Vec<(spmm::SpmmKernel<f64>, Parameters)> {
    let kernels = spmm::registry().into_iter().filter(|kernel| !kernel.baseline);
    kernels.map(|kernel| (kernel, kernel.info.defaults())).collect()
}

#[test]
fn a_product_by_hand_in_both_layouts() {
    let device = emulator(1);
    let (x_rows, y_rows) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [11.0, 14.0, 9.0, 12.0]);
    let (x_columns, y_columns) = ([1.0, 3.0, 5.0, 2.0, 4.0, 6.0], [11.0, 9.0, 14.0, 12.0]);
    for (layout, x, expected) in
        [(Layout::RowMajor, x_rows, y_rows), (Layout::ColumnMajor, x_columns, y_columns)]
    {
        for (kernel, parameters) in own_kernels() {
            let (dense, options) = (DenseShape { k: 2, layout }, PlanOptions::default());
            let plan = kernel.plan_on_host(&device, sample().view(), dense, &parameters, &options);
            let (mut plan, mut y) = (plan.unwrap(), [0.0; 4]);
            plan.run(&x, &mut y).unwrap();
            assert_eq!(y, expected, "{}, {layout:?}", kernel.info.id);
            assert!(matches!(plan.run(&x[1..], &mut y), Err(RunError::Shape { .. })));
            assert!(plan.footprint().bytes_moved >= plan.footprint().matrix_bytes + 80);
        }
    }
}

/// The same bits as from a matrix in host memory.
#[test]
fn a_matrix_on_the_device_is_planned_there() {
    let device = emulator(3);
    let mut planned = Vec::new();
    for case in spmm_cases::<f64>() {
        let view = case.csr.view();
        let a = DeviceCsr::new(&device, view).unwrap();
        let (a, x) = (Arc::new(a), vector::<f64>(case.coo.cols() * 6));
        for layout in LAYOUTS {
            let dense = DenseShape { k: 6, layout };
            for (kernel, parameters) in own_kernels() {
                let Some(plan) =
                    kernel.plan_on_device(&a, dense, &parameters, &PlanOptions::default())
                else {
                    continue;
                };
                let y = run(&mut *plan.unwrap(), &x).unwrap();
                let options = PlanOptions::default();
                let mut plan = kernel.plan(&device, view, dense, &parameters, &options).unwrap();
                let expected = run(&mut *plan, &x).unwrap();
                assert_eq!(y, expected, "{}, {}, {dense:?}", kernel.info.id, case.name);
                planned.push(kernel.info.id);
            }
            let too_many = DenseShape { k: usize::MAX, layout };
            let auto = spmm::find::<f64>("auto").unwrap();
            let plan =
                auto.plan_on_device(&a, too_many, &auto.info.defaults(), &PlanOptions::default());
            assert!(plan.unwrap().is_err(), "{}", case.name);
        }
    }
    assert!(planned.contains(&"auto") && planned.contains(&"csr-nonzero-split"), "{planned:?}");
}

#[test]
fn no_columns_are_no_work() {
    let device = emulator(1);
    for (kernel, parameters) in own_kernels() {
        let dense = DenseShape { k: 0, layout: Layout::RowMajor };
        let options = PlanOptions::default();
        let mut plan = kernel.plan(&device, sample().view(), dense, &parameters, &options).unwrap();
        assert_eq!(run(&mut *plan, &[]), Ok(Vec::new()), "{}", kernel.info.id);
    }
}

#[test]
fn a_block_that_no_device_takes_is_refused_while_planning() {
    let dense = DenseShape { k: 2, layout: Layout::RowMajor };
    for (kernel, parameters) in own_kernels() {
        if parameters.get("block").is_none() {
            continue;
        }
        let parameters = kernel.info.parse_parameters("block=2048").unwrap();
        let options = PlanOptions::default();
        let plan = kernel.plan(&emulator(1), sample().view(), dense, &parameters, &options);
        let error = plan.err().expect("2048 threads are too many").to_string();
        assert!(error.contains("1024"), "{}: {error}", kernel.info.id);
    }
}

#[test]
fn too_little_device_memory_is_an_error_and_nothing_leaks() {
    let options = spm_gpu_kernels::emulator::EmulatorOptions { memory: 30, ..Default::default() };
    let device = Device::emulated(options);
    let dense = DenseShape { k: 2, layout: Layout::RowMajor };
    for (kernel, parameters) in own_kernels() {
        let options = PlanOptions::default();
        let plan = kernel.plan(&device, sample().view(), dense, &parameters, &options);
        let error = plan.err().expect("30 bytes hold no matrix").to_string();
        assert!(error.contains("out of device memory"), "{}: {error}", kernel.info.id);
        assert_eq!(device.memory().unwrap().0, 30, "{} leaks", kernel.info.id);
    }
}
