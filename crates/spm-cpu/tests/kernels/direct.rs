//! Products straight from CSR that no registry lists: with the complex conjugate and the conjugate
//! transpose, in mixed precision, and with elements of any type.

use std::num::Wrapping;
use std::sync::Arc;

use crate::common::{bits, csr, equal, within_bound};
use spm_cpu::elements::Element;
use spm_cpu::spmv::BoxedPlan;
use spm_cpu::{PlanOptions, conjugate, elements, mixed, transposed};
use spm_formats::kernel::{PlanError, RunError, Scaling};
use spm_formats::{Complex, Coo, Csr, FormatError, NewValues, Scalar, WidensTo};
use spm_testing::edge_cases::{few_long_rows, generated, vector};
use spm_testing::exact::{self, Whole};
use spm_testing::{generate, reference};

/// Matrices for one and for several threads, with rows and columns without entries.
fn matrices<T: Scalar>() -> Vec<Coo<T>> {
    let labels = ["stencil5[n=90]", "uniform[rows=70,cols=900,entries=400]"];
    let mut all: Vec<Coo<T>> = labels.map(generated).into();
    all.extend([few_long_rows(), Coo::empty(0, 3).unwrap(), Coo::empty(20, 0).unwrap()]);
    all
}

fn mapped<T: Scalar, U: Scalar>(a: &Coo<T>, value: impl Fn(T) -> U) -> Coo<U> {
    let values = a.values().iter().map(|&v| value(v)).collect();
    Coo::new(a.rows(), a.cols(), a.row_ind().to_vec(), a.col_ind().to_vec(), values).unwrap()
}

fn transpose<T: Scalar>(a: &Coo<T>) -> Coo<T> {
    let (rows, cols) = (a.row_ind().to_vec(), a.col_ind().to_vec());
    Coo::new(a.cols(), a.rows(), cols, rows, a.values().to_vec()).unwrap()
}

/// A plan against the product of the reference with `a`, scaled and not, judged in whole numbers.
fn check<T: Scalar>(what: &str, plan: &BoxedPlan<'_, T>, a: &Coo<T>, parts: [(f64, f64); 2]) {
    let part = T::Real::from_f64;
    let [alpha, beta] = parts.map(|(re, im)| T::from_parts(part(re), part(im)));
    assert_eq!(plan.shape(), (a.rows(), a.cols()), "{what}");
    let x: Vec<T> = exact::vector(a.cols());
    let nan = T::from_parts(part(f64::NAN), part(f64::NAN));
    let mut y = vec![nan; a.rows()];
    plan.run(&x, &mut y).unwrap();
    let product = reference::spmv(a, &x);
    equal(what, &y, &product);
    let mut again = vec![nan; a.rows()];
    plan.run_scaled(Scaling::OVERWRITE, &x, &mut again).unwrap();
    assert!(bits(&y) == bits(&again), "{what}: other bits with alpha 1 and beta 0");
    let mut scaled: Vec<T> = exact::vector(a.rows());
    let expected: Vec<T> = y.iter().zip(&scaled).map(|(&ax, &y)| alpha * ax + beta * y).collect();
    plan.run_scaled(Scaling::new(alpha, beta), &x, &mut scaled).unwrap();
    assert_eq!(scaled, expected, "{what}, scaled");
    let (z, mut sum): (Vec<T>, _) = (exact::vector(a.rows()), vec![nan; a.rows()]);
    plan.run_adding(Scaling::new(alpha, beta), &x, &z, &mut sum).unwrap();
    assert_eq!(sum, expected, "{what}, with another vector than y");
    let mut overwritten = vec![nan; a.rows()];
    plan.run_scaled(Scaling::new(alpha, T::ZERO), &x, &mut overwritten).unwrap();
    let expected: Vec<T> = y.iter().map(|&ax| alpha * ax).collect();
    assert_eq!(overwritten, expected, "{what}, beta 0");
}

/// Small enough factors for exact sums.
const SCALINGS: [[(f64, f64); 2]; 2] = [[(2.0, 0.0), (-1.0, 0.0)], [(1.0, -2.0), (0.0, 1.0)]];

