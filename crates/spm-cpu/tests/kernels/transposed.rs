//! The product with the transpose of a CSR matrix against the reference of the transpose.

use std::sync::{Arc, Barrier};
use std::thread;

use crate::common::{bits, csr};
use proptest::prelude::*;
use spm_cpu::{PlanOptions, Threads, transposed};
use spm_formats::kernel::{RunError, Scaling};
use spm_formats::{Complex, Coo, MemoryBudget, Scalar, convert};
use spm_testing::edge_cases::{long_rows, vector};
use spm_testing::exact::{self, Whole};
use spm_testing::generate;
use spm_testing::reference::{self, Reference};

/// A^T x.
fn expected<T: Scalar>(a: &Coo<T>, x: &[T]) -> Reference<T::Wide> {
    let (rows, cols) = (a.row_ind().to_vec(), a.col_ind().to_vec());
    let transpose = Coo::new(a.cols(), a.rows(), cols, rows, a.values().to_vec()).unwrap();
    reference::spmv(&transpose, x)
}

fn check<T: Scalar>(a: &Coo<T>, x: &[T], options: &PlanOptions, judge: crate::common::Judge<T>) {
    let (matrix, expected) = (csr(a), expected(a, x));
    let label = format!("{:?} on {:?}", matrix.shape(), options.threads);
    let plan = transposed::plan(&matrix, options).unwrap();
    let mut y = vec![T::from_f64(f64::NAN); a.cols()];
    plan.run(x, &mut y).unwrap();
    judge(&label, &y, &expected);
    let mut again = vec![T::from_f64(f64::NAN); a.cols()];
    plan.run(x, &mut again).unwrap();
    assert!(bits(&y) == bits(&again), "{label}: two runs differ");
}

/// Matrices large enough for several threads.
fn large<T: Scalar>() -> Vec<Coo<T>> {
    let named = |name| {
        let a = generate::named(name).unwrap().generate::<T>().unwrap();
        convert::csr_to_coo(a.view())
    };
    let labels = [
        "stencil27[n=16]",
        "uniform[rows=3000,cols=2000,entries=60000]",
        "powerlaw[rows=2000,cols=3000,entries=60000,longest=3000]",
    ];
    let mut all: Vec<Coo<T>> = labels.map(named).into();
    all.push(long_rows());
    all
}

#[test]
fn whole_numbers_are_exact() {
    for threads in [1, 2, 3, 5] {
        let options = PlanOptions::with_threads(threads);
        for a in large::<f64>() {
            let a = exact::matrix(&a, Whole::Wide);
            check(&a, &exact::vector(a.rows()), &options, crate::common::equal);
        }
        for a in large::<f32>() {
            let a = exact::matrix(&a, Whole::Small);
            check(&a, &exact::vector(a.rows()), &options, crate::common::equal);
        }
        for a in large::<Complex<f64>>() {
            let a = exact::matrix(&a, Whole::Small);
            check(&a, &exact::vector(a.rows()), &options, crate::common::equal);
        }
    }
}

#[test]
fn numbers_that_are_not_finite_reach_the_columns_of_their_rows_and_no_others() {
    for special in [f64::INFINITY, f64::NAN] {
        for a in large::<f64>() {
            let mut x: Vec<f64> = vector(a.rows());
            x[a.rows() / 3] = special;
            check(&a, &x, &PlanOptions::with_threads(3), crate::common::within_bound);
        }
    }
}

#[test]
fn alpha_and_beta_are_applied() {
    for (threads, a) in
        [1, 3].into_iter().flat_map(|t| large::<f64>().into_iter().map(move |a| (t, a)))
    {
        let a = exact::matrix(&a, Whole::Small);
        let matrix = csr(&a);
        let plan = transposed::plan(&matrix, &PlanOptions::with_threads(threads)).unwrap();
        let (x, product) = (exact::vector(a.rows()), expected(&a, &exact::vector(a.rows())));
        let before: Vec<f64> = exact::vector(a.cols() + 5)[5..].to_vec();
        for (alpha, beta) in [(1.0, 1.0), (-1.0, 1.0), (2.0, -3.0), (-3.0, 0.0), (0.0, 2.0)] {
            let mut y = if beta == 0.0 { vec![f64::NAN; a.cols()] } else { before.clone() };
            plan.run_scaled(Scaling::new(alpha, beta), &x, &mut y).unwrap();
            for ((y, before), product) in y.iter().zip(&before).zip(&product.values) {
                assert_eq!(*y, alpha * product + beta * before, "{alpha}, {beta}");
            }
            let mut other = vec![f64::NAN; a.cols()];
            plan.run_adding(Scaling::new(alpha, beta), &x, &before, &mut other).unwrap();
            assert_eq!(other, y, "{alpha}, {beta}");
        }
    }
}

/// With less memory than the copies take, fewer threads compute.
#[test]
fn a_small_budget_has_fewer_copies() {
    let a = exact::matrix(&large::<f64>()[1], Whole::Wide);
    let (matrix, threads) = (csr(&a), Threads::new(4));
    let of_copy = 8 * a.cols() as u64;
    let mut held = Vec::new();
    for copies in [0, 1, 2, 3] {
        let budget = MemoryBudget::bytes(copies * of_copy);
        let options = PlanOptions { threads: threads.clone(), budget };
        let plan_bytes = transposed::plan(&matrix, &options).unwrap().footprint().plan_bytes;
        assert!(plan_bytes <= copies * of_copy + MemoryBudget::ALLOWANCE);
        held.push(plan_bytes / of_copy);
        check(&a, &exact::vector(a.rows()), &options, crate::common::equal);
    }
    assert_eq!(held, [0, 1, 1, 3]);
}

#[test]
fn four_callers_share_a_plan_that_owns_its_matrix() {
    let a = Arc::new(csr(&large::<f64>()[1]));
    let plan = transposed::plan(Arc::clone(&a), &PlanOptions::with_threads(2)).unwrap();
    let (plan, start) = (Arc::new(plan), Arc::new(Barrier::new(4)));
    let callers: Vec<_> = (0..4)
        .map(|caller| {
            let (plan, start) = (Arc::clone(&plan), Arc::clone(&start));
            let x: Vec<f64> =
                vector(a.rows()).iter().map(|x: &f64| x + f64::from(caller)).collect();
            let product = move || {
                let mut y = vec![f64::NAN; plan.shape().0];
                plan.run(&x, &mut y).unwrap();
                bits(&y)
            };
            let alone = product();
            thread::spawn(move || {
                start.wait();
                (0..20).for_each(|_| assert!(product() == alone));
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.join().unwrap());
}

#[test]
fn wrong_lengths_are_errors() {
    let a = csr(&Coo::<f64>::empty(2, 3).unwrap());
    let plan = transposed::plan(&a, &PlanOptions::with_threads(2)).unwrap();
    let short_x = plan.run(&[0.0; 1], &mut [0.0; 3]);
    assert_eq!(short_x, Err(RunError::Shape { what: "x", expected: 2, found: 1 }));
    let short_y = plan.run(&[0.0; 2], &mut [0.0; 2]);
    assert_eq!(short_y, Err(RunError::Shape { what: "y", expected: 3, found: 2 }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn small_matrices(a in crate::common::matrices::<f64>(60, 400)) {
        check(&a, &vector(a.rows()), &PlanOptions::with_threads(3), crate::common::within_bound);
    }
}
