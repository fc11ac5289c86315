//! Every SpMM kernel of the registry against the reference, in both layouts.

use crate::common::{Judge, LAYOUTS, csr, equal, matrices, planned, within_bound};
use proptest::prelude::*;
use spm_cpu::{PlanOptions, spmm};
use spm_formats::kernel::{RunError, Scaling};
use spm_formats::{Complex, Coo, DenseShape, Layout, Scalar};
use spm_testing::edge_cases::{generated, long_rows, vector};
use spm_testing::exact::{self, Whole};
use spm_testing::reference;

fn check_all<T: Scalar>(a: &Coo<T>, widths: &[usize]) {
    let element = |i: usize| T::from_f64(((i * 31) % 97) as f64 / 48.0 - 1.0);
    check_all_by(within_bound, a, widths, |length| (0..length).map(element).collect());
}

fn check_all_by<T: Scalar>(
    judge: Judge<T>,
    a: &Coo<T>,
    widths: &[usize],
    vector: impl Fn(usize) -> Vec<T>,
) {
    let matrix = csr(a);
    for layout in LAYOUTS {
        for &k in widths {
            let dense = DenseShape { k, layout };
            let x = vector(a.cols() * k);
            let expected = reference::spmm(a, &x, dense);
            for threads in [1, 2, 5] {
                let options = PlanOptions::with_threads(threads);
                for kernel in spmm::registry::<T>() {
                    for parameters in kernel.info.variants() {
                        let label = kernel.info.label(&parameters);
                        let plan = kernel.plan(matrix.view(), dense, &parameters, &options);
                        let Some(plan) = planned(&label, plan) else { continue };
                        assert_eq!((plan.shape(), plan.dense()), (matrix.shape(), dense));
                        let footprint = plan.footprint();
                        let moved = ((a.rows() + a.cols()) * k * T::BYTES) as u64;
                        assert_eq!(
                            footprint.bytes_moved,
                            footprint.matrix_bytes + moved,
                            "{label}"
                        );
                        let mut y = vec![T::from_f64(f64::NAN); a.rows() * k];
                        plan.run(&x, &mut y).unwrap();
                        let case = format!("{label} {dense:?} on {threads} threads");
                        judge(&case, &y, &expected);
                    }
                }
            }
        }
    }
}

#[test]
fn hand_made_matrices() {
    for (rows, cols) in [(0, 0), (0, 3), (3, 0), (2, 2)] {
        check_all(&Coo::<f64>::empty(rows, cols).unwrap(), &[0, 1, 3]);
    }
    let (r, c, v) = (vec![0, 2, 1, 0, 2], vec![0, 0, 1, 2, 2], vec![1., 4., 3., 2., 5.]);
    check_all(&Coo::<f64>::new(3, 3, r, c, v).unwrap(), &[1, 2, 4, 5, 8, 9, 17, 64, 100]);
}

#[test]
fn complex_matrices() {
    let a = exact::matrix(&long_rows::<Complex<f32>>(), Whole::Small);
    check_all_by(equal, &a, &[1, 3], exact::vector);
    let a = exact::matrix(&long_rows::<Complex<f64>>(), Whole::Wide);
    check_all_by(equal, &a, &[8], exact::vector);
    let a = generated::<Complex<f64>>("stencil5[n=12]");
    check_all_by(within_bound, &a, &[2, 5, 9, 17, 64, 100], vector);
}

#[test]
fn rows_that_are_cut() {
    for kind in Whole::ALL {
        let a = exact::matrix(&long_rows::<f32>(), kind);
        check_all_by(equal, &a, &[3], exact::vector);
        let a = exact::matrix(&long_rows::<f64>(), kind);
        check_all_by(equal, &a, &[8], exact::vector);
    }
}

