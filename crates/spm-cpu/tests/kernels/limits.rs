//! The edges: matrices without rows, columns or entries, one row, one column, a row of 10^6, no
//! columns of X and too many, numbers that are not finite. Every kernel of the registries.

use crate::common::{Judge, LAYOUTS, bits, csr, equal, planned, within_bound};
use spm_cpu::{PlanOptions, spmm, spmv, transpose};
use spm_formats::kernel::{KernelInfo, Parameters, PlanError, TransposeOutput};
use spm_formats::{Complex, Coo, Csr, DenseShape, FormatError, Scalar};
use spm_testing::edge_cases::{self, SPECIAL, ragged, symmetric, vector};
use spm_testing::exact::{self, Whole};
use spm_testing::reference;

/// All studied parameters, or the defaults.
fn sets(info: &KernelInfo, all: bool) -> Vec<Parameters> {
    if all { info.variants() } else { vec![info.defaults()] }
}

fn check_spmv<T: Scalar>(what: &str, a: &Coo<T>, matrix: &Csr<T>, x: &[T], all: bool) {
    check_spmv_by(within_bound, what, a, matrix, x, all);
}

fn check_spmv_by<T: Scalar>(
    judge: Judge<T>,
    what: &str,
    a: &Coo<T>,
    matrix: &Csr<T>,
    x: &[T],
    all: bool,
) {
    let expected = reference::spmv(a, x);
    for threads in [1, 3] {
        let options = PlanOptions::with_threads(threads);
        for kernel in spmv::registry::<T>() {
            for parameters in sets(&kernel.info, all) {
                let label = kernel.info.label(&parameters);
                let label = format!("{label}, {what}, on {threads} threads");
                let plan = kernel.plan(matrix.view(), &parameters, &options);
                let Some(plan) = planned(&label, plan) else { continue };
                let mut y = vec![T::from_f64(f64::NAN); a.rows()];
                plan.run(x, &mut y).unwrap();
                judge(&label, &y, &expected);
            }
        }
    }
}

fn check_spmm<T: Scalar>(what: &str, a: &Coo<T>, matrix: &Csr<T>, x: &[T], k: usize, all: bool) {
    check_spmm_by(within_bound, what, a, matrix, (x, k), all);
}

fn check_spmm_by<T: Scalar>(
    judge: Judge<T>,
    what: &str,
    a: &Coo<T>,
    matrix: &Csr<T>,
    (x, k): (&[T], usize),
    all: bool,
) {
    let options = PlanOptions::with_threads(3);
    for layout in LAYOUTS {
        let dense = DenseShape { k, layout };
        let expected = reference::spmm(a, x, dense);
        for kernel in spmm::registry::<T>() {
            for parameters in sets(&kernel.info, all) {
                let label = format!("{}, {what}, {dense:?}", kernel.info.label(&parameters));
                let plan = kernel.plan(matrix.view(), dense, &parameters, &options);
                let Some(plan) = planned(&label, plan) else { continue };
                let mut y = vec![T::from_f64(f64::NAN); a.rows() * k];
                plan.run(x, &mut y).unwrap();
                judge(&label, &y, &expected);
            }
        }
    }
}

fn check_transpose<T: Scalar>(what: &str, a: &Coo<T>, matrix: &Csr<T>, all: bool) {
    let (col_ptr, row_ind, values) = reference::transpose(a);
    for threads in [1, 3] {
        let options = PlanOptions::with_threads(threads);
        for kernel in transpose::registry::<T>() {
            for parameters in sets(&kernel.info, all) {
                let label = format!("{}, {what}", kernel.info.label(&parameters));
                let plan = kernel.plan(matrix.view(), &parameters, &options);
                let Some(mut plan) = planned(&label, plan) else { continue };
                let mut output = TransposeOutput::new(a.cols(), matrix.nnz());
                plan.run(&mut output).unwrap();
                assert!(output.col_ptr == col_ptr, "{label}: column pointers");
                assert!(output.row_ind == row_ind, "{label}: row indices");
                assert!(bits(&output.values) == bits(&values), "{label}: values");
            }
        }
    }
}

/// Every kernel on `a`, with x finite.
fn check_all<T: Scalar>(what: &str, a: &Coo<T>, widths: &[usize], all: bool) {
    let matrix = csr(a);
    check_spmv(what, a, &matrix, &vector(a.cols()), all);
    for &k in widths {
        check_spmm(what, a, &matrix, &vector(a.cols() * k), k, all);
    }
    check_transpose(what, a, &matrix, all);
}

/// Every kernel on the pattern of `a` with whole numbers: the very sums.
fn check_all_exactly<T: Scalar>(what: &str, a: &Coo<T>, kind: Whole, widths: &[usize]) {
    let a = &exact::matrix(a, kind);
    let what = &format!("{what}, {kind:?}");
    let matrix = csr(a);
    check_spmv_by(equal, what, a, &matrix, &exact::vector(a.cols()), false);
    for &k in widths {
        let x = exact::vector(a.cols() * k);
        check_spmm_by(equal, what, a, &matrix, (&x, k), false);
    }
}

fn shapes<T: Scalar>() {
    for (name, a) in edge_cases::shapes::<T>(1000) {
        check_all(&name, &a, &[0, 1, 2, 5, 8], true);
    }
}

