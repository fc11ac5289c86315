//! The edges, for every kernel of the registries on the emulator: matrices without rows, columns or
//! entries, one row, one column, a row of 10^5, no columns of X and too many, numbers that are not
//! finite.

use spm_formats::kernel::{KernelInfo, Parameters, PlanError, TransposeOutput};
use spm_formats::{Complex, DenseShape, FormatError, Layout};
use spm_gpu::{Device, DeviceScalar, PlanOptions, spmm, spmv, transpose};
use spm_testing::edge_cases::{self, SPECIAL, ragged, vector};
use spm_testing::exact::Whole;
use spm_testing::{generate, reference};

use crate::common::cases::Case;
use crate::common::planned;
use crate::common::spmm::run as spmm_run;
use crate::common::spmv::run as spmv_run;
use crate::common::transpose::run as transpose_run;
use crate::devices::emulator;

const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColumnMajor];

/// Own kernels with their parameters.
fn sets<K>(
    kernels: Vec<K>,
    own: impl Fn(&K) -> Option<KernelInfo>,
    all: bool,
) -> Vec<(K, Vec<Parameters>)> {
    let sets = |kernel: K| {
        let info = own(&kernel)?;
        Some((kernel, if all { info.variants() } else { vec![info.defaults()] }))
    };
    kernels.into_iter().filter_map(sets).collect()
}

fn check_spmv<T: DeviceScalar>(device: &Device, case: &Case<T>, x: &[T], all: bool) {
    let expected = reference::spmv(&case.coo, x);
    let own = |kernel: &spmv::SpmvKernel<T>| (!kernel.baseline).then_some(kernel.info);
    for (kernel, parameters) in sets(spmv::registry::<T>(), own, all) {
        for parameters in parameters {
            let what = format!("{}, {}, {}", kernel.info.label(&parameters), T::NAME, case.name);
            let plan = kernel.plan(device, case.csr.view(), &parameters, &PlanOptions::default());
            let Some(mut plan) = planned(&what, plan) else { continue };
            let y = spmv_run(&mut *plan, x).unwrap_or_else(|e| panic!("{what}: {e}"));
            case.judge(&what, &y, &expected);
        }
    }
}

fn check_spmm<T: DeviceScalar>(device: &Device, case: &Case<T>, x: &[T], k: usize, all: bool) {
    let own = |kernel: &spmm::SpmmKernel<T>| (!kernel.baseline).then_some(kernel.info);
    for layout in LAYOUTS {
        let dense = DenseShape { k, layout };
        let expected = reference::spmm(&case.coo, x, dense);
        for (kernel, parameters) in sets(spmm::registry::<T>(), own, all) {
            for parameters in parameters {
                let label = kernel.info.label(&parameters);
                let what = format!("{label}, {}, {}, {dense:?}", T::NAME, case.name);
                let (view, options) = (case.csr.view(), PlanOptions::default());
                let plan = kernel.plan(device, view, dense, &parameters, &options);
                let Some(mut plan) = planned(&what, plan) else { continue };
                let y = spmm_run(&mut *plan, x).unwrap_or_else(|e| panic!("{what}: {e}"));
                case.judge(&what, &y, &expected);
            }
        }
    }
}

fn check_transpose<T: DeviceScalar>(device: &Device, case: &Case<T>, all: bool) {
    let (col_ptr, row_ind, values) = reference::transpose(&case.coo);
    let bits = |values: &[T]| values.iter().map(|v| v.to_bits128()).collect::<Vec<_>>();
    let own = |kernel: &transpose::TransposeKernel<T>| (!kernel.baseline).then_some(kernel.info);
    for (kernel, parameters) in sets(transpose::registry::<T>(), own, all) {
        for parameters in parameters {
            let what = format!("{}, {}, {}", kernel.info.label(&parameters), T::NAME, case.name);
            let plan = kernel.plan(device, case.csr.view(), &parameters, &PlanOptions::default());
            let mut plan = plan.unwrap_or_else(|error| panic!("{what}: {error}"));
            let TransposeOutput { col_ptr: p, row_ind: i, values: v } =
                transpose_run(&mut *plan).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(p == col_ptr && i == row_ind, "{what}: pattern");
            assert!(bits(&v) == bits(&values), "{what}: values");
        }
    }
}

