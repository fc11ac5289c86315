//! The edges: matrices without rows, columns or entries, one row, one column, a row of 10^6, no
//! columns of X and too many, numbers that are not finite. Every kernel of the registries.

mod common;

use common::{Judge, LAYOUTS, bits, csr, equal, planned, wave, within_bound};
use spm_cpu::{PlanOptions, spmm, spmv, transpose};
use spm_formats::kernel::{KernelInfo, Parameters, PlanError, TransposeOutput};
use spm_formats::{Coo, Csr, DenseShape, FormatError, Scalar};
use spm_testing::exact::{self, Whole};
use spm_testing::reference;

/// Numbers that a sum must pass on as IEEE 754 says: a product of 0 and an infinite one is NaN.
const SPECIAL: [f64; 5] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];

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
    let (pointers, indices, values) = reference::transpose(a);
    for threads in [1, 3] {
        let options = PlanOptions::with_threads(threads);
        for kernel in transpose::registry::<T>() {
            for parameters in sets(&kernel.info, all) {
                let label = format!("{}, {what}", kernel.info.label(&parameters));
                let plan = kernel.plan(matrix.view(), &parameters, &options);
                let Some(mut plan) = planned(&label, plan) else { continue };
                let mut output = TransposeOutput::new(a.cols(), matrix.nnz());
                plan.run(&mut output).unwrap();
                assert!(output.pointers == pointers, "{label}: pointers");
                assert!(output.indices == indices, "{label}: indices");
                assert!(bits(&output.values) == bits(&values), "{label}: values");
            }
        }
    }
}

