//! y = alpha A x + beta y and Y = alpha A X + beta Y, and the same with another addend than y, by every
//! kernel of the registries against the reference.

use crate::common::{LAYOUTS, csr, equal, planned, within_bound};
use spm_cpu::{PlanOptions, spmm, spmv};
use spm_formats::kernel::Scaling;
use spm_formats::{Complex, Coo, DenseShape, Layout, Scalar, convert};
use spm_testing::edge_cases::few_long_rows;
use spm_testing::exact::{self, Whole};
use spm_testing::generate;
use spm_testing::reference::{self, Reference};

/// alpha and beta, whole numbers so that the products of whole numbers are exact.
const PAIRS: [(f64, f64); 9] = [
    (1.0, 0.0),
    (1.0, 1.0),
    (1.0, -1.0),
    (-1.0, 1.0),
    (2.0, -3.0),
    (-3.0, 0.0),
    (0.0, 0.0),
    (0.0, 1.0),
    (0.0, 2.0),
];

fn scaling<T: Scalar>((alpha, beta): (f64, f64)) -> Scaling<T> {
    Scaling::new(T::from_f64(alpha), T::from_f64(beta))
}

/// A scaling, y before the product, and what it has to be afterwards.
struct Case<T: Scalar> {
    scaling: Scaling<T>,
    before: Vec<T>,
    expected: Reference<T::Wide>,
}

fn cases<T: Scalar>(a: &Coo<T>, x: &[T], dense: DenseShape) -> Vec<Case<T>> {
    let length = a.rows() * dense.k;
    let case = |scaling: Scaling<T>| {
        // NaN where y must not be read; other numbers than those of x elsewhere.
        let before = if scaling.beta == T::ZERO {
            vec![T::from_f64(f64::NAN); length]
        } else {
            exact::vector(length + 5)[5..].to_vec()
        };
        let expected = reference::scaled(a, scaling, x, &before, dense);
        Case { scaling, before, expected }
    };
    let mut all: Vec<Case<T>> = PAIRS.iter().map(|&pair| case(scaling(pair))).collect();
    if T::IS_COMPLEX {
        let number = |re, im| T::from_parts(T::Real::from_f64(re), T::Real::from_f64(im));
        all.push(case(Scaling::new(number(2.0, -1.0), number(-3.0, 2.0))));
        all.push(case(Scaling::new(number(0.0, 1.0), T::ZERO)));
        all.push(case(Scaling::new(T::ZERO, number(0.0, -1.0))));
    }
    all
}

const VECTOR: DenseShape = DenseShape { k: 1, layout: Layout::RowMajor };

fn check_spmv<T: Scalar>(a: &Coo<T>, x: &[T], judge: crate::common::Judge<T>) {
    let (matrix, cases) = (csr(a), cases(a, x, VECTOR));
    for threads in [1, 3] {
        let options = PlanOptions::with_threads(threads);
        for kernel in spmv::registry::<T>() {
            for parameters in kernel.info.variants() {
                let label = format!("{} on {threads} threads", kernel.info.label(&parameters));
                let plan = kernel.plan(&matrix, &parameters, &options);
                let Some(plan) = planned(&label, plan) else { continue };
                for Case { scaling, before, expected } in &cases {
                    let mut y = before.clone();
                    plan.run_scaled(*scaling, x, &mut y).unwrap();
                    judge(&format!("{label}, {scaling:?}"), &y, expected);
                    let in_place =
                        std::mem::replace(&mut y, vec![T::from_f64(f64::NAN); before.len()]);
                    plan.run_adding(*scaling, x, before, &mut y).unwrap();
                    let label = format!("{label}, {scaling:?} to another vector");
                    judge(&label, &y, expected);
                    assert!(crate::common::bits(&y) == crate::common::bits(&in_place), "{label}");
                }
            }
        }
    }
}

