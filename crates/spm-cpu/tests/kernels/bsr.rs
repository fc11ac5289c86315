//! `bsr-rows` and `bsr-blocked` on matrices of dense blocks, with holes and without, in blocks of any size.

use crate::common::{LAYOUTS, csr};
use spm_cpu::{PlanOptions, spmm, spmv};
use spm_formats::kernel::Scaling;
use spm_formats::{Complex, Coo, Csr, DenseShape, Scalar};
use spm_testing::edge_cases::blocks;
use spm_testing::{exact, reference};

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
                check::<f64>(&blocks(size, fewer, holes), size as usize);
                check::<f32>(&blocks(size, fewer, holes), size as usize);
            }
        }
        // Blocks that are not those of the matrix.
        check::<f64>(&blocks(3, (1, 2), false), size as usize);
        check::<Complex<f64>>(&blocks(size, (size / 2, size / 3), true), size as usize);
        check::<Complex<f32>>(&blocks(size, (0, 0), false), size as usize);
    }
}

/// Y = A X in blocks of a size, in both layouts, and Y = 2 A X - Y.
fn check_many<T: Scalar>(a: &Coo<T>, size: usize, widths: &[usize], infinite: bool) {
    let (matrix, kernel) = (csr(a), spmm::find::<T>("bsr-blocked").unwrap());
    for &k in widths {
        for (layout, threads) in LAYOUTS.into_iter().zip([1, 3]) {
            let dense = DenseShape { k, layout };
            let mut x = exact::vector(a.cols() * k);
            if infinite {
                x.iter_mut().step_by(29).for_each(|x| *x = T::from_f64(f64::INFINITY));
            }
            let expected = reference::spmm(a, &x, dense);
            for text in ["", "prefetch=8,stream=on"] {
                let text = format!("block={size},{text}");
                let parameters = kernel.info.parse_parameters(text.trim_matches(',')).unwrap();
                let options = PlanOptions::with_threads(threads);
                let plan = kernel.plan(&matrix, dense, &parameters, &options).unwrap();
                let label = format!("{text}, {dense:?}, {:?}", matrix.shape());
                let mut y = vec![T::from_f64(f64::NAN); a.rows() * k];
                plan.run(&x, &mut y).unwrap();
                if infinite {
                    let errors = reference::compare(&y, &expected);
                    assert!(errors.acceptable(), "{label}: {errors:?}");
                    continue;
                }
                assert_eq!(exact::difference(&y, &expected), None, "{label}");
                let scaling = Scaling::new(T::from_f64(2.0), T::from_f64(-1.0));
                let mut scaled = y.clone();
                plan.run_scaled(scaling, &x, &mut scaled).unwrap();
                assert_eq!(scaled, y, "{label}");
            }
        }
    }
}

#[test]
fn many_columns_and_blocks_of_any_size() {
    for size in [1, 2, 3, 4, 5, 6, 7, 8] {
        for fewer in [(0, 0), (size - 1, 0), (0, size - 1)] {
            for holes in [false, true] {
                let a = blocks::<f64>(size, fewer, holes);
                check_many(&a, size as usize, &[2, 13, 56], false);
            }
        }
        check_many::<f32>(&blocks(size, (1, 0), true), size as usize, &[3, 16, 100], false);
        check_many::<Complex<f64>>(&blocks(size, (0, 0), false), size as usize, &[4, 17], false);
        check_many::<f64>(&blocks(size, (1, 0), true), size as usize, &[3, 16], true);
    }
}

#[test]
fn infinite_elements_reach_the_rows_that_have_them() {
    for size in [2, 3, 6, 9] {
        for (fewer, holes) in [((0, 0), false), ((0, 0), true), ((1, 1), true)] {
            let a: Coo<f64> = blocks(size, fewer, holes);
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
        let a = csr(&blocks::<f64>(size, (0, 0), false));
        let bytes = |text: &str| {
            let parameters = kernel.info.parse_parameters(text).unwrap();
            let plan = kernel.plan(&a, &parameters, &PlanOptions::with_threads(1)).unwrap();
            plan.footprint().matrix_bytes
        };
        assert_eq!(bytes(""), bytes(&format!("block={size}")), "{size}");
        let (count, block_rows) = (a.nnz() as u64 / u64::from(size * size), 17);
        assert_eq!(bytes(""), 8 * a.nnz() as u64 + 4 * (count + block_rows + 1), "{size}");
    }
}
