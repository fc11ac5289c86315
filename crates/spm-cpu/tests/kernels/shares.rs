//! Matrices of which threads have several shares each, so that one that is done takes those of others.

use std::sync::Arc;

use crate::common::{LAYOUTS, csr, equal, planned};
use spm_cpu::{PlanOptions, spmm, spmv};
use spm_formats::kernel::ProductPlan;
use spm_formats::{Csr, DenseShape, NewValues};
use spm_testing::edge_cases::generated;
use spm_testing::exact::{self, Whole};
use spm_testing::reference::{self, Reference};

/// Enough entries for several shares of two threads: dense blocks, and rows of all lengths.
const MATRICES: [&str; 2] =
    ["blocks[n=10,block=3]", "powerlaw[rows=20000,cols=9000,entries=180000,longest=5000]"];
const LEAST: usize = 2 * 8 * 8192;

/// A product, again, and with new values.
fn check(label: &str, mut plan: spmv::BoxedPlan<'_, f64>, a: &Csr<f64>, expected: &Reference<f64>) {
    let (x, rows) = (exact::vector(a.cols() * plan.dense().k), a.rows() * plan.dense().k);
    let product = |plan: &dyn ProductPlan<f64>| {
        let mut y = vec![f64::NAN; rows];
        plan.run(&x, &mut y).unwrap();
        y
    };
    let y = product(&*plan);
    equal(label, &y, expected);
    assert_eq!(product(&*plan), y, "{label}, again");
    let doubled = Arc::new(a.values().iter().map(|value| 2.0 * value).collect());
    plan.set_values(NewValues::Shared(&doubled)).unwrap();
    let twice: Vec<f64> = y.iter().map(|y| 2.0 * y).collect();
    assert_eq!(product(&*plan), twice, "{label}, new values");
}

#[test]
fn every_kernel_that_threads_share() {
    let options = PlanOptions::with_threads(2);
    for name in MATRICES {
        let a = exact::matrix(&generated::<f64>(name), Whole::Wide);
        let matrix = csr(&a);
        assert!(matrix.nnz() >= LEAST, "{name}: {} entries", matrix.nnz());
        let expected = reference::spmv(&a, &exact::vector(a.cols()));
        let ids = [
            "csr-nnz-balanced",
            "csr-merge",
            "csr-compact",
            "bsr-rows",
            "dcsr-rows",
            "sell-compact",
            "sell-tiles",
        ];
        for id in ids {
            let kernel = spmv::find::<f64>(id).unwrap();
            let parameters = kernel.info.defaults();
            let plan = kernel.plan(&matrix, &parameters, &options);
            let Some(plan) = planned(id, plan) else { continue };
            check(&format!("{id}, {name}"), plan, &matrix, &expected);
        }
        for layout in LAYOUTS {
            let dense = DenseShape { k: 11, layout };
            let expected = reference::spmm(&a, &exact::vector(a.cols() * dense.k), dense);
            for id in ["csr-blocked", "bsr-blocked"] {
                let kernel = spmm::find::<f64>(id).unwrap();
                for parameters in kernel.info.variants() {
                    let label = format!("{}, {name}, {layout:?}", kernel.info.label(&parameters));
                    let plan = kernel.plan(&matrix, dense, &parameters, &options);
                    let Some(plan) = planned(&label, plan) else { continue };
                    check(&label, plan, &matrix, &expected);
                }
            }
        }
    }
}