/// Every kernel on `a`, with x finite.
fn check_all<T: Scalar>(what: &str, a: &Coo<T>, widths: &[usize], all: bool) {
    let matrix = csr(a);
    check_spmv(what, a, &matrix, &wave(a.cols()), all);
    for &k in widths {
        check_spmm(what, a, &matrix, &wave(a.cols() * k), k, all);
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

fn coo<T: Scalar>((rows, cols): (usize, usize), entries: &[(u32, u32)]) -> Coo<T> {
    let (r, c): (Vec<u32>, Vec<u32>) = entries.iter().copied().unzip();
    let values = wave(entries.len());
    Coo::new(rows, cols, r, c, values).unwrap()
}

fn shapes<T: Scalar>() {
    let widths = [0, 1, 2, 5, 8];
    for shape in [(0, 0), (0, 1), (0, 1000), (1, 0), (1000, 0), (1, 1), (1000, 7), (7, 1000)] {
        check_all(&format!("{shape:?}, no entries"), &coo::<T>(shape, &[]), &widths, true);
    }
    let row: Vec<_> = (0..777).map(|j| (0, j)).collect();
    check_all("one row", &coo::<T>((1, 777), &row), &widths, true);
    check_all("one row, a gap", &coo::<T>((1, 777), &row[5..9]), &widths, true);
    let column: Vec<_> = (0..777).filter(|i| i % 5 != 3).map(|i| (i, 0)).collect();
    check_all("one column", &coo::<T>((777, 1), &column), &widths, true);
    check_all("one entry", &coo::<T>((1, 1), &[(0, 0)]), &widths, true);
    check_all("one entry, last", &coo::<T>((500, 300), &[(499, 299)]), &widths, true);
    check_all("one entry, first", &coo::<T>((500, 300), &[(0, 0)]), &widths, true);
}

#[test]
fn empty_matrices_one_row_one_column() {
    shapes::<f64>();
    shapes::<f32>();
}

/// A row of 10^6 between empty rows, and the same as a column.
#[test]
fn one_dense_row_of_a_million() {
    let row: Vec<_> = (0..1_000_000).map(|j| (1, j)).collect();
    let row = coo::<f32>((3, 1_000_000), &row);
    check_all_exactly("dense row", &row, Whole::Small, &[3]);
    check_transpose("dense row", &row, &csr(&row), false);
    let column: Vec<_> = (0..1_000_000).map(|i| (i, 1)).collect();
    let column = coo::<f64>((1_000_000, 2), &column);
    check_all_exactly("dense column", &column, Whole::Wide, &[2]);
    check_transpose("dense column", &column, &csr(&column), false);
}

/// Neighbours that are both long: whoever compares rows must not do it entry by entry.
#[test]
fn two_dense_rows() {
    let rows: Vec<_> = (1..3).flat_map(|i| (0..300_000).map(move |j| (i, j))).collect();
    let rows = coo::<f64>((4, 300_000), &rows);
    check_all_exactly("two dense rows", &rows, Whole::Wide, &[3]);
    check_all_exactly("two dense rows", &rows, Whole::Equal, &[]);
    check_transpose("two dense rows", &rows, &csr(&rows), false);
}

/// Rows of 0 to 12 entries; the tail of the last one ends in the last column.
fn ragged<T: Scalar>(value: impl Fn(usize) -> T) -> Coo<T> {
    let mut entries = Vec::new();
    for i in 0..61_u32 {
        let length = if i % 13 == 0 { 12 } else { i * 7 % 5 };
        let mut columns: Vec<u32> = (0..length).map(|s| (i * 31 + s * s * 7) % 53).collect();
        columns.sort_unstable();
        columns.dedup();
        entries.extend(columns.into_iter().map(|j| (i, j)));
    }
    entries.push((61, 52));
    let (r, c): (Vec<u32>, Vec<u32>) = entries.into_iter().unzip();
    let values = (0..r.len()).map(value).collect();
    Coo::new(62, 53, r, c, values).unwrap()
}

/// Five diagonals of symmetric values, all rows of one length but at the ends.
fn symmetric<T: Scalar>(special: Option<(u32, u32, T)>) -> Coo<T> {
    let (mut r, mut c, mut v) = (vec![], vec![], vec![]);
    for i in 0..72_u32 {
        for j in [i.wrapping_sub(9), i.wrapping_sub(1), i, i + 1, i + 9] {
            if j < 72 {
                r.push(i);
                c.push(j);
                v.push(match special {
                    Some((row, col, value)) if (row, col) == (i.min(j), i.max(j)) => value,
                    _ => T::from_f64(f64::from((i + j) % 7) - 2.5),
                });
            }
        }
    }
    Coo::new(72, 72, r, c, v).unwrap()
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
            let mut x = wave::<T>(53);
            columns.iter().for_each(|&column| x[column] = value);
            check_spmv(&what, &finite, &matrix, &x, true);
            let mut x = wave::<T>(53 * 5);
            columns.iter().for_each(|&column| x[column * 5 + 2] = value);
            check_spmm(&what, &finite, &matrix, &x, 5, true);
        }
        // In A, and in A against an infinite x.
        for place in [0, 5, entries / 2, entries - 1] {
            let a = ragged(|i| if i == place { value } else { ordinary(i) });
            let matrix = csr(&a);
            for infinite in [false, true] {
                let what = format!("{special} in A, entry {place}, x infinite: {infinite}");
                let (mut x, mut dense) = (wave::<T>(53), wave::<T>(53 * 4));
                if infinite {
                    let column = a.col_indices()[place] as usize;
                    x[column] = T::from_f64(f64::INFINITY);
                    dense[column * 4 + 3] = T::from_f64(f64::NEG_INFINITY);
                }
                check_spmv(&what, &a, &matrix, &x, true);
                check_spmm(&what, &a, &matrix, &dense, 4, true);
            }
            check_transpose(&format!("{special} in A"), &a, &matrix, true);
        }
        let all = ragged(|_| value);
        check_spmv(&format!("all {special}"), &all, &csr(&all), &wave(53), true);
        check_spmm(&format!("all {special}"), &all, &csr(&all), &wave(53 * 3), 3, true);
        for (row, col) in [(0, 0), (30, 39), (70, 71)] {
            let a = symmetric(Some((row, col, value)));
            let what = format!("symmetric, {special} at ({row}, {col})");
            check_spmv(&what, &a, &csr(&a), &wave(72), true);
        }
        let a = symmetric::<T>(None);
        for place in [0, 9, 71] {
            let mut x = wave::<T>(72);
            x[place] = value;
            check_spmv(&format!("symmetric, {special} in x"), &a, &csr(&a), &x, true);
        }
    }
}

#[test]
fn special_values_follow_ieee() {
    special_values::<f64>();
    special_values::<f32>();
}

/// Sums that overflow in the middle, in the type of the elements.
#[test]
fn overflow_is_infinite() {
    let huge = f32::MAX / 2.0;
    let a = coo::<f32>((2, 9), &(0..9).map(|j| (0, j)).collect::<Vec<_>>());
    let a = Coo::new(2, 9, a.row_indices().to_vec(), a.col_indices().to_vec(), vec![huge; 9]);
    let a = a.unwrap();
    check_spmv("overflow", &a, &csr(&a), &[1.0; 9], true);
    check_spmm("overflow", &a, &csr(&a), &[1.0; 36], 4, true);
}

/// rows x k or columns x k beyond what memory can number.
#[test]
fn too_many_columns_of_x_are_an_error() {
    let a = csr(&coo::<f64>((2, 2), &[(0, 1), (1, 0)]));
    let empty = csr(&coo::<f64>((0, 0), &[]));
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
