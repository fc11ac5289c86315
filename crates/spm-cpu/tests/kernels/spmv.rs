//! Every SpMV kernel of the registry against the reference: hand-made matrices, then seeded random
//! ones larger than any SIMD width, for several thread pool sizes and every studied parameter value.

use std::collections::BTreeSet;

use crate::common::{Judge, csr, equal, matrices, planned, within_bound};
use proptest::prelude::*;
use spm_cpu::{PlanOptions, spmv};
use spm_formats::kernel::RunError;
use spm_formats::{Complex, Coo, Scalar};
use spm_testing::edge_cases::{generated, long_rows, vector};
use spm_testing::exact::{self, Whole};
use spm_testing::reference;

/// The kernel that only square matrices have.
const SYMMETRIC: &str = "sell-symmetric";

/// Checks every kernel; the ids of those that refused the matrix come back.
fn check_all<T: Scalar>(a: &Coo<T>, x: &[T]) -> BTreeSet<&'static str> {
    check_all_by(within_bound, a, x)
}

/// Every kernel on the pattern of `a` with whole numbers of each kind: the very sums.
fn check_all_exactly<T: Scalar>(a: &Coo<T>) {
    for kind in Whole::ALL {
        check_all_by(equal, &exact::matrix(a, kind), &exact::vector(a.cols()));
    }
}

fn check_all_by<T: Scalar>(judge: Judge<T>, a: &Coo<T>, x: &[T]) -> BTreeSet<&'static str> {
    let mut refused = BTreeSet::new();
    let expected = reference::spmv(a, x);
    let matrix = csr(a);
    for threads in [1, 2, 5] {
        let options = PlanOptions::with_threads(threads);
        for kernel in spmv::registry::<T>() {
            for parameters in kernel.info.variants() {
                let label = format!("{} on {threads} threads", kernel.info.label(&parameters));
                let plan = kernel.plan(matrix.view(), &parameters, &options);
                let Some(plan) = planned(&label, plan) else {
                    refused.insert(kernel.info.id);
                    continue;
                };
                let (footprint, vectors) = (plan.footprint(), (a.rows() + a.cols()) * T::BYTES);
                assert_eq!(
                    footprint.bytes_moved,
                    footprint.matrix_bytes + vectors as u64,
                    "{label}"
                );
                let mut y = vec![T::from_f64(f64::NAN); a.rows()];
                plan.run(x, &mut y).unwrap();
                judge(&label, &y, &expected);
                let mut again = vec![T::ZERO; a.rows()];
                plan.run(x, &mut again).unwrap();
                let same = y.iter().zip(&again).all(|(a, b)| a.to_bits128() == b.to_bits128());
                assert!(same, "{label}: two runs differ: {y:?} {again:?}");
            }
        }
    }
    refused
}

#[test]
fn hand_made_matrices() {
    type Entries = &'static [(u32, u32, f64)];
    let cases: [(usize, usize, Entries); 7] = [
        (0, 0, &[]),
        (0, 3, &[]),
        (3, 0, &[]),
        (2, 2, &[]),
        (1, 1, &[(0, 0, -2.5)]),
        (3, 3, &[(0, 0, 1.), (0, 2, 2.), (1, 1, 3.), (2, 0, 4.), (2, 2, 5.)]),
        (5, 2, &[(0, 1, 1.), (2, 0, 0.), (2, 1, 3.), (4, 0, -1.)]),
    ];
    for (rows, cols, entries) in cases {
        let (r, (c, v)) = entries.iter().map(|&(r, c, v)| (r, (c, v))).unzip();
        let a = Coo::new(rows, cols, r, c, v).unwrap();
        let x: Vec<f64> = (0..cols).map(|j| 10_f64.powi(j as i32)).collect();
        check_all(&a, &x);
    }
}

#[test]
fn wrong_lengths_are_errors() {
    let a = csr(&Coo::<f64>::empty(2, 3).unwrap());
    for kernel in spmv::registry() {
        let options = PlanOptions::with_threads(2);
        let plan = kernel.plan(a.view(), &kernel.info.defaults(), &options);
        let Some(plan) = planned(kernel.info.id, plan) else { continue };
        let short_x = plan.run(&[0.0; 2], &mut [0.0; 2]);
        assert_eq!(short_x, Err(RunError::Shape { what: "x", expected: 3, found: 2 }));
        let long_y = plan.run(&[0.0; 3], &mut [0.0; 3]);
        assert_eq!(long_y, Err(RunError::Shape { what: "y", expected: 2, found: 3 }));
    }
}

