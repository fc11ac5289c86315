//! A run allocates nothing, whatever the kernel, on no thread of the thread pool.

mod common;

use common::LAYOUTS;
use spm_cpu::{PlanOptions, spmm, spmv, transpose, transposed};
use spm_formats::DenseShape;
use spm_formats::kernel::{Scaling, TransposeOutput};
use spm_testing::allocations::{Counting, of_all_threads};
use spm_testing::edge_cases::vector;
use spm_testing::generate;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SCALING: Scaling<f64> = Scaling::new(2.0, -1.0);

/// Calls once, as a thread may set itself up at its first job, and the first scaled product may
/// allocate; then counts.
fn check(label: &str, mut run: impl FnMut()) {
    run();
    let before = of_all_threads();
    (0..3).for_each(|_| run());
    assert_eq!(of_all_threads(), before, "{label}");
}

/// One test only: others would allocate beside it.
#[test]
fn runs_allocate_nothing() {
    let options = PlanOptions::with_threads(3);
    // Symmetric with rows that repeat a pattern, so that it suits every kernel; blocks are not detected.
    let a = generate::named("stencil5[n=60]").unwrap().generate::<f64>().unwrap();
    let (mut x, mut y) = (vector(a.cols()), vec![0.0; a.rows()]);
    // Padding that meets it has to be repaired.
    x[0] = f64::INFINITY;
    for kernel in spmv::registry::<f64>() {
        for parameters in kernel.info.variants() {
            let label = kernel.info.label(&parameters);
            let plan = kernel.plan(a.view(), &parameters, &options);
            let Some(plan) = common::planned(&label, plan) else { continue };
            check(&label, || plan.run(&x, &mut y).unwrap());
            check(&label, || plan.run_scaled(SCALING, &x, &mut y).unwrap());
        }
    }
    let plan = transposed::plan(&a, &options).unwrap();
    check("transposed", || plan.run(&x, &mut y).unwrap());
    for layout in LAYOUTS {
        let dense = DenseShape { k: 9, layout };
        let (x, mut y) = (vector(a.cols() * 9), vec![0.0; a.rows() * 9]);
        for kernel in spmm::registry::<f64>() {
            for parameters in kernel.info.variants() {
                let label = format!("{} {layout:?}", kernel.info.label(&parameters));
                let plan = kernel.plan(a.view(), dense, &parameters, &options);
                let Some(plan) = common::planned(&label, plan) else { continue };
                check(&label, || plan.run(&x, &mut y).unwrap());
                check(&label, || plan.run_scaled(SCALING, &x, &mut y).unwrap());
            }
        }
    }
    let mut output = TransposeOutput::new(a.cols(), a.nnz());
    for kernel in transpose::registry::<f64>() {
        for parameters in kernel.info.variants() {
            let label = kernel.info.label(&parameters);
            let plan = kernel.plan(a.view(), &parameters, &options);
            let Some(mut plan) = common::planned(&label, plan) else { continue };
            check(&label, || plan.run(&mut output).unwrap());
        }
    }
}
