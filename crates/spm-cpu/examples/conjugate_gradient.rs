//! Solves A x = b on all cores by conjugate gradients, with b = A (1, 1, ...):
//! `cargo run --release -p spm-cpu --example conjugate_gradient -- [FILE.mtx]`.
//!
//! FILE is a symmetric positive definite matrix, for example one that
//! `cargo xtask download-suitesparse bcsstk17` has put to `data/suitesparse/HB/bcsstk17.mtx`.
//! Without one it is the 5-point Laplacian on 1000 x 1000 points.

use std::time::Instant;

use spm_cpu::{PlanOptions, spmv};
use spm_testing::conjugate_gradient::{AnyError, Solution, System, solve};

fn main() -> Result<(), AnyError> {
    let system = match std::env::args().nth(1) {
        Some(path) => System::read(&path)?,
        None => System::laplacian(1000)?,
    };
    run(&system, 1e-8, 10_000).map(drop)
}

pub(crate) fn run(system: &System, tolerance: f64, most: usize) -> Result<Solution, AnyError> {
    let a = system.a.view();
    println!("{}: {} rows, {} entries", system.name, a.rows(), a.nnz());
    let diagonal = system.diagonal()?;
    // The plan is made once and used for every iteration.
    let kernel = spmv::find::<f64>("auto").expect("auto is always there");
    let plan = kernel.plan(a, &kernel.info.defaults(), &PlanOptions::default())?;
    println!("kernel: {}", plan.choice().unwrap_or_default());
    let mut b = vec![0.0; a.rows()];
    plan.run(&vec![1.0; a.cols()], &mut b)?;
    let start = Instant::now();
    let solution = solve(|x, y| Ok(plan.run(x, y)?), &diagonal, &b, tolerance, most)?;
    solution.print(start);
    Ok(solution)
}
