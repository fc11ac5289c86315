//! y = A x.

use spm_formats::kernel::{Parameters, PlanError, ProductPlan, RunError, Value};
use spm_formats::{Csr, FormatError, MemoryBudget};
use spm_gpu::{
    Device, DeviceBuffer, DeviceReal, DeviceScalar, EmulatedDevice, GpuError, PlanOptions, Stream,
    spmv,
};
use spm_gpu_kernels::emulator::EmulatorOptions;
use spm_testing::edge_cases::vector;
use spm_testing::{exact, generate, reference};

use crate::common::cases::small;
use crate::common::spmv::{check, run};
use crate::devices::{emulator, for_any_matrix, kernel_tests};

kernel_tests! {
    spmv::registry::<f64>;
    csr_warp_per_row_shared "csr-warp-per-row-shared",
    csr_warp_per_row "csr-warp-per-row",
    csr_thread_per_row "csr-thread-per-row",
    csr_thread_per_row_texture "csr-thread-per-row-texture",
    ell_thread_per_row "ell-thread-per-row",
    ell_thread_per_row_rowmajor "ell-thread-per-row-rowmajor",
    ell_warp_per_row "ell-warp-per-row",
    hll_thread_per_row_texture "hll-thread-per-row-texture",
    hll_thread_per_row "hll-thread-per-row",
    csr_subwarp_per_row "csr-subwarp-per-row",
    csr_adaptive "csr-adaptive",
    csr_merge "csr-merge",
    csr_compact "csr-compact",
    sell "sell",
    sell_compact "sell-compact",
    sellp "sellp",
    csr_segmented_sum "csr-segmented-sum",
    csr_column_blocks "csr-column-blocks",
    csr_ell_columns "csr-ell-columns",
    dia_thread_per_row "dia-thread-per-row",
    bsr_subwarp_per_row "bsr-subwarp-per-row",
    auto "auto",
}

/// Each matrix in a schedule of its own, which the emulator draws.
fn on_emulator<T: DeviceScalar>(id: &str) {
    for (seed, case) in (T::BYTES as u64..).zip(small::<T>()) {
        check(id, &emulator(seed), &case, &mut None);
    }
}