/// Padding repeats a column of its row: 0 x inf must not turn a sum into NaN.
#[test]
fn infinities_in_x_stay_where_they_belong() {
    let (r, c, v) = (vec![0, 1, 1, 1, 3], vec![1, 0, 1, 2, 0], vec![2., 1., -1., 1., 3.]);
    let a = csr(&Coo::<f64>::new(4, 3, r, c, v).unwrap());
    let inf = f64::INFINITY;
    // Column 0 of X is infinite in the row that row 0 of A repeats, column 1 is finite.
    for (layout, x, expected) in [
        (Layout::RowMajor, [1., 1., inf, 2., 3., 3.], [inf, 4., -inf, 2., 0., 0., 3., 3.]),
        (Layout::ColumnMajor, [1., inf, 3., 1., 2., 3.], [inf, -inf, 0., 3., 4., 2., 0., 3.]),
    ] {
        let dense = DenseShape { k: 2, layout };
        for kernel in spmm::registry::<f64>() {
            for parameters in kernel.info.variants() {
                let options = PlanOptions::with_threads(2);
                let label = kernel.info.label(&parameters);
                let plan = kernel.plan(a.view(), dense, &parameters, &options);
                let Some(plan) = planned(&label, plan) else { continue };
                let mut y = [f64::NAN; 8];
                plan.run(&x, &mut y).unwrap();
                assert_eq!(y, expected, "{label} {layout:?}");
            }
        }
    }
}

#[test]
fn wrong_lengths_are_errors() {
    let a = csr(&Coo::<f64>::empty(2, 3).unwrap());
    for kernel in spmm::registry() {
        let (options, defaults) = (PlanOptions::with_threads(2), kernel.info.defaults());
        let dense = DenseShape { k: 2, layout: Layout::RowMajor };
        let plan = kernel.plan(a.view(), dense, &defaults, &options);
        let Some(plan) = planned(kernel.info.id, plan) else { continue };
        let short_x = plan.run(&[0.0; 5], &mut [0.0; 4]);
        assert_eq!(short_x, Err(RunError::Shape { what: "X", expected: 6, found: 5 }));
        let long_y = plan.run(&[0.0; 6], &mut [0.0; 5]);
        assert_eq!(long_y, Err(RunError::Shape { what: "Y", expected: 4, found: 5 }));
    }
}