fn check_all<T: DeviceScalar>(case: &Case<T>, widths: &[usize]) {
    let device = emulator(5);
    check_spmv(&device, case, &vector(case.coo.cols()), false);
    for &k in widths {
        check_spmm(&device, case, &vector(case.coo.cols() * k), k, false);
    }
    check_transpose(&device, case, false);
}

fn shapes<T: DeviceScalar>() {
    for (name, a) in edge_cases::shapes(300) {
        check_all::<T>(&Case::of(&name, a), &[0, 1, 3]);
    }
}

#[test]
fn empty_matrices_one_row_one_column_f32() {
    shapes::<f32>();
}

#[test]
fn empty_matrices_one_row_one_column_f64() {
    shapes::<f64>();
}

#[test]
fn empty_matrices_one_row_one_column_c64() {
    shapes::<Complex<f64>>();
}

fn long_row<T: DeviceScalar>(length: u32) -> Case<T> {
    Case::of("dense row", edge_cases::dense_row(length))
}

fn long_row_spmv(length: u32) {
    let case = long_row::<f32>(length).with(Whole::Small);
    check_spmv(&emulator(1), &case, &case.vector(length as usize), false);
}

fn long_row_spmm(length: u32) {
    let case = long_row::<f64>(length).with(Whole::Wide);
    check_spmm(&emulator(1), &case, &case.vector(length as usize * 2), 2, false);
}

#[test]
fn one_dense_row_of_a_hundred_thousand_multiplied() {
    long_row_spmv(100_000);
    long_row_spmm(100_000);
}

#[test]
#[ignore = "minutes on the emulator"]
fn one_dense_row_of_a_million_multiplied() {
    long_row_spmv(1_000_000);
    long_row_spmm(1_000_000);
}

#[test]
fn one_dense_row_of_a_hundred_thousand_transposed() {
    check_transpose(&emulator(1), &long_row::<f64>(100_000), false);
}

#[test]
#[ignore = "minutes on the emulator"]
fn one_dense_row_and_column_of_a_million_transposed() {
    check_transpose(&emulator(1), &long_row::<f64>(1_000_000), false);
    let column = Case::<f32>::of("dense column", edge_cases::dense_column(1_000_000));
    check_transpose(&emulator(1), &column, false);
}

/// Special numbers in x, in A, and in A against an infinite x. With `all` parameters in x, in the last entry of A and in all
/// entries, else the defaults.
fn special_values<T: DeviceScalar>(all: bool) {
    let device = emulator(3);
    let ordinary = |i: usize| T::from_f64((i as f64 * 0.3).cos());
    let finite = ragged(ordinary);
    for special in SPECIAL {
        let value = T::from_f64(special);
        // The ends, which padding and remainders like to repeat.
        let case = Case::of(&format!("{special} in x"), ragged(ordinary));
        let (mut x, mut dense) = (vector::<T>(53), vector::<T>(53 * 3));
        for column in [0, 33, 52] {
            x[column] = value;
            dense[column * 3 + 1] = value;
        }
        check_spmv(&device, &case, &x, all);
        check_spmm(&device, &case, &dense, 3, false);
        let last = finite.entries() - 1;
        for place in [0, last / 2, last] {
            let special_at = |i| if i == place { value } else { ordinary(i) };
            let case = Case::of(&format!("{special} in A, entry {place}"), ragged(special_at));
            let column = case.coo.col_ind()[place] as usize;
            let (mut x, mut dense) = (vector::<T>(53), vector::<T>(53 * 3));
            check_spmv(&device, &case, &x, all && place == last);
            check_spmm(&device, &case, &dense, 3, false);
            check_transpose(&device, &case, false);
            x[column] = T::from_f64(f64::INFINITY);
            dense[column * 3 + 2] = T::from_f64(f64::NEG_INFINITY);
            check_spmv(&device, &case, &x, false);
            check_spmm(&device, &case, &dense, 3, false);
        }
        let equal = Case::of(&format!("all {special}"), ragged(|_| value));
        check_spmv(&device, &equal, &vector(53), all);
        check_spmm(&device, &equal, &vector(53 * 4), 4, all);
    }
}

