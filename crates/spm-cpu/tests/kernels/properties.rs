//! What holds for any matrix, whichever kernel computes it.

use crate::common::{LAYOUTS, bits, csr, matrices, planned};
use proptest::prelude::*;
use spm_cpu::{PlanOptions, spmm, spmv, transpose};
use spm_formats::kernel::{Parameters, Schedule, TransposeOutput, Value};
use spm_formats::{Coo, Csr, DenseShape, Layout};
use spm_testing::edge_cases::vector;
use spm_testing::{generate, reference};

/// y = A x, or nothing where the kernel does not suit the matrix.
fn product(
    kernel: &spmv::SpmvKernel<f64>,
    parameters: &Parameters,
    a: &Csr<f64>,
    threads: usize,
    x: &[f64],
) -> Option<Vec<f64>> {
    let options = PlanOptions::with_threads(threads);
    let plan = kernel.plan(a.view(), parameters, &options);
    let plan = planned(&kernel.info.label(parameters), plan)?;
    let mut y = vec![f64::NAN; a.rows()];
    plan.run(x, &mut y).unwrap();
    Some(y)
}

/// Y = A X, or nothing where the kernel does not suit the matrix.
fn dense_product(
    kernel: &spmm::SpmmKernel<f64>,
    parameters: &Parameters,
    a: &Csr<f64>,
    dense: DenseShape,
    threads: usize,
    x: &[f64],
) -> Option<Vec<f64>> {
    let options = PlanOptions::with_threads(threads);
    let plan = kernel.plan(a.view(), dense, parameters, &options);
    let plan = planned(&kernel.info.label(parameters), plan)?;
    let mut y = vec![f64::NAN; a.rows() * dense.k];
    plan.run(x, &mut y).unwrap();
    Some(y)
}

/// How far from each other two right results may be, in the bound of the reference.
const APART: f64 = 2.0 * reference::BOUND_LIMIT;

