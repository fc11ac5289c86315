//! Y = A X.

use std::sync::Arc;

use spm_formats::kernel::{Parameters, ProductPlan, RunError, Value};
use spm_formats::{Csr, DenseShape, Layout};
use spm_gpu::{Device, DeviceCsr, DeviceScalar, PlanOptions, spmm};
use spm_testing::edge_cases::vector;

use crate::common::cases::spmm_cases;
use crate::common::spmm::{LAYOUTS, check, run};
use crate::devices::{emulator, for_any_matrix, kernel_tests};

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
    csr_stream "csr-stream",
    csr_vector "csr-vector",
    csr_segmented_sum "csr-segmented-sum",
    sell_row_split "sell-row-split",
    sell_thread_per_row "sell-thread-per-row",
    bsr_row_split "bsr-row-split",
    auto "auto",
}

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

/// 1 0 2
/// 0 3 0
fn sample() -> Csr<f64> {
    Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap()
}

fn own_kernels() -> Vec<(spmm::SpmmKernel<f64>, Parameters)> {
    let kernels = spmm::registry().into_iter().filter(|kernel| !kernel.baseline);
    kernels.map(|kernel| (kernel, for_any_matrix(&kernel.info))).collect()
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
            let (plan, mut y) = (plan.unwrap(), [0.0; 4]);
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
        let parameters = parameters.with("block", Value::Count(2048));
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