fn conjugates<T: Scalar>() {
    for a in matrices::<T>() {
        let a = exact::matrix(&a, Whole::Small);
        let (matrix, conjugated) = (csr(&a), mapped(&a, T::conj));
        for threads in [1, 2, 4] {
            let options = PlanOptions::with_threads(threads);
            let what = format!("{} {:?} on {threads} threads", T::NAME, matrix.shape());
            let plan = conjugate::plan(&matrix, &options).unwrap();
            let adjoint = transposed::plan_conjugate(&matrix, &options).unwrap();
            for parts in SCALINGS {
                check(&what, &plan, &conjugated, parts);
                check(&format!("{what}, A^H"), &adjoint, &transpose(&conjugated), parts);
            }
        }
    }
}

#[test]
fn conjugates_and_conjugate_transposes() {
    conjugates::<Complex<f64>>();
    conjugates::<Complex<f32>>();
    conjugates::<f64>();
}

#[test]
fn conjugates_take_new_values() {
    let a = generate::named("stencil5[n=20]").unwrap().generate::<Complex<f64>>().unwrap();
    let other = a.map(|value| value * Complex::new(0.5, 3.0));
    let (values, x) = (Arc::new(other.values().to_vec()), vector(a.rows()));
    let options = PlanOptions::with_threads(2);
    let run = |plan: &BoxedPlan<'_, _>| {
        let mut y = vec![Complex::ZERO; a.cols()];
        plan.run(&x, &mut y).unwrap();
        bits(&y)
    };
    let plans = |a| [conjugate::plan(a, &options), transposed::plan_conjugate(a, &options)];
    for (plan, fresh) in plans(&a).into_iter().zip(plans(&other)) {
        let (mut plan, fresh) = (plan.unwrap(), fresh.unwrap());
        plan.set_values(NewValues::Shared(&values)).unwrap();
        assert!(run(&plan) == run(&fresh));
    }
}

fn mixed_precision<A: WidensTo<T>, T: Scalar>() {
    let options = PlanOptions::with_threads(3);
    for a in matrices::<A>() {
        let whole = exact::matrix(&a, Whole::Small);
        let (matrix, wide) = (csr(&whole), mapped(&whole, A::widen_to));
        let what = format!("{} with {}, {:?}", A::NAME, T::NAME, matrix.shape());
        let plan: BoxedPlan<'_, T> = mixed::plan(&matrix, &options).unwrap();
        let across: BoxedPlan<'_, T> = mixed::plan_transposed(&matrix, &options).unwrap();
        for parts in SCALINGS {
            check(&what, &plan, &wide, parts);
            check(&format!("{what}, A^T"), &across, &transpose(&wide), parts);
        }
        // Full-width x, with the bound of double precision.
        let (matrix, wide) = (csr(&a), mapped(&a, A::widen_to));
        let plan: BoxedPlan<'_, T> = mixed::plan(&matrix, &options).unwrap();
        let x: Vec<T> = vector(a.cols());
        let mut y = vec![T::ZERO; a.rows()];
        plan.run(&x, &mut y).unwrap();
        within_bound(&what, &y, &reference::spmv(&wide, &x));
    }
}

#[test]
fn mixed_precision_is_double_precision() {
    mixed_precision::<f32, f64>();
    mixed_precision::<Complex<f32>, Complex<f64>>();
}

#[test]
fn a_plan_of_mixed_precision_keeps_its_values() {
    let a = Csr::new((1, 1), vec![0, 1], vec![0], vec![2.0_f32]).unwrap();
    let mut plan: BoxedPlan<'_, f64> = mixed::plan(&a, &PlanOptions::with_threads(1)).unwrap();
    let error = plan.set_values(NewValues::Shared(&Arc::new(vec![3.0]))).unwrap_err();
    assert!(matches!(error, PlanError::Values(_)), "{error}");
    let mut y = [0.0];
    plan.run(&[1.5], &mut y).unwrap();
    assert_eq!(y, [3.0]);
}

/// The sums of the rows in the order of their entries.
fn naive<T: Element>(a: &Csr<T>, x: &[T]) -> Vec<T> {
    let row = |row: usize| {
        let (cols, values) = a.row(row);
        let entries = cols.iter().zip(values);
        entries.fold(T::zero(), |sum, (&col, &value)| sum.add_product(value, x[col as usize]))
    };
    (0..a.rows()).map(row).collect()
}