/// The bounds of the reference around another result.
fn around(y: &[f64], reference: reference::Reference) -> reference::Reference {
    reference::Reference { values: y.to_vec(), ..reference }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn transposing_twice_changes_nothing(a in matrices(60, 400)) {
        let a = csr(&a);
        for kernel in transpose::registry::<f64>() {
            let options = PlanOptions::with_threads(2);
            let transposed = |a: &Csr<f64>| {
                let plan = kernel.plan(a.view(), &kernel.info.defaults(), &options);
                let mut plan = planned(kernel.info.id, plan)?;
                let mut output = TransposeOutput::new(a.cols(), a.nnz());
                plan.run(&mut output).unwrap();
                let TransposeOutput { col_ptr, row_ind, values } = output;
                Some(Csr::new((a.cols(), a.rows()), col_ptr, row_ind, values).unwrap())
            };
            let Some(transpose) = transposed(&a) else { continue };
            prop_assert!(transposed(&transpose).as_ref() == Some(&a), "{}", kernel.info.id);
        }
    }

    /// (A X) e_j = A (X e_j).
    #[test]
    fn a_column_of_the_product_is_the_product_of_the_column(
        a in matrices(60, 400),
        k in 1_usize..12,
    ) {
        let matrix = csr(&a);
        let (rows, cols) = matrix.shape();
        for layout in LAYOUTS {
            let at = |height: usize, i: usize, j: usize| match layout {
                Layout::RowMajor => i * k + j,
                Layout::ColumnMajor => j * height + i,
            };
            let x = vector(cols * k);
            for kernel in spmm::registry::<f64>() {
                let options = PlanOptions::with_threads(2);
                let dense = DenseShape { k, layout };
                let plan =
                    kernel.plan(matrix.view(), dense, &kernel.info.defaults(), &options);
                let Some(plan) = planned(kernel.info.id, plan) else { continue };
                let mut y = vec![f64::NAN; rows * k];
                plan.run(&x, &mut y).unwrap();
                for j in 0..k {
                    let column: Vec<f64> = (0..cols).map(|i| x[at(cols, i, j)]).collect();
                    let computed: Vec<f64> = (0..rows).map(|i| y[at(rows, i, j)]).collect();
                    let errors = reference::compare(&computed, &reference::spmv(&a, &column));
                    prop_assert!(errors.acceptable(), "{} {layout:?}: {errors:?}", kernel.info.id);
                }
            }
        }
    }

    /// The rows of P A times x are those of A times x, permuted.
    #[test]
    fn permuted_rows_give_a_permuted_product(a in matrices(60, 400), step in 1_usize..60) {
        let rows = a.rows();
        prop_assume!((1..=rows).all(|d| d == 1 || rows % d != 0 || step % d != 0));
        let place = |row: usize| row * step % rows;
        let moved = a.row_ind().iter().map(|&row| place(row as usize) as u32).collect();
        let (columns, values) = (a.col_ind().to_vec(), a.values().to_vec());
        let permuted = Coo::new(rows, a.cols(), moved, columns, values);
        let (matrix, permuted) = (csr(&a), permuted.unwrap());
        let permuted_matrix = csr(&permuted);
        let x = vector(a.cols());
        let expected = reference::spmv(&permuted, &x);
        for kernel in spmv::registry::<f64>() {
            let parameters = kernel.info.defaults();
            let y = product(&kernel, &parameters, &matrix, 2, &x);
            let z = product(&kernel, &parameters, &permuted_matrix, 2, &x);
            let (Some(y), Some(z)) = (y, z) else { continue };
            let mut moved = vec![0.0; rows];
            for (row, y) in y.into_iter().enumerate() {
                moved[place(row)] = y;
            }
            for result in [z, moved] {
                let errors = reference::compare(&result, &expected);
                prop_assert!(errors.acceptable(), "{}: {errors:?}", kernel.info.id);
            }
        }
    }

    /// The columns of A P^T times P x are those of A times x.
    #[test]
    fn permuted_columns_with_a_permuted_x_give_the_same_product(
        a in matrices(60, 400),
        step in 1_usize..60,
    ) {
        let cols = a.cols();
        prop_assume!((1..=cols).all(|d| d == 1 || cols % d != 0 || step % d != 0));
        let place = |col: usize| col * step % cols;
        let moved = a.col_ind().iter().map(|&col| place(col as usize) as u32).collect();
        let (rows, values) = (a.row_ind().to_vec(), a.values().to_vec());
        let permuted = Coo::new(a.rows(), cols, rows, moved, values);
        let permuted = csr(&permuted.unwrap());
        let x = vector(cols);
        let mut moved = vec![0.0; cols];
        x.iter().enumerate().for_each(|(col, &x)| moved[place(col)] = x);
        let expected = reference::spmv(&a, &x);
        for kernel in spmv::registry::<f64>() {
            let y = product(&kernel, &kernel.info.defaults(), &permuted, 2, &moved);
            let Some(y) = y else { continue };
            let errors = reference::compare(&y, &expected);
            prop_assert!(errors.acceptable(), "{}: {errors:?}", kernel.info.id);
        }
    }

    /// What `auto` chooses is as far from any other kernel as two right results may be.
    #[test]
    fn auto_agrees_with_every_kernel(a in matrices(60, 400), k in 1_usize..9) {
        let matrix = csr(&a);
        let x = vector(a.cols());
        let kernel = spmv::find::<f64>("auto").unwrap();
        let auto = product(&kernel, &kernel.info.defaults(), &matrix, 2, &x).unwrap();
        let around = around(&auto, reference::spmv(&a, &x));
        for kernel in spmv::registry::<f64>() {
            for parameters in kernel.info.variants() {
                let Some(y) = product(&kernel, &parameters, &matrix, 2, &x) else { continue };
                let errors = reference::compare(&y, &around);
                let label = kernel.info.label(&parameters);
                prop_assert!(errors.bound <= APART, "{label}: {errors:?}");
            }
        }
        for layout in LAYOUTS {
            let dense = DenseShape { k, layout };
            let x = vector(a.cols() * k);
            let kernel = spmm::find::<f64>("auto").unwrap();
            let auto = dense_product(&kernel, &kernel.info.defaults(), &matrix, dense, 2, &x);
            let auto = auto.expect("auto suits every matrix");
            let around = self::around(&auto, reference::spmm(&a, &x, dense));
            for kernel in spmm::registry::<f64>() {
                for parameters in kernel.info.variants() {
                    let y = dense_product(&kernel, &parameters, &matrix, dense, 2, &x);
                    let Some(y) = y else { continue };
                    let errors = reference::compare(&y, &around);
                    let label = kernel.info.label(&parameters);
                    prop_assert!(errors.bound <= APART, "{label}: {errors:?}");
                }
            }
        }
    }

    #[test]
    fn threads_and_schedules_change_no_bit(a in matrices(60, 400), k in 1_usize..12) {
        let a = csr(&a);
        check_reproducible(&a);
        check_reproducible_spmm(&a, k);
    }
}