/// Gaps between the rows or columns of X and Y are neither read nor written.
#[test]
fn matrices_with_gaps() {
    let a = exact::matrix(&long_rows::<f64>(), Whole::Wide);
    let matrix = csr(&a);
    let options = PlanOptions::with_threads(3);
    let mut able = Vec::new();
    for (layout, k) in LAYOUTS.into_iter().flat_map(|layout| [3, 8, 20].map(|k| (layout, k))) {
        let dense = DenseShape { k, layout };
        let x = exact::vector::<f64>(a.cols() * k);
        let expected = reference::spmm(&a, &x, dense);
        let length = |rows: usize| if layout == Layout::RowMajor { k } else { rows };
        // The last row or column has no gap behind it.
        let spread = |elements: &[f64], length: usize, gap: usize| -> Vec<f64> {
            let lines = elements.chunks(length);
            let mut all: Vec<f64> =
                lines.flat_map(|line| line.iter().copied().chain(vec![f64::NAN; gap])).collect();
            all.truncate(all.len() - gap);
            all
        };
        let (of_x, of_y) = (length(a.cols()), length(a.rows()));
        for (gap_x, gap_y) in [(0, 3), (5, 0), (2, 1)] {
            let (leading, x) = ([of_x + gap_x, of_y + gap_y], spread(&x, of_x, gap_x));
            for kernel in spmm::registry::<f64>() {
                for parameters in kernel.info.variants() {
                    let label = kernel.info.label(&parameters);
                    let plan = kernel.plan(&matrix, dense, &parameters, &options);
                    let Some(plan) = planned(&label, plan) else { continue };
                    for scaling in
                        [Scaling::OVERWRITE, Scaling::new(1.0, -1.0), Scaling::new(0.0, 2.0)]
                    {
                        let before = if scaling.beta == 0.0 { f64::NAN } else { 4.0 };
                        let mut y = spread(&vec![before; a.rows() * k], of_y, gap_y);
                        let Some(run) = plan.run_leading(scaling, &x, &mut y, leading) else {
                            continue;
                        };
                        run.unwrap();
                        able.extend((scaling.alpha != 0.0).then_some(kernel.info.id));
                        let what = format!("{label} {dense:?} {leading:?}");
                        let lines = y.chunks(leading[1]);
                        assert!(
                            lines.clone().all(|line| line[of_y..].iter().all(|gap| gap.is_nan())),
                            "{what}"
                        );
                        let added: Vec<f64> = lines
                            .flat_map(|line| &line[..of_y])
                            .map(|y| match scaling.beta {
                                -1.0 => y + 4.0,
                                _ => *y,
                            })
                            .collect();
                        if scaling.alpha == 0.0 {
                            assert_eq!(added, vec![8.0; a.rows() * k], "{what}");
                        } else {
                            equal(&what, &added, &expected);
                        }
                    }
                    let short = plan.run_leading(
                        Scaling::OVERWRITE,
                        &x[1..],
                        &mut vec![0.0; a.rows() * leading[1].max(of_y) * k],
                        leading,
                    );
                    assert!(matches!(short, None | Some(Err(RunError::Shape { what: "X", .. }))));
                    let small = [of_x, of_y - 1];
                    let small = plan.run_leading(
                        Scaling::OVERWRITE,
                        &x,
                        &mut vec![0.0; a.rows() * k],
                        small,
                    );
                    assert!(matches!(
                        small,
                        None | Some(Err(RunError::Shape { what: "leading dimension", .. }))
                    ));
                }
            }
        }
    }
    assert!(able.contains(&"csr-blocked"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn random_matrices(a in matrices::<f32>(120, 1500), k in 1_usize..40) {
        check_all(&a, &[k]);
    }
}

/// An X that does not begin with a cache line is read in other vectors. The sums are the same ones.
#[test]
fn bits_do_not_depend_on_where_x_and_y_are() {
    // Short rows, long ones and one that is shared by threads.
    let (rows, cols) = (40, 60);
    for of_row in [3, 20] {
        let (mut of_rows, mut of_cols, mut values) = (vec![], vec![], vec![]);
        for row in 0..rows {
            for i in 0..if row == 7 { cols } else { of_row } {
                of_rows.push(row as u32);
                of_cols.push(((row * 5 + i) % cols) as u32);
                values.push((row + i * 7) as f64 / 3.0);
            }
        }
        let a = csr(&Coo::new(rows, cols, of_rows, of_cols, values).unwrap());
        for k in [8, 16, 24, 32, 64] {
            let dense = DenseShape { k, layout: Layout::RowMajor };
            let x: Vec<f64> = (0..cols * k).map(|i| (i as f64).sin()).collect();
            // Room for eight shifts, from a line on.
            let room = |length: usize| vec![f64::NAN; length + 16];
            let line = |array: &[f64]| array.as_ptr().align_offset(64);
            for kernel in spmm::registry::<f64>() {
                for parameters in kernel.info.variants() {
                    let options = PlanOptions::with_threads(3);
                    let label = kernel.info.label(&parameters);
                    let plan = kernel.plan(a.view(), dense, &parameters, &options);
                    let Some(plan) = planned(&label, plan) else { continue };
                    let mut first = None;
                    for shift in 0..8 {
                        let (mut of_x, mut of_y) = (room(x.len()), room(rows * k));
                        let x_at = line(&of_x) + shift;
                        let y_at = line(&of_y) + (shift * 3) % 8;
                        of_x[x_at..x_at + x.len()].copy_from_slice(&x);
                        let y = y_at..y_at + rows * k;
                        plan.run(&of_x[x_at..x_at + x.len()], &mut of_y[y.clone()]).unwrap();
                        let around = of_y[..y.start].iter().chain(&of_y[y.end..]);
                        assert!(around.copied().all(f64::is_nan), "{label}, k = {k}: beside Y");
                        let found: Vec<u64> = of_y[y].iter().map(|y| y.to_bits()).collect();
                        let expected = first.get_or_insert_with(|| found.clone());
                        assert!(found == *expected, "{label}, k = {k}, {shift} behind a line");
                    }
                }
            }
        }
    }
}
