//! New values in the same pattern.

use crate::common::{MATRICES, accept, bits, matrix, scaled, transposed};
use spm::{Csr, Error, Layout, Operator, Rates};
use spm_formats::convert;
use spm_testing::edge_cases::vector;

fn with_values(a: &Csr<f64>, values: &[f64]) -> Csr<f64> {
    let mut a = a.clone();
    a.values_mut().copy_from_slice(values);
    a
}

/// All products as bits.
fn products(op: &Operator<f64>) -> Vec<u128> {
    let (x, k) = (vector::<f64>(op.cols().max(op.rows()) * 3), 3);
    let (mut y, mut many) = (vec![0.0; op.rows()], vec![0.0; op.rows() * k]);
    op.apply(&x[..op.cols()], &mut y).unwrap();
    op.apply_many(&x[..op.cols() * k], &mut many, k, Layout::RowMajor).unwrap();
    bits(&[y, many].concat())
}

#[test]
fn new_values_give_the_bits_of_a_new_operator() {
    for name in MATRICES {
        for expected_products in [1, 1_000_000] {
            let a = matrix::<f64>(name);
            let builder = Operator::builder(a.clone()).expected_products(expected_products);
            let mut op = builder.threads(2).rates(Rates::typical()).build().unwrap();
            for factor in [0.3, 1.7] {
                products(&op);
                let values: Vec<f64> =
                    (0..a.nnz()).map(|i| (i as f64 * factor).cos() + 2.0).collect();
                op.set_values(&values).unwrap();
                let new = with_values(&a, &values);
                assert_eq!(**op.matrix(), new);
                let recipe = op.recipe().clone();
                let new = Operator::builder(new).recipe(recipe).build().unwrap();
                assert_eq!(products(&op), products(&new), "{name}: {}", op.recipe());
                // The same without a copy.
                let mut swapped: Vec<f64> = values.iter().map(|value| -value).collect();
                let (negative, place) = (with_values(&a, &swapped), swapped.as_ptr());
                op.swap_values(&mut swapped).unwrap();
                assert_eq!((&**op.matrix(), swapped), (&negative, values), "{name}");
                assert_eq!(op.matrix().values().as_ptr(), place, "{name}");
                let recipe = op.recipe().clone();
                let new = Operator::builder(negative).recipe(recipe).build().unwrap();
                assert_eq!(products(&op), products(&new), "{name}: {}", op.recipe());
            }
        }
    }
}

/// Each kernel takes the values without another plan: in place, with no more memory than before.
#[test]
fn plans_take_new_values_in_place() {
    let a = matrix::<f64>("stencil27[n=14]");
    let symmetric = |seed: f64| {
        let value = |(row, col, _): (usize, usize, &f64)| ((row * col) as f64 * seed).sin();
        a.iter().map(value).collect::<Vec<f64>>()
    };
    for kernel in [
        "csr-nnz-balanced",
        "dcsr-rows",
        "csr-compact",
        "sell-compact",
        "sell-symmetric",
        "sell-tiles",
        "bsr-rows[block=2]",
    ] {
        let recipe: spm::Recipe = format!("cpu {kernel} on 2 threads").parse().unwrap();
        let build = |values: &[f64]| {
            let builder = Operator::builder(with_values(&a, values)).recipe(recipe.clone());
            builder.build().unwrap()
        };
        let mut op = build(&symmetric(0.1));
        products(&op);
        let (before, place) = (op.describe(), op.matrix().values().as_ptr());
        let values = symmetric(0.2);
        op.set_values(&values).unwrap();
        let after = op.describe();
        // The plan with three columns is still there: it counts in the memory.
        assert_eq!(op.matrix().values().as_ptr(), place, "{kernel}");
        assert_eq!((after.memory_bytes, after.reason), (before.memory_bytes, spm::Reason::Recipe));
        assert_eq!(products(&op), products(&build(&values)), "{kernel}");
        op.set_matrix(with_values(&a, &symmetric(0.3))).unwrap();
        assert_eq!(products(&op), products(&build(&symmetric(0.3))), "{kernel}");
    }
}