#[test]
fn empty_matrices_one_row_one_column() {
    shapes::<f64>();
    shapes::<f32>();
    shapes::<Complex<f64>>();
}

#[test]
fn one_dense_row_and_column_of_a_million() {
    let row = edge_cases::dense_row::<f32>(1_000_000);
    check_all_exactly("dense row", &row, Whole::Small, &[3]);
    check_transpose("dense row", &row, &csr(&row), false);
    let column = edge_cases::dense_column::<f64>(1_000_000);
    check_all_exactly("dense column", &column, Whole::Wide, &[2]);
    check_transpose("dense column", &column, &csr(&column), false);
}

/// Neighbours that are both long: whoever compares rows must not do it entry by entry.
#[test]
fn two_dense_rows() {
    let entries = (1..3).flat_map(|i| (0..300_000).map(move |j| (i, j)));
    let rows = edge_cases::with_entries::<f64>((4, 300_000), entries);
    check_all_exactly("two dense rows", &rows, Whole::Wide, &[3]);
    check_all_exactly("two dense rows", &rows, Whole::Equal, &[]);
    check_transpose("two dense rows", &rows, &csr(&rows), false);
}

fn special_values<T: Scalar>() {
    let ordinary = |i: usize| T::from_f64((i as f64 * 0.3).cos());
    let finite = ragged(ordinary);
    let entries = finite.entries();
    for special in SPECIAL {
        let value = T::from_f64(special);
        // In x: at the ends, which padding and remainders like to repeat, and in the middle.
        let matrix = csr(&finite);
        for columns in [&[0][..], &[52], &[26], &[0, 17, 52]] {
            let what = format!("{special} in x at {columns:?}");
            let mut x = vector::<T>(53);
            columns.iter().for_each(|&column| x[column] = value);
            check_spmv(&what, &finite, &matrix, &x, true);
            let mut x = vector::<T>(53 * 5);
            columns.iter().for_each(|&column| x[column * 5 + 2] = value);
            check_spmm(&what, &finite, &matrix, &x, 5, true);
        }
        // In A, and in A against an infinite x.
        for place in [0, 5, entries / 2, entries - 1] {
            let a = ragged(|i| if i == place { value } else { ordinary(i) });
            let matrix = csr(&a);
            for infinite in [false, true] {
                let what = format!("{special} in A, entry {place}, x infinite: {infinite}");
                let (mut x, mut dense) = (vector::<T>(53), vector::<T>(53 * 4));
                if infinite {
                    let column = a.col_ind()[place] as usize;
                    x[column] = T::from_f64(f64::INFINITY);
                    dense[column * 4 + 3] = T::from_f64(f64::NEG_INFINITY);
                }
                check_spmv(&what, &a, &matrix, &x, true);
                check_spmm(&what, &a, &matrix, &dense, 4, true);
            }
            check_transpose(&format!("{special} in A"), &a, &matrix, true);
        }
        let all = ragged(|_| value);
        check_spmv(&format!("all {special}"), &all, &csr(&all), &vector(53), true);
        check_spmm(&format!("all {special}"), &all, &csr(&all), &vector(53 * 3), 3, true);
        for (row, col) in [(0, 0), (30, 39), (70, 71)] {
            let a = symmetric(Some((row, col, value)));
            let what = format!("symmetric, {special} at ({row}, {col})");
            check_spmv(&what, &a, &csr(&a), &vector(72), true);
        }
        let a = symmetric::<T>(None);
        for place in [0, 9, 71] {
            let mut x = vector::<T>(72);
            x[place] = value;
            check_spmv(&format!("symmetric, {special} in x"), &a, &csr(&a), &x, true);
        }
    }
}

#[test]
fn special_values_follow_ieee() {
    special_values::<f64>();
    special_values::<f32>();
    special_values::<Complex<f64>>();
}

/// Sums that overflow in the middle, in the type of the elements.
#[test]
fn overflow_is_infinite() {
    let a = edge_cases::with_entries::<f32>((2, 9), (0..9).map(|j| (0, j)));
    let a = edge_cases::with_value(a, f64::from(f32::MAX / 2.0));
    check_spmv("overflow", &a, &csr(&a), &[1.0; 9], true);
    check_spmm("overflow", &a, &csr(&a), &[1.0; 36], 4, true);
}

/// rows x k or columns x k beyond what memory can number.
#[test]
fn too_many_columns_of_x_are_an_error() {
    let a = csr(&edge_cases::with_entries::<f64>((2, 2), [(0, 1), (1, 0)]));
    let empty = csr(&edge_cases::with_entries::<f64>((0, 0), []));
    for (a, k) in [(&a, usize::MAX), (&a, 1 << 63), (&a, 1 << 62), (&empty, 1 << 40)] {
        for layout in LAYOUTS {
            for kernel in spmm::registry::<f64>() {
                let (dense, options) = (DenseShape { k, layout }, PlanOptions::with_threads(2));
                let plan = kernel.plan(a.view(), dense, &kernel.info.defaults(), &options);
                let error = plan.err().unwrap_or_else(|| panic!("{} {dense:?}", kernel.info.id));
                let expected = matches!(error, PlanError::Format(FormatError::TooLarge { .. }));
                assert!(expected, "{} {dense:?}: {error}", kernel.info.id);
            }
        }
    }
}