#[test]
fn special_values_follow_ieee_f32() {
    special_values::<f32>(false);
}

#[test]
fn special_values_follow_ieee_f64() {
    special_values::<f64>(true);
}

#[test]
fn special_values_follow_ieee_c64() {
    special_values::<Complex<f64>>(false);
}

/// rows x k or columns x k beyond what memory can number.
#[test]
fn too_many_columns_of_x_are_an_error() {
    let device = emulator(1);
    let a = Case::<f64>::of("2 x 2", edge_cases::with_entries((2, 2), [(0, 1), (1, 0)]));
    let empty = Case::<f64>::of("0 x 0", edge_cases::with_entries((0, 0), []));
    for (case, k) in [(&a, usize::MAX), (&a, 1 << 63), (&a, 1 << 62), (&empty, 1 << 40)] {
        for layout in LAYOUTS {
            let dense = DenseShape { k, layout };
            for kernel in spmm::registry::<f64>() {
                let (parameters, options) = (kernel.info.defaults(), PlanOptions::default());
                let plan = kernel.plan(&device, case.csr.view(), dense, &parameters, &options);
                let error = plan.err().unwrap_or_else(|| panic!("{} {dense:?}", kernel.info.id));
                let expected = matches!(error, PlanError::Format(FormatError::TooLarge { .. }));
                assert!(expected, "{} {dense:?}: {error}", kernel.info.id);
            }
        }
    }
}

/// Parameters of another kernel are an error of every plan, not a panic.
#[test]
fn foreign_parameters_are_an_error() {
    let device = Device::emulated(Default::default());
    let a = generate::named("stencil5[n=3]").unwrap().generate::<f64>().unwrap();
    let (a, options) = (a.view(), PlanOptions::default());
    let other = spmv::find::<f64>("csr-segmented-sum").unwrap().info.defaults();
    let refused = |info: KernelInfo, error: Option<PlanError>| {
        let refused = matches!(error, Some(PlanError::Unsupported { .. }));
        assert!(refused || info.defaults() == other, "{}", info.id);
    };
    for kernel in spmv::registry::<f64>() {
        refused(kernel.info, kernel.plan(&device, a, &other, &options).err());
    }
    let dense = DenseShape { k: 2, layout: Layout::RowMajor };
    for kernel in spmm::registry::<f64>() {
        refused(kernel.info, kernel.plan(&device, a, dense, &other, &options).err());
    }
    for kernel in transpose::registry::<f64>() {
        refused(kernel.info, kernel.plan(&device, a, &other, &options).err());
        refused(kernel.info, kernel.plan_pattern(&device, a, &other, &options).err());
    }
}

/// Blocks that no device takes are an error of every plan, also where sizes are computed from them.
#[test]
fn blocks_of_too_many_threads_are_an_error() {
    let device = Device::emulated(Default::default());
    let a = generate::named("stencil5[n=3]").unwrap().generate::<f64>().unwrap();
    let (a, options) = (a.view(), PlanOptions::default());
    let dense = DenseShape { k: 2, layout: Layout::RowMajor };
    for block in [2048, 1_usize << 45, usize::MAX / 64 * 32] {
        let refused = |info: KernelInfo, plan: &dyn Fn(&Parameters) -> Option<PlanError>| {
            // Some kernels have no such parameter, or a few values of it.
            if let Ok(parameters) = info.parse_parameters(&format!("block={block}")) {
                let error = plan(&parameters);
                let refused = matches!(error, Some(PlanError::Unsupported { .. }));
                assert!(refused, "{}, {block}: {error:?}", info.id);
            }
        };
        for kernel in spmv::registry::<f64>() {
            refused(kernel.info, &|of| kernel.plan(&device, a, of, &options).err());
        }
        for kernel in spmm::registry::<f64>() {
            refused(kernel.info, &|of| kernel.plan(&device, a, dense, of, &options).err());
        }
        for kernel in transpose::registry::<f64>() {
            refused(kernel.info, &|of| kernel.plan(&device, a, of, &options).err());
        }
    }
}