fn any_elements<T: Element + std::fmt::Debug>(of: impl Fn(u32) -> T) {
    for pattern in matrices::<f32>() {
        let pattern = csr(&pattern);
        let mut entry = 0;
        let a = pattern.map(|_| {
            entry += 1;
            of(entry)
        });
        let x: Vec<T> = (0..a.cols() as u32).map(|col| of(3 * col + 1)).collect();
        let expected = naive(&a, &x);
        let old: Vec<T> = (0..a.rows() as u32).map(&of).collect();
        for threads in [1, 3] {
            let plan = elements::plan(&a, &PlanOptions::with_threads(threads)).unwrap();
            let mut y = old.clone();
            plan.run(&x, &mut y).unwrap();
            assert_eq!(y, expected, "{threads} threads");
            let (alpha, beta, zero) = (of(2), of(1), T::zero());
            let scaled = |alpha, beta| {
                let mut y = old.clone();
                plan.run_scaled(Scaling::new(alpha, beta), &x, &mut y).unwrap();
                y
            };
            let combined = old.iter().zip(&expected);
            let combined = combined
                .map(|(&y, &ax)| zero.add_product(beta, y).add_product(alpha, ax))
                .collect::<Vec<_>>();
            assert_eq!(scaled(alpha, beta), combined);
            let mut y = x.iter().copied().cycle().take(a.rows()).collect::<Vec<_>>();
            y.resize(a.rows(), zero);
            plan.run_adding(Scaling::new(alpha, beta), &x, &old, &mut y).unwrap();
            assert_eq!(y, combined);
            let product = expected.iter().map(|&ax| zero.add_product(alpha, ax));
            assert_eq!(scaled(alpha, zero), product.collect::<Vec<_>>());
            let kept = old.iter().map(|&y| zero.add_product(beta, y)).collect::<Vec<_>>();
            assert_eq!(scaled(zero, beta), kept);
        }
    }
}

/// A number modulo 65 521.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Prime(u32);

impl Element for Prime {
    fn zero() -> Self {
        Self(0)
    }

    fn add_product(self, a: Self, x: Self) -> Self {
        Self((self.0 + a.0 * x.0 % 65_521) % 65_521)
    }
}

/// Concatenation of hashes: an addition that depends on the order of the terms.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ordered(u64);

impl Element for Ordered {
    fn zero() -> Self {
        Self(0)
    }

    fn add_product(self, a: Self, x: Self) -> Self {
        Self(self.0.wrapping_mul(31).wrapping_add(a.0 ^ x.0))
    }
}

#[test]
fn elements_of_any_type() {
    any_elements(|i| i as i32 % 7 - 3);
    any_elements(|i| i64::from(i) - 1000);
    any_elements(u64::from);
    any_elements(|i| Wrapping(i.wrapping_mul(0x9e37_79b9)));
    any_elements(|i| Prime(i % 65_521));
    any_elements(|i| Ordered(u64::from(i)));
}

#[test]
fn wrong_lengths_are_errors() {
    let a = Csr::new((2, 3), vec![0, 1, 1], vec![2], vec![7_i32]).unwrap();
    let mut plan = elements::plan(&a, &PlanOptions::with_threads(2)).unwrap();
    let x = |found| Err(RunError::Shape { what: "x", expected: 3, found });
    let y = |found| Err(RunError::Shape { what: "y", expected: 2, found });
    assert_eq!(plan.run(&[0; 2], &mut [0; 2]), x(2));
    assert_eq!(plan.run(&[0; 3], &mut [0; 3]), y(3));
    let scaling = Scaling::new(0, 2);
    assert_eq!(plan.run_scaled(scaling, &[0; 4], &mut [0; 2]), x(4));
    assert_eq!(plan.run_scaled(scaling, &[0; 3], &mut [0; 1]), y(1));
    let z = Err(RunError::Shape { what: "z", expected: 2, found: 3 });
    assert_eq!(plan.run_adding(scaling, &[0; 3], &[0; 3], &mut [0; 2]), z);
    let error = plan.set_values(NewValues::Shared(&Arc::new(vec![1, 2]))).unwrap_err();
    assert!(matches!(error, PlanError::Format(FormatError::LengthMismatch { .. })));
    plan.set_values(NewValues::Shared(&Arc::new(vec![-1]))).unwrap();
    let mut result = [5; 2];
    plan.run(&[1, 2, 3], &mut result).unwrap();
    assert_eq!(result, [-3, 0]);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "overflow")]
fn integers_that_overflow_panic_with_overflow_checks() {
    let a = Csr::new((1, 1), vec![0, 1], vec![0], vec![i32::MAX]).unwrap();
    let plan = elements::plan(&a, &PlanOptions::with_threads(1)).unwrap();
    plan.run(&[2], &mut [0]).unwrap();
}