#[test]
fn the_transposed_copy_gets_new_values_too() {
    let a = matrix::<f64>(MATRICES[3]);
    let x = vector::<f64>(a.rows());
    for deterministic in [false, true] {
        let builder =
            Operator::builder(a.clone()).rates(Rates::typical()).expected_products(10_000);
        let builder = if deterministic { builder.deterministic() } else { builder };
        let mut op = builder.build().unwrap();
        let mut y = vec![0.0; a.cols()];
        op.apply_transpose(&x, &mut y).unwrap();
        // With the clock there is a copy or none.
        assert!(op.describe().transposed_recipe.is_some() || !deterministic);
        let values = vector::<f64>(a.nnz());
        op.set_values(&values).unwrap();
        let expected = scaled(&transposed(&with_values(&a, &values)), 1.0, &x, 0.0, &y);
        for _ in 0..3 {
            op.apply_transpose(&x, &mut y).unwrap();
            accept("new values", &y, &expected);
        }
    }
}

#[test]
fn clones_keep_the_former_values() {
    let a = matrix::<f64>(MATRICES[2]);
    let mut op = Operator::new(a.clone()).unwrap();
    let former = op.clone();
    let expected = products(&op);
    op.set_values(&vec![1.0; a.nnz()]).unwrap();
    assert_eq!(products(&former), expected);
    assert_ne!(products(&op), expected);
    assert_eq!(**former.matrix(), a);
    let mut values = vec![2.0; a.nnz()];
    let (mut op, second) = (former.clone(), op);
    op.swap_values(&mut values).unwrap();
    assert_eq!((values, op.matrix().values()), (a.values().to_vec(), &*vec![2.0; a.nnz()]));
    assert_eq!(products(&former), expected);
    assert!(second.matrix().values().iter().all(|&value| value == 1.0));
}

#[test]
fn a_matrix_with_the_same_pattern_is_taken_in_any_form() {
    let a = matrix::<f64>(MATRICES[4]);
    let new = with_values(&a, &vector(a.nnz()));
    let mut op = Operator::new(a.clone()).unwrap();
    op.set_matrix(convert::csr_to_csc(new.view())).unwrap();
    assert_eq!(**op.matrix(), new);
    let other = op.set_matrix(matrix::<f64>("uniform[rows=9000,cols=300,entries=19999]"));
    assert!(matches!(other, Err(Error::Pattern)), "{other:?}");
    let error = op.set_values(&[1.0]).unwrap_err();
    let Error::Shape { what: "values", found: 1, .. } = error else { panic!("{error:?}") };
    let mut too_few = vec![1.0];
    assert!(matches!(op.swap_values(&mut too_few), Err(Error::Shape { what: "values", .. })));
    assert_eq!((&**op.matrix(), too_few), (&new, vec![1.0]));
}

/// The kernel keeps one half of a symmetric matrix; the new values are not symmetric.
#[test]
fn values_that_the_kernel_refuses_are_multiplied_from_csr() {
    let a = matrix::<f64>("stencil27[n=14]");
    let mut symmetric = a.clone();
    symmetric.values_mut().fill(0.5);
    let recipe = "cpu sell-symmetric on 2 threads".parse().unwrap();
    let mut op = Operator::builder(symmetric).recipe(recipe).build().unwrap();
    assert!(op.recipe().kernel().starts_with("sell-symmetric"), "{}", op.recipe());
    let values = vector::<f64>(a.nnz());
    let mut swapped = values.clone();
    op.swap_values(&mut swapped).unwrap();
    assert!(swapped.iter().all(|&value| value == 0.5));
    assert_eq!(op.describe().reason, spm::Reason::NewValues);
    let (x, mut y) = (vector::<f64>(a.cols()), vec![f64::NAN; a.rows()]);
    op.apply(&x, &mut y).unwrap();
    accept("new values", &y, &scaled(&with_values(&a, &values), 1.0, &x, 0.0, &y.clone()));
}

#[test]
fn values_are_written_in_place_where_nobody_else_reads_them() {
    let a = matrix::<f64>(MATRICES[2]);
    let mut op = Operator::new(a.clone()).unwrap();
    let place = op.matrix().values().as_ptr();
    op.set_values(&vec![1.0; a.nnz()]).unwrap();
    assert_eq!(op.matrix().values().as_ptr(), place);
    let other = std::sync::Arc::clone(op.matrix());
    op.set_values(&vec![2.0; a.nnz()]).unwrap();
    assert_ne!(op.matrix().values().as_ptr(), place);
    assert!(other.values().iter().all(|&value| value == 1.0));
}