#[test]
fn one_long_row_among_short_ones() {
    let mut entries: Vec<(u32, u32)> = (0..40).map(|i| (i, (i * 7) % 40)).collect();
    entries.extend((0..70_000).map(|j| (25, j)));
    entries.sort_unstable();
    entries.dedup();
    let (r, c): (Vec<u32>, Vec<u32>) = entries.into_iter().unzip();
    let values = vec![1.0; r.len()];
    check_all_exactly::<f32>(&Coo::new(40, 70_000, r, c, values).unwrap());
}

/// Rows of more than 64 entries in both tiles of 65536 columns, which `sell-tiles` stores by themselves; in
/// most of them the last vector is not whole.
#[test]
fn rows_that_are_long_in_two_tiles() {
    check_all_exactly::<f64>(&generated("uniform[rows=40,cols=131072,entries=6000]"));
}

/// Complex matrices have the kernels that multiply straight from CSR, and dense blocks.
#[test]
fn complex_matrices() {
    let ids = |kernels: Vec<spmv::SpmvKernel<Complex<f32>>>| -> Vec<&str> {
        kernels.iter().map(|kernel| kernel.info.id).collect()
    };
    let expected = [
        "csr-serial",
        "csr-rows",
        "csr-nnz-balanced",
        "bsr-rows",
        "csr-merge",
        "dcsr-rows",
        "auto",
    ];
    assert_eq!(ids(spmv::registry()), expected);
    check_all_exactly::<Complex<f32>>(&long_rows());
    check_all_exactly::<Complex<f64>>(&long_rows());
    for name in ["stencil5[n=20]", "uniform[rows=300,cols=200,entries=2000]"] {
        let a = generated::<Complex<f64>>(name);
        check_all(&a, &vector(a.cols()));
    }
}

#[test]
fn rows_that_are_cut() {
    check_all_exactly::<f32>(&long_rows());
    check_all_exactly::<f64>(&long_rows());
}

/// Up to nine neighbours with the same columns, as the unknowns of a node have.
#[test]
fn rows_with_the_same_columns() {
    for block in [2, 6, 9] {
        let columns = |row: u32| (0..12).map(move |i| (row / block * 3 + i * i * 5) % 700);
        let entries: BTreeSet<(u32, u32)> =
            (0..200).flat_map(|row| columns(row).map(move |col| (row, col))).collect();
        let (r, c): (Vec<u32>, Vec<u32>) = entries.into_iter().unzip();
        let values = vec![1.0; r.len()];
        check_all_exactly::<f64>(&Coo::new(200, 700, r, c, values).unwrap());
    }
}

/// Two unknowns a node: pairs of rows with the same columns, which come in pairs; one node has them not.
#[test]
fn pairs_of_rows_with_pairs_of_columns() {
    for nodes in [45_u32, 40_000] {
        let of_node =
            |node: u32| (0..node * 7 % 6).map(move |i| (node * 31 + i * i * 1997) % nodes);
        let mut entries = BTreeSet::new();
        for (node, other) in (0..53).flat_map(|node| of_node(node).map(move |other| (node, other)))
        {
            entries.extend([0, 1].map(|i| (2 * node + i / 2, 2 * other + i % 2)));
            entries.extend([2, 3].map(|i| (2 * node + i / 2, 2 * other + i % 2)));
        }
        // The last pair of columns, in a row without others.
        entries.extend([
            (0, 2 * nodes - 2),
            (0, 2 * nodes - 1),
            (1, 2 * nodes - 2),
            (1, 2 * nodes - 1),
        ]);
        entries.pop_last();
        let (r, c): (Vec<u32>, Vec<u32>) = entries.into_iter().unzip();
        let cols = 2 * nodes as usize;
        let values = (0..r.len()).map(|i| (i as f64 * 0.3).cos()).collect();
        let a = Coo::new(106, cols, r.clone(), c.clone(), values).unwrap();
        check_all_exactly::<f64>(&a);
        let ones = Coo::new(106, cols, r, c, vec![1.0_f32; a.entries()]).unwrap();
        check_all_exactly::<f32>(&ones);
        let mut x = vector(cols);
        (x[0], x[5], x[cols - 1]) = (f64::INFINITY, f64::NAN, f64::NEG_INFINITY);
        check_all(&a, &x);
    }
}

/// Rows of 0 to 22 entries spread over `cols` columns.
fn ragged(rows: usize, cols: usize, value: impl Fn(usize) -> f64) -> Coo<f64> {
    let mut entries = BTreeSet::new();
    for i in 0..rows {
        let length = if i % 11 == 0 { 22 } else { i * 7 % 6 };
        entries.extend((0..length).map(|s| (i as u32, ((i * 31 + s * s * 1997) % cols) as u32)));
    }
    let (r, c): (Vec<u32>, Vec<u32>) = entries.into_iter().unzip();
    let v = (0..r.len()).map(value).collect();
    Coo::new(rows, cols, r, c, v).unwrap()
}