/// What the documentation of `spm_cpu::spmv` promises.
fn check_reproducible(a: &Csr<f64>) {
    const PROMISE_NOTHING: [&str; 5] =
        ["csr-merge", "csr-compact", "sell-compact", "sell-symmetric", "auto"];
    let x = vector(a.cols());
    let kernels = spmv::registry::<f64>();
    for kernel in kernels.iter().filter(|kernel| !PROMISE_NOTHING.contains(&kernel.info.id)) {
        for parameters in kernel.info.variants() {
            let expected = product(kernel, &parameters, a, 1, &x);
            let mut others = vec![parameters.clone()];
            if parameters.get("schedule").is_some() {
                let schedules = [Schedule::Static, Schedule::Dynamic].map(Value::Schedule);
                others = schedules.map(|s| parameters.clone().with("schedule", s)).to_vec();
            }
            for (other, threads) in others.iter().flat_map(|o| [1, 2, 3, 5].map(|t| (o, t))) {
                let y = product(kernel, other, a, threads, &x);
                assert!(
                    y.as_deref().map(bits) == expected.as_deref().map(bits),
                    "{} on {threads} threads",
                    kernel.info.label(other),
                );
            }
        }
    }
}

/// What the documentation of `spm_cpu::spmm` promises.
fn check_reproducible_spmm(a: &Csr<f64>, k: usize) {
    const PROMISE_NOTHING: [&str; 2] = ["csr-blocked", "auto"];
    let x = vector(a.cols() * k);
    let kernels = spmm::registry::<f64>();
    for layout in LAYOUTS {
        let dense = DenseShape { k, layout };
        for kernel in kernels.iter().filter(|kernel| !PROMISE_NOTHING.contains(&kernel.info.id)) {
            for parameters in kernel.info.variants() {
                let on = |threads| dense_product(kernel, &parameters, a, dense, threads, &x);
                let Some(expected) = on(1).as_deref().map(bits) else { continue };
                for threads in [2, 3, 5] {
                    let label = kernel.info.label(&parameters);
                    let y = on(threads).as_deref().map(bits);
                    assert!(y.is_some_and(|y| y == expected), "{label} on {threads} threads");
                }
            }
        }
    }
}

#[test]
fn threads_and_schedules_change_no_bit_of_long_rows() {
    let mut entries: Vec<(u32, u32)> = (0..300).map(|i| (i, (i * 7) % 1000)).collect();
    entries.extend((0..5000).filter(|j| j % 1000 != 175).map(|j| (25, j)));
    let (r, c): (Vec<u32>, Vec<u32>) = entries.into_iter().unzip();
    let v = vector(r.len());
    let a = csr(&Coo::new(300, 5000, r, c, v).unwrap());
    check_reproducible(&a);
    check_reproducible_spmm(&a, 3);
}

/// Rows that repeat a pattern shifted by one, and rows with the same columns: what the kernels that
/// share columns or values between rows are for.
#[test]
fn threads_and_schedules_change_no_bit_of_stencils_and_blocks() {
    for label in ["stencil27[n=9]", "blocks[n=5,block=3]"] {
        let a = generate::named(label).unwrap().generate().unwrap();
        check_reproducible(&a);
        check_reproducible_spmm(&a, 3);
    }
}
