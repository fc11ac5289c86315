//! Solves A x = b by conjugate gradients with the product on the GPU, b = A (1, 1, ...):
//! `cargo run --release -p spm-gpu --example conjugate_gradient_on_gpu -- [--emulator] [FILE.mtx]`.
//!
//! FILE is a symmetric positive definite matrix; without one it is the 5-point Laplacian on 1000 x
//! 1000 points (10 x 10 on the emulator). The matrix stays on the device; the vectors of the solver
//! are in host memory, so each product copies one in and one out.

use std::time::Instant;

use spm_formats::kernel::ProductPlan;
use spm_gpu::{Device, HostProductPlan, PlanOptions, spmv};
use spm_gpu_kernels::emulator::EmulatorOptions;
use spm_testing::conjugate_gradient::{AnyError, Solution, System, solve};

fn main() -> Result<(), AnyError> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let emulated = arguments.iter().any(|argument| argument == "--emulator");
    arguments.retain(|argument| argument != "--emulator");
    let device = if emulated {
        Device::emulated(EmulatorOptions::default())
    } else {
        match Device::available() {
            Ok(device) => device,
            Err(error) => {
                println!("skipped: {error}");
                return Ok(());
            }
        }
    };
    let system = match arguments.first() {
        Some(path) => System::read(path)?,
        None => System::laplacian(if emulated { 10 } else { 1000 })?,
    };
    run(&device, &system, 1e-8, 10_000).map(drop)
}

pub(crate) fn run(
    device: &Device,
    system: &System,
    tolerance: f64,
    most: usize,
) -> Result<Solution, AnyError> {
    let a = system.a.view();
    println!("{}: {} rows, {} entries", system.name, a.rows(), a.nnz());
    let diagonal = system.diagonal()?;
    let kernel = spmv::find::<f64>("auto").expect("auto is always there");
    let plan = kernel.plan(device, a, &kernel.info.defaults(), &PlanOptions::default())?;
    println!("{}: {}", device.info().name, plan.choice().unwrap_or_default());
    let plan = HostProductPlan::new(plan)?;
    let mut b = vec![0.0; a.rows()];
    plan.run(&vec![1.0; a.cols()], &mut b)?;
    let start = Instant::now();
    let solution = solve(|x, y| Ok(plan.run(x, y)?), &diagonal, &b, tolerance, most)?;
    solution.print(start);
    Ok(solution)
}