fn check_spmm<T: Scalar>(a: &Coo<T>, k: usize, x: &[T], judge: crate::common::Judge<T>) {
    let matrix = csr(a);
    for (threads, layout) in [1, 3].into_iter().flat_map(|t| LAYOUTS.map(|layout| (t, layout))) {
        let (options, dense) = (PlanOptions::with_threads(threads), DenseShape { k, layout });
        let cases = cases(a, x, dense);
        for kernel in spmm::registry::<T>() {
            for parameters in kernel.info.variants() {
                let label = kernel.info.label(&parameters);
                let label = format!("{label} on {threads} threads, {dense:?}");
                let plan = kernel.plan(&matrix, dense, &parameters, &options);
                let Some(plan) = planned(&label, plan) else { continue };
                for Case { scaling, before, expected } in &cases {
                    let mut y = before.clone();
                    plan.run_scaled(*scaling, x, &mut y).unwrap();
                    judge(&format!("{label}, {scaling:?}"), &y, expected);
                    let in_place =
                        std::mem::replace(&mut y, vec![T::from_f64(f64::NAN); before.len()]);
                    plan.run_adding(*scaling, x, before, &mut y).unwrap();
                    let label = format!("{label}, {scaling:?} to another vector");
                    judge(&label, &y, expected);
                    assert!(crate::common::bits(&y) == crate::common::bits(&in_place), "{label}");
                }
            }
        }
    }
}

/// Matrices for every way of storing one: stencils, equal rows, rows without entries, long rows.
fn matrices<T: Scalar>() -> Vec<Coo<T>> {
    let named = |name| {
        let a = generate::named(name).unwrap().generate::<T>().unwrap();
        convert::csr_to_coo(a.view())
    };
    let labels = [
        "stencil27[n=7]",
        "blocks[n=5,block=3]",
        "uniform[rows=300,cols=200,entries=2000]",
        "uniform[rows=70,cols=900,entries=40]",
    ];
    let mut all: Vec<Coo<T>> = labels.map(named).into();
    all.extend([few_long_rows(), Coo::empty(0, 3).unwrap(), Coo::empty(20, 0).unwrap()]);
    all
}

fn check_whole_numbers<T: Scalar>() {
    // In single precision the wide numbers are the small ones; no complex kernel looks at the values.
    let single = size_of::<T>() == size_of::<f32>();
    let has = |kind| match kind {
        Whole::Small => true,
        Whole::Wide => !single && !T::IS_COMPLEX,
        Whole::Equal => !T::IS_COMPLEX,
    };
    let kinds = Whole::ALL.into_iter().filter(|&kind| has(kind));
    for (a, kind) in matrices::<T>().iter().flat_map(|a| kinds.clone().map(move |kind| (a, kind))) {
        let a = exact::matrix(a, kind);
        check_spmv(&a, &exact::vector(a.cols()), equal);
        if kind == Whole::Small {
            for k in [1, if T::IS_COMPLEX { 5 } else { 19 }] {
                check_spmm(&a, k, &exact::vector(a.cols() * k), equal);
            }
        }
    }
}

#[test]
fn whole_numbers_in_single_precision() {
    check_whole_numbers::<f32>();
}

#[test]
fn whole_numbers_in_double_precision() {
    check_whole_numbers::<f64>();
}

#[test]
fn whole_complex_numbers() {
    check_whole_numbers::<Complex<f64>>();
}

/// Padding that meets an infinity or a NaN spoils no row, and alpha 0 leaves them out.
#[test]
fn numbers_that_are_not_finite_stay_in_their_rows() {
    for a in matrices::<f64>().iter().filter(|a| a.cols() > 0) {
        let a = exact::matrix(a, Whole::Small);
        for special in [f64::INFINITY, f64::NAN] {
            for place in [0, a.cols() / 2] {
                let mut x: Vec<f64> = exact::vector(a.cols());
                x[place] = special;
                check_spmv(&a, &x, within_bound);
            }
            let mut x: Vec<f64> = exact::vector(a.cols() * 5);
            x[a.cols() * 2] = special;
            check_spmm(&a, 5, &x, within_bound);
        }
    }
}

#[test]
fn wrong_lengths_are_errors() {
    let a = csr(&Coo::<f64>::empty(2, 3).unwrap());
    let options = PlanOptions::with_threads(2);
    let kernel = spmv::find("csr-merge").unwrap();
    let plan = kernel.plan(&a, &kernel.info.defaults(), &options).unwrap();
    for (alpha, beta) in PAIRS {
        let scaling = Scaling::new(alpha, beta);
        assert!(plan.run_scaled(scaling, &[0.0; 2], &mut [0.0; 2]).is_err());
        assert!(plan.run_scaled(scaling, &[0.0; 3], &mut [0.0; 3]).is_err());
        for (z, y) in [(3, 2), (2, 3), (3, 3)] {
            let (z, mut y) = (vec![0.0; z], vec![0.0; y]);
            assert!(plan.run_adding(scaling, &[0.0; 3], &z, &mut y).is_err());
        }
        plan.run_adding(scaling, &[0.0; 3], &[0.0; 2], &mut [0.0; 2]).unwrap();
    }
}
