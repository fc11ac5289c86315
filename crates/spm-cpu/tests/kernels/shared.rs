//! Plans that many threads run at once, and plans that own their matrix.

use std::sync::{Arc, Barrier};
use std::thread;

use crate::common::{LAYOUTS, bits, csr, equal, planned};
use spm_cpu::{PlanOptions, spmm, spmv};
use spm_formats::kernel::Scaling;
use spm_formats::{Csr, DenseShape, convert};
use spm_testing::edge_cases::{long_rows, vector};
use spm_testing::exact::{self, Whole};
use spm_testing::{generate, reference};

const CALLERS: usize = 4;
const ROUNDS: usize = 8;
const SCALING: Scaling<f64> = Scaling::new(-1.5, 0.25);

fn matrices() -> [Csr<f64>; 3] {
    let named = |name| generate::named(name).unwrap().generate().unwrap();
    let a: Csr<f64> = csr(&long_rows());
    let long = a.map(|value| *value);
    [named("stencil27[n=8]"), named("uniform[rows=3000,cols=2000,entries=30000]"), long]
}

/// Every caller multiplies an x of its own, time and again, and has to get the bits that it gets
/// alone. `product` writes both A x and -1.5 A x + 0.25 y.
fn check_callers(label: &str, length: usize, product: impl Fn(&[f64]) -> Vec<f64> + Sync) {
    let operand = |caller: usize| vector(length).iter().map(|x: &f64| x + caller as f64).collect();
    let operands: [Vec<f64>; CALLERS] = std::array::from_fn(operand);
    let alone = operands.each_ref().map(|x| bits(&product(x)));
    let start = Barrier::new(CALLERS);
    thread::scope(|scope| {
        for (x, alone) in operands.iter().zip(&alone) {
            let (product, start) = (&product, &start);
            scope.spawn(move || {
                start.wait();
                for _ in 0..ROUNDS {
                    assert!(bits(&product(x)) == *alone, "{label}");
                }
            });
        }
    });
}

#[test]
fn callers_at_once_get_the_bits_that_they_get_alone() {
    let options = PlanOptions::with_threads(2);
    for a in matrices() {
        for kernel in spmv::registry::<f64>() {
            let label = kernel.info.id;
            let plan = kernel.plan(&a, &kernel.info.defaults(), &options);
            let Some(plan) = planned(label, plan) else { continue };
            check_callers(label, a.cols(), |x| {
                let mut y = vec![f64::NAN; a.rows()];
                plan.run(x, &mut y).unwrap();
                let mut scaled = y.clone();
                plan.run_scaled(SCALING, x, &mut scaled).unwrap();
                [y, scaled].concat()
            });
        }
        let k = 5;
        for (kernel, layout) in
            spmm::registry::<f64>().iter().flat_map(|kernel| LAYOUTS.map(|layout| (kernel, layout)))
        {
            let label = format!("{} {layout:?}", kernel.info.id);
            let dense = DenseShape { k, layout };
            let plan = kernel.plan(&a, dense, &kernel.info.defaults(), &options);
            let Some(plan) = planned(&label, plan) else { continue };
            check_callers(&label, a.cols() * k, |x| {
                let mut y = vec![f64::NAN; a.rows() * k];
                plan.run(x, &mut y).unwrap();
                let mut scaled = y.clone();
                plan.run_scaled(SCALING, x, &mut scaled).unwrap();
                [y, scaled].concat()
            });
        }
    }
}

/// A struct as a user writes it: the plan without a lifetime.
struct Solver {
    spmv: spmv::BoxedPlan<'static, f64>,
    spmm: spmm::BoxedPlan<'static, f64>,
}

#[test]
fn a_plan_keeps_its_matrix_alive_and_moves_to_another_thread() {
    let pattern = generate::named("stencil5[n=30]").unwrap().generate::<f64>().unwrap();
    let coo = exact::matrix(&convert::csr_to_coo(pattern.view()), Whole::Wide);
    let x = exact::vector(coo.cols());
    let expected = reference::spmv(&coo, &x);
    let options = PlanOptions::with_threads(2);
    let dense = DenseShape { k: 2, layout: LAYOUTS[1] };
    let block = spmm::find("csr-blocked").unwrap();
    for kernel in spmv::registry::<f64>() {
        let a = Arc::new(csr(&coo));
        let plan = kernel.plan(&a, &kernel.info.defaults(), &options);
        let Some(spmv) = crate::common::planned(kernel.info.id, plan) else { continue };
        let solver =
            Solver { spmv, spmm: block.plan(&a, dense, &block.info.defaults(), &options).unwrap() };
        drop(a);
        let two = [&x[..], &x[..]].concat();
        let (y, z) = thread::spawn(move || {
            let (mut y, mut z) = (vec![f64::NAN; two.len() / 2], vec![f64::NAN; two.len()]);
            solver.spmv.run(&two[..two.len() / 2], &mut y).unwrap();
            solver.spmm.run(&two, &mut z).unwrap();
            (y, z)
        })
        .join()
        .unwrap();
        equal(kernel.info.id, &y, &expected);
        assert_eq!(z, [&y[..], &y[..]].concat(), "{}", kernel.info.id);
    }
}

#[test]
fn a_shared_matrix_is_not_copied() {
    let a = Arc::new(matrices()[1].clone());
    let kernel = spmv::find("csr-merge").unwrap();
    let options = PlanOptions::with_threads(1);
    let plan = kernel.plan(&a, &kernel.info.defaults(), &options).unwrap();
    assert_eq!(Arc::strong_count(&a), 2);
    assert!(plan.footprint().plan_bytes < 1000);
}