#[test]
fn infinities_and_nans_reach_their_rows_and_no_others() {
    let a = ragged(100, 60, |i| if i == 77 { f64::INFINITY } else { (i as f64 * 0.3).cos() });
    for special in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let mut x = vector(60);
        x[0] = special;
        x[31] = special;
        x[59] = special;
        check_all(&a, &x);
    }
}

#[test]
fn equal_values() {
    for value in [1.0, -0.37, 1e-300, f64::INFINITY] {
        check_all(&ragged(300, 250, |_| value), &vector(250));
    }
    // The sum of x alone would overflow.
    let x: Vec<f64> = vector::<f64>(250).iter().map(|x| x * f64::MAX).collect();
    check_all(&ragged(300, 250, |_| 1e-10), &x);
}

/// Few enough for registers, and for a table.
#[test]
fn few_distinct_values() {
    for distinct in [5, 60] {
        let a = ragged(300, 250, |i| (i * 7919 % distinct) as f64 - 2.0);
        let mut x = vector(250);
        check_all(&a, &x);
        (x[0], x[31]) = (f64::INFINITY, f64::NAN);
        check_all(&a, &x);
    }
}

#[test]
fn columns_far_apart() {
    check_all(&ragged(200, 1_000_000, |i| (i as f64).sqrt() - 9.0), &vector(1_000_000));
}

/// A 7-point stencil on an n x n x n cube without boundaries in two directions.
fn stencil7(n: i64, value: impl Fn(i64, i64) -> f64) -> Coo<f64> {
    let (mut r, mut c, mut v) = (vec![], vec![], vec![]);
    for i in 0..n * n * n {
        for offset in [-n * n, -n, -1, 0, 1, n, n * n] {
            if (0..n * n * n).contains(&(i + offset)) {
                r.push(i as u32);
                c.push((i + offset) as u32);
                v.push(value(i, i + offset));
            }
        }
    }
    let size = (n * n * n) as usize;
    Coo::new(size, size, r, c, v).unwrap()
}

#[test]
fn constant_diagonals() {
    let refused = check_all(&stencil7(9, |i, j| (i * (j - i) % 17) as f64 + 0.25), &vector(729));
    assert!(refused.contains(SYMMETRIC), "these values are not symmetric");
}

#[test]
fn symmetric_stencils() {
    for n in [3, 8, 9] {
        let a = stencil7(n, |i, j| ((i + j) % 17) as f64 - 3.3 + ((i * j) % 5) as f64);
        let mut x = vector(a.cols());
        let refused = check_all(&a, &x);
        assert!(!refused.contains(SYMMETRIC), "n = {n}");
        x[a.cols() / 2] = f64::INFINITY;
        x[1] = f64::NAN;
        check_all(&a, &x);
    }
}

/// A diagonal, and a row and a column with entries that do not lie side by side: 66 000 runs of
/// stored elements in one chunk of `sell-symmetric`.
#[test]
fn an_arrowhead() {
    let size = 720_000_u32;
    let tip = |i: u32| i > 0 && i.is_multiple_of(10) && i <= 660_000;
    let mut entries: Vec<(u32, u32)> = vec![(0, 0)];
    entries.extend((0..size).filter(|&j| tip(j)).map(|j| (0, j)));
    for i in 1..size {
        if tip(i) {
            entries.push((i, 0));
        }
        entries.push((i, i));
    }
    let (r, c): (Vec<u32>, Vec<u32>) = entries.into_iter().unzip();
    let values = vec![1.0; r.len()];
    let a = Coo::new(size as usize, size as usize, r, c, values).unwrap();
    let (a, x) = (exact::matrix(&a, Whole::Wide), exact::vector(size as usize));
    let matrix = csr(&a);
    let expected = reference::spmv(&a, &x);
    for (id, threads) in [("sell-symmetric", 1), ("sell-symmetric", 2), ("auto", 1)] {
        let kernel = spmv::find::<f64>(id).unwrap();
        let options = PlanOptions::with_threads(threads);
        let label = format!("{id} on {threads} threads");
        let plan = kernel.plan(matrix.view(), &kernel.info.defaults(), &options);
        if let Some(plan) = planned(&label, plan) {
            let mut y = vec![f64::NAN; size as usize];
            plan.run(&x, &mut y).unwrap();
            equal(&format!("{label}, {:?}", plan.choice()), &y, &expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_matrices(a in matrices(200, 2000)) {
        check_all::<f64>(&a, &vector(a.cols()));
    }
}
