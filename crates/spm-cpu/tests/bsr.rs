//! `bsr-rows` on matrices of dense blocks, with holes and without, in blocks of any size.

mod common;

use std::collections::BTreeSet;

use common::csr;
use spm_cpu::{PlanOptions, spmv};
use spm_formats::kernel::Scaling;
use spm_formats::{Coo, Csr, Scalar};
use spm_testing::exact::{self, Whole};
use spm_testing::{edge_cases, reference};

/// Up to six blocks in each of 17 block rows of 11 block columns; (rows, columns) fewer than whole blocks
/// have at the end, and every 13th entry missing where there are holes.
fn blocked<T: Scalar>(size: u32, fewer: (u32, u32), holes: bool) -> Coo<T> {
    let (rows, cols) = (17 * size - fewer.0, 11 * size - fewer.1);
    let mut entries = BTreeSet::new();
    for row in 0..rows {
        let block_row = row / size;
        for block in 0..(block_row * 5 + 2) % 7 {
            let first = (block_row * 3 + block * block * 2) % 11 * size;
            entries.extend((first..cols.min(first + size)).map(|col| (row, col)));
        }
    }
    let kept = entries.into_iter().filter(|(row, col)| !holes || (row * 7 + col * 3) % 13 > 0);
    let pattern = edge_cases::with_entries((rows as usize, cols as usize), kept);
    exact::matrix(&pattern, Whole::Wide)
}

/// Calls `check` with the label and a product of each way to compute y = A x.
fn products<T: Scalar>(
    a: &Csr<T>,
    size: usize,
    check: impl Fn(&str, &spm_cpu::spmv::BoxedPlan<T>),
) {
    let kernel = spmv::find::<T>("bsr-rows").unwrap();
    for threads in [1, 3] {
        for prefetch in ["on", "off"] {
            let text = format!("block={size},prefetch={prefetch}");
            let parameters = kernel.info.parse_parameters(&text).unwrap();
            let plan = kernel.plan(a, &parameters, &PlanOptions::with_threads(threads)).unwrap();
            check(&format!("{text} on {threads} threads, {:?}", a.shape()), &plan);
        }
    }
}

fn check<T: Scalar>(a: &Coo<T>, size: usize) {
    let (matrix, x) = (csr(a), exact::vector(a.cols()));
    let expected = reference::spmv(a, &x);
    products(&matrix, size, |label, plan| {
        let mut y = vec![T::from_f64(f64::NAN); a.rows()];
        plan.run(&x, &mut y).unwrap();
        assert_eq!(exact::difference(&y, &expected), None, "{label}");
        // y = 2 A x - y, exact too.
        let scaling = Scaling::new(T::from_f64(2.0), T::from_f64(-1.0));
        let mut scaled = y.clone();
        plan.run_scaled(scaling, &x, &mut scaled).unwrap();
        assert_eq!(scaled, y, "{label}");
    });
}

#[test]
fn blocks_of_any_size() {
    for size in [1, 2, 3, 4, 5, 6, 7, 8, 9, 20] {
        for fewer in [(0, 0), (size - 1, 0), (0, size - 1), (size / 2, size / 3)] {
            for holes in [false, true] {
                check::<f64>(&blocked(size, fewer, holes), size as usize);
                check::<f32>(&blocked(size, fewer, holes), size as usize);
            }
        }
        // Blocks that are not those of the matrix.
        check::<f64>(&blocked(3, (1, 2), false), size as usize);
    }
}

#[test]
fn infinite_elements_reach_the_rows_that_have_them() {
    for size in [2, 3, 6, 9] {
        for (fewer, holes) in [((0, 0), false), ((0, 0), true), ((1, 1), true)] {
            let a: Coo<f64> = blocked(size, fewer, holes);
            let matrix = csr(&a);
            let mut x = exact::vector::<f64>(a.cols());
            x[1] = f64::INFINITY;
            x[a.cols() - 1] = f64::NAN;
            let expected = reference::spmv(&a, &x);
            products(&matrix, size as usize, |label, plan| {
                let mut y = vec![0.0; a.rows()];
                plan.run(&x, &mut y).unwrap();
                let errors = reference::compare(&y, &expected);
                assert!(errors.acceptable(), "{label}: {errors:?}");
            });
        }
    }
}

#[test]
fn the_size_is_detected() {
    let kernel = spmv::find::<f64>("bsr-rows").unwrap();
    for size in [2, 3, 4, 5, 6, 8] {
        let a = csr(&blocked::<f64>(size, (0, 0), false));
        let bytes = |text: &str| {
            let parameters = kernel.info.parse_parameters(text).unwrap();
            let plan = kernel.plan(&a, &parameters, &PlanOptions::with_threads(1)).unwrap();
            plan.footprint().matrix_bytes
        };
        assert_eq!(bytes(""), bytes(&format!("block={size}")), "{size}");
        let (blocks, block_rows) = (a.nnz() as u64 / u64::from(size * size), 17);
        assert_eq!(bytes(""), 8 * a.nnz() as u64 + 4 * (blocks + block_rows + 1), "{size}");
    }
}