fn sample() -> Csr<f64> {
    Csr::new((2, 3), vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap()
}

fn plans_of_all_kernels(device: &Device) -> Vec<(&'static str, spmv::BoxedPlan<f64>)> {
    let plan = |kernel: &spmv::SpmvKernel<f64>| {
        let plan = kernel.plan(
            device,
            sample().view(),
            &for_any_matrix(&kernel.info),
            &PlanOptions::default(),
        );
        (kernel.info.id, plan.unwrap())
    };
    spmv::registry().iter().filter(|kernel| !kernel.baseline).map(plan).collect()
}

#[test]
fn operands_of_the_wrong_length_are_refused() {
    let device = emulator(1);
    let stream = Stream::new(&device).unwrap();
    for (id, mut plan) in plans_of_all_kernels(&device) {
        let x = DeviceBuffer::from_slice(&device, &[1.0; 2]).unwrap();
        let mut y = DeviceBuffer::from_slice(&device, &[0.0; 2]).unwrap();
        let error = plan.launch(&x, &mut y, &stream).unwrap_err();
        assert_eq!(error, GpuError::Shape { what: "x", expected: 3, found: 2 }, "{id}");
    }
}

#[test]
fn operands_of_another_device_are_refused() {
    let (device, other) = (emulator(1), emulator(1));
    let stream = Stream::new(&device).unwrap();
    for (id, mut plan) in plans_of_all_kernels(&device) {
        let x = DeviceBuffer::from_slice(&other, &[1.0; 3]).unwrap();
        let mut y = DeviceBuffer::from_slice(&device, &[0.0; 2]).unwrap();
        let error = plan.launch(&x, &mut y, &stream).unwrap_err();
        assert_eq!(error, GpuError::OtherDevice { what: "x" }, "{id}");
    }
}

#[test]
fn a_block_that_no_device_takes_is_refused_while_planning() {
    for kernel in spmv::registry::<f64>() {
        if kernel.info.defaults().get("block").is_none() {
            continue;
        }
        let options = PlanOptions::default();
        let error = match kernel.info.parse_parameters("block=2048") {
            Ok(_) => {
                let parameters = for_any_matrix(&kernel.info).with("block", Value::Count(2048));
                let plan = kernel.plan(&emulator(1), sample().view(), &parameters, &options);
                plan.err().expect("2048 threads are too many").to_string()
            }
            // A kernel that takes a few sizes only says which.
            Err(error) => error.to_string(),
        };
        // What any device takes, or the kernel.
        let says_what = error.contains("1024") || error.contains("it takes up to 256");
        assert!(says_what, "{}: {error}", kernel.info.id);
    }
}

#[test]
fn too_little_device_memory_is_an_error_and_nothing_leaks() {
    let options = EmulatorOptions { memory: 30, ..EmulatorOptions::default() };
    let device = Device::emulated(options);
    for kernel in spmv::registry::<f64>().iter().filter(|kernel| !kernel.baseline) {
        let parameters = kernel.info.defaults();
        let plan = kernel.plan(&device, sample().view(), &parameters, &PlanOptions::default());
        let error = plan.err().expect("30 bytes hold no matrix").to_string();
        assert!(error.contains("out of device memory"), "{}: {error}", kernel.info.id);
        assert_eq!(device.memory().unwrap().0, 30, "{} leaks", kernel.info.id);
    }
}

#[test]
fn a_device_that_is_lost_is_an_error_and_nothing_leaks() {
    for kernel in spmv::registry::<f64>().iter().filter(|kernel| !kernel.baseline) {
        let mut runs = 0;
        for launches in 0..200 {
            let options = EmulatorOptions { launches, ..EmulatorOptions::default() };
            let (device, memory) = (Device::emulated(options), options.memory);
            let run = || -> Result<(), Box<dyn std::error::Error>> {
                let parameters = for_any_matrix(&kernel.info);
                let plan =
                    kernel.plan_on_host(&device, sample().view(), &parameters, &<_>::default());
                let mut y = [0.0; 2];
                Ok(plan?.run(&[1.0, 10.0, 100.0], &mut y)?)
            };
            let result = run();
            assert_eq!(device.memory().unwrap().0, memory, "{} leaks", kernel.info.id);
            match result {
                Ok(()) => break,
                Err(error) => assert!(error.to_string().contains("the device is lost"), "{error}"),
            }
            runs += 1;
        }
        assert!((1..200).contains(&runs), "{}: lost {runs} times", kernel.info.id);
    }
}

#[test]
fn operands_in_host_memory_are_copied() {
    let device = emulator(1);
    for kernel in spmv::registry::<f64>().iter().filter(|kernel| !kernel.baseline) {
        let parameters = for_any_matrix(&kernel.info);
        let options = PlanOptions::default();
        let plan = kernel.plan_on_host(&device, sample().view(), &parameters, &options).unwrap();
        let mut y = [0.0; 2];
        plan.run(&[1.0, 10.0, 100.0], &mut y).unwrap();
        assert_eq!(y, [201.0, 30.0], "{}", kernel.info.id);
        assert!(matches!(plan.run(&[1.0], &mut y), Err(RunError::Shape { what: "x", .. })));
        assert!(plan.footprint().bytes_moved >= plan.footprint().matrix_bytes + 40);
    }
}

/// Where `dia-thread-per-row` must not refuse: rectangular, with holes, the longest distances, and as
/// many diagonals as it takes; one more, or a column twice, is refused.
#[test]
fn few_diagonals_are_supported() {
    let kernel = spmv::find::<f64>("dia-thread-per-row").unwrap();
    let plan = |csr: &Csr<f64>, parameters: &Parameters| {
        kernel.plan(&emulator(1), csr.view(), parameters, &PlanOptions::default())
    };
    let on = |rows: usize, cols: usize, distances: &[i64]| {
        let (mut row_ptr, mut columns) = (vec![0], Vec::new());
        for row in 0..rows {
            let inside =
                distances.iter().map(|d| row as i64 + d).filter(|&c| (0..cols as i64).contains(&c));
            // Holes, too.
            columns.extend(inside.filter(|c| (row as i64 + c) % 5 != 1).map(|c| c as u32));
            row_ptr.push(columns.len() as u32);
        }
        let values = (0..columns.len()).map(|i| 0.1 + i as f64).collect();
        Csr::new((rows, cols), row_ptr, columns, values).unwrap()
    };
    let all: Vec<i64> = (-20..12).collect();
    let more: Vec<i64> = (-20..13).collect();
    for (rows, cols, distances) in [
        (1, 1, &[0][..]),
        (300, 40, &[-299, -260, -3, 0, 5, 39]),
        (40, 300, &[-39, -1, 0, 2, 3, 4, 250, 299]),
        (500, 500, &[-1]),
        (9, 9, &[]),
        (150, 150, &all),
    ] {
        let csr = on(rows, cols, distances);
        let coo = spm_formats::convert::csr_to_coo(csr.view());
        let x = vector::<f64>(cols);
        for parameters in kernel.info.variants() {
            let mut plan =
                plan(&csr, &parameters).unwrap_or_else(|e| panic!("{rows} x {cols}: {e}"));
            let y = run(&mut *plan, &x).unwrap();
            let errors = reference::compare(&y, &reference::spmv(&coo, &x));
            assert!(errors.acceptable(), "{rows} x {cols}, {parameters:?}: {errors:?}");
            // An infinite element of x is in the sums of the rows with an entry there alone.
            let middle = cols / 2;
            let mut with = |element| {
                let x: Vec<f64> =
                    (0..cols).map(|c| if c == middle { element } else { x[c] }).collect();
                run(&mut *plan, &x).unwrap()
            };
            let (infinite, zero) = (with(f64::INFINITY), with(0.0));
            let reads = |row: usize| {
                let entries = csr.row_ptr()[row] as usize..csr.row_ptr()[row + 1] as usize;
                csr.col_ind()[entries].contains(&(middle as u32))
            };
            for row in 0..rows {
                let expected = if reads(row) { f64::INFINITY } else { zero[row] };
                assert_eq!(infinite[row], expected, "{rows} x {cols}, {parameters:?}, row {row}");
            }
        }
    }
    let refused = |csr: &Csr<f64>| {
        matches!(plan(csr, &kernel.info.defaults()), Err(PlanError::Unsupported { .. }))
    };
    assert!(refused(&on(150, 150, &more)));
    // A row that is not among those that are looked at first has entries on too many.
    let columns = (0..600).flat_map(|row| if row == 1 { 0..40 } else { row..row + 1 }).collect();
    let row_ptr = (0..=600).map(|row| row + if row > 1 { 39 } else { 0 }).collect();
    assert!(refused(&Csr::new((600, 600), row_ptr, columns, vec![1.0; 639]).unwrap()));
}

/// Rows with 0 to 9 entries all over each of several column blocks, and an x that is infinite wherever no
/// row has one: in all even columns.
fn column_blocks_with_padding<T: DeviceReal>() {
    let kernel = spmv::find::<T>("csr-column-blocks").unwrap();
    let (rows, cols, distance) = (103, 130_000, 26_000);
    let (mut row_ptr, mut columns) = (vec![0], Vec::new());
    for row in 0..rows {
        for part in 0..cols / distance {
            let entries = (3 * row + 7 * part + row / 10) % 10;
            columns.extend((0..entries).map(|i| (part * distance + 2600 * i + 1) as u32));
        }
        row_ptr.push(columns.len() as u32);
    }
    // Single precision holds them.
    let values = (0..columns.len()).map(|i| T::from_f64(0.5 + i as f64)).collect();
    let csr = Csr::new((rows, cols), row_ptr, columns, values).unwrap();
    let coo = spm_formats::convert::csr_to_coo(csr.view());
    let mut x = vector::<T>(cols);
    x.iter_mut().step_by(2).for_each(|x| *x = T::from_f64(f64::INFINITY));
    let expected = reference::spmv(&coo, &x);
    for parameters in kernel.info.variants() {
        let what = format!("{}, {}", kernel.info.label(&parameters), T::NAME);
        let options = PlanOptions::default();
        let plan = kernel.plan(&emulator(1), csr.view(), &parameters, &options);
        let y = run(&mut *plan.unwrap(), &x).unwrap_or_else(|error| panic!("{what}: {error}"));
        let errors = reference::compare(&y, &expected);
        assert!(errors.acceptable(), "{what}: {errors:?}");
        assert!(y.iter().all(|y| y.to_f64().is_finite()), "{what}");
    }
}

#[test]
fn padding_of_column_blocks_counts_for_nothing_f32() {
    column_blocks_with_padding::<f32>();
}

#[test]
fn padding_of_column_blocks_counts_for_nothing_f64() {
    column_blocks_with_padding::<f64>();
}

/// Rows that go through many warps and through the chunk of a block, between short and empty ones, in one column block, in
/// three and in more than a warp has lanes.
#[test]
fn long_parts_of_column_blocks_go_through_warps_and_chunks() {
    let kernel = spmv::find::<f64>("csr-column-blocks").unwrap();
    let blocks = EmulatedDevice { multiprocessors: 7, ..EmulatedDevice::default() };
    let device = Device::emulated_as(EmulatorOptions::default(), blocks);
    let rows = 60;
    for (distance, cols) in [(1, 6000), (11, 66_000), (230, 1_200_000)] {
        let lengths = (0..rows).map(|row| [3000, 1, 0, 700, 5000, 17][row % 6]);
        let (mut row_ptr, mut columns) = (vec![0], Vec::new());
        for (row, length) in lengths.enumerate() {
            columns.extend((0..length).map(|i| ((row + i) * distance) as u32 % cols));
            row_ptr.push(columns.len() as u32);
        }
        let values = (0..columns.len()).map(|i| (1 + i % 7) as f64).collect::<Vec<_>>();
        for values in [vec![3.0; values.len()], values] {
            let csr =
                Csr::new((rows, cols as usize), row_ptr.clone(), columns.clone(), values).unwrap();
            let coo = spm_formats::convert::csr_to_coo(csr.view());
            let x: Vec<f64> = (0..cols).map(|i| f64::from(i % 5) - 1.0).collect();
            let expected = reference::spmv(&coo, &x);
            for parameters in kernel.info.variants() {
                let options = PlanOptions::default();
                let plan = kernel.plan(&device, csr.view(), &parameters, &options);
                let y = run(&mut *plan.unwrap(), &x).unwrap();
                // Sums of whole numbers are exact.
                let difference = exact::difference(&y, &expected);
                assert_eq!(difference, None, "{cols} columns, {parameters}");
            }
        }
    }
}

/// The padding of `csr-column-blocks` is what a budget is for, and part of what moves.
#[test]
fn padding_of_column_blocks_is_counted() {
    let kernel = spmv::find::<f64>("csr-column-blocks").unwrap();
    // Five entries in each row: two quads.
    let (rows, cols) = (100, 40);
    let columns = (0..rows).flat_map(|row| (0..5).map(move |i| (row % 8 + 7 * i) as u32));
    let row_ptr = (0..=rows as u32).map(|row| 5 * row).collect();
    let values = (0..5 * rows).map(|i| 0.1 + i as f64).collect();
    let csr = Csr::new((rows, cols), row_ptr, columns.collect(), values).unwrap();
    let device = emulator(1);
    let plan = |budget| {
        let options = PlanOptions { budget: MemoryBudget::bytes(budget), ..PlanOptions::default() };
        kernel.plan(&device, csr.view(), &kernel.info.defaults(), &options)
    };
    let elements = 8 * rows as u64 * (2 + 8);
    let footprint = plan(elements).unwrap().footprint();
    // A bit for each quad and a number for 32 of them, and what the blocks of the grid do.
    let of_groups = 2 * 4 * (2 * rows as u64).div_ceil(32);
    let of_blocks = 16 * u64::from(device.info().multiprocessors);
    assert_eq!(footprint.matrix_bytes, elements + of_groups + of_blocks);
    assert_eq!(footprint.bytes_moved, footprint.matrix_bytes + 8 * (rows + cols) as u64);
    let error = plan(elements - 1).err().expect("over the budget");
    assert!(matches!(error, PlanError::Format(FormatError::OverBudget { .. })), "{error}");
}

/// SELL-P of a matrix whose rows have many entries, all on few diagonals: a bit for each in place of a column of 16 bits.
#[test]
fn long_rows_on_few_diagonals_have_no_columns() {
    let kernel = spmv::find::<f64>("sellp").unwrap();
    let csr = generate::named("stencil27[n=12]").unwrap().generate::<f64>().unwrap();
    let bytes = |diagonals: &str| {
        let text = format!("sigma=1,threads-per-row=1,drop-equal=off,diagonals={diagonals}");
        let set = kernel.info.parse_parameters(&text).unwrap();
        let plan = kernel.plan(&emulator(1), csr.view(), &set, &PlanOptions::default());
        plan.unwrap().footprint().matrix_bytes as f64
    };
    let (with, without) = (bytes("on"), bytes("off"));
    assert!(with < 0.95 * without, "{with} and {without} bytes");
}

/// Columns of `csr-ell-columns` in 16 bits, absolute and relative at either end of their range, and in
/// 32 bits because one is too far.
#[test]
fn elements_hold_columns_near_and_far() {
    let kernel = spmv::find::<f64>("csr-ell-columns").unwrap();
    let (rows, cols) = (70_000, 70_000);
    let x = vector::<f64>(cols);
    for (reach, stored) in [(32_766, 2), (32_767, 4)] {
        let (mut row_ptr, mut columns) = (vec![0], Vec::new());
        for row in 0..rows {
            if row % 1000 == 0 {
                let near = [row as i64 - 32_768, row as i64, row as i64 + reach];
                columns.extend(
                    near.into_iter().filter(|c| (0..cols as i64).contains(c)).map(|c| c as u32),
                );
            }
            row_ptr.push(columns.len() as u32);
        }
        let values = (0..columns.len()).map(|i| 0.1 + i as f64).collect();
        let csr = Csr::new((rows, cols), row_ptr, columns, values).unwrap();
        let coo = spm_formats::convert::csr_to_coo(csr.view());
        let options = PlanOptions::default();
        let mut plan =
            kernel.plan(&emulator(1), csr.view(), &kernel.info.defaults(), &options).unwrap();
        let y = run(&mut *plan, &x).unwrap();
        let errors = reference::compare(&y, &reference::spmv(&coo, &x));
        assert!(errors.acceptable(), "{reach}: {errors:?}");
        // Four stored elements of a thread for each row, beside pointers and values.
        let words = plan.footprint().matrix_bytes - 4 * (rows as u64 + 1) - 8 * csr.nnz() as u64;
        assert!(
            words >= 4 * stored * rows as u64 && words < 4 * (stored + 1) * rows as u64,
            "{reach}: {words}"
        );
    }
}

/// A row in two and in three blocks of `csr-segmented-sum`, whose parts say by their bits whether they are there: every bit
/// pattern arrives, also that whose complement says that it is not.
#[test]
fn a_row_in_some_blocks_has_every_value() {
    let kernel = spmv::find::<f64>("csr-segmented-sum").unwrap();
    let values = [f64::from_bits(u64::MAX), 0.0, 1.5];
    for (entries, value) in [1500, 2500].into_iter().flat_map(|n| values.map(|value| (n, value))) {
        let columns = (0..entries as u32).collect();
        let row_ptr = vec![0, entries as u32];
        let csr = Csr::new((1, entries), row_ptr, columns, vec![value; entries]).unwrap();
        let device = emulator(1);
        let (stream, options) = (Stream::new(&device).unwrap(), PlanOptions::default());
        let parameters = kernel.info.parse_parameters("entries=4,drop-equal=off").unwrap();
        let mut plan = kernel.plan(&device, csr.view(), &parameters, &options).unwrap();
        let x = DeviceBuffer::from_slice(&device, &vec![1.0; entries]).unwrap();
        for _ in 0..2 {
            let mut y = DeviceBuffer::from_slice(&device, &[7.0]).unwrap();
            plan.launch(&x, &mut y, &stream).unwrap();
            let mut sum = 0.0;
            y.copy_to_slice(std::slice::from_mut(&mut sum)).unwrap();
            assert_eq!(sum.is_nan(), value.is_nan(), "{value}");
            assert!(sum.is_nan() || sum == entries as f64 * value, "{value}: {sum}");
        }
    }
}
