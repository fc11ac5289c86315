//! Solves A x = b by conjugate gradients with the product on the GPU, b = A (1, 1, ...):
//! `cargo run --release -p spm-gpu --example conjugate_gradient_on_gpu -- [--emulator] [FILE.mtx]`.
//!
//! FILE is a symmetric positive definite matrix; without one it is the 5-point Laplacian on 1000 x
//! 1000 points (10 x 10 on the emulator). The matrix and the vectors of the solver stay on the device:
//! the host gets the numbers that dot products give.

use std::time::Instant;

use spm_formats::kernel::Scaling;
use spm_gpu::{Device, DeviceVector, PlanOptions, Stream, spmv};
use spm_gpu_kernels::emulator::EmulatorOptions;
use spm_testing::conjugate_gradient::{AnyError, Solution, System};

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
    let inverse: Vec<f64> = system.diagonal()?.iter().map(|d| 1.0 / d).collect();
    let kernel = spmv::find::<f64>("auto").expect("auto is always there");
    let mut plan = kernel.plan(device, a, &kernel.info.defaults(), &PlanOptions::default())?;
    println!("{}: {}", device.info().name, plan.choice().unwrap_or_default());

    let stream = &Stream::new(device)?;
    let zeros = || DeviceVector::<f64>::zeros(stream, a.rows());
    let (mut b, mut ones) = (zeros()?, zeros()?);
    ones.fill(1.0)?;
    b.set_matrix_product(&mut *plan, Scaling::OVERWRITE, &ones)?;

    let start = Instant::now();
    let inverse = DeviceVector::from_slice(stream, &inverse)?;
    let (mut x, mut r, mut z, mut q) = (zeros()?, b.try_clone()?, zeros()?, zeros()?);
    z.set_product(&inverse, &r)?;
    let mut p = z.try_clone()?;
    let mut rho = r.dot(&z)?;
    let goal = tolerance * b.norm2()?;
    let mut iterations = 0;
    while r.norm2()? > goal && iterations < most {
        q.set_matrix_product(&mut *plan, Scaling::OVERWRITE, &p)?;
        let curvature = p.dot(&q)?;
        if curvature <= 0.0 {
            return Err("not positive definite: a direction of no or negative curvature".into());
        }
        let alpha = rho / curvature;
        x.axpy(alpha, &p)?;
        r.axpy(-alpha, &q)?;
        z.set_product(&inverse, &r)?;
        let next = r.dot(&z)?;
        p.axpby(1.0, &z, next / rho)?;
        rho = next;
        iterations += 1;
    }
    // b - A x, computed afresh.
    r.set_matrix_product_adding(&mut *plan, Scaling::new(-1.0, 1.0), &x, &b)?;
    let residual = r.norm2()? / b.norm2()?;
    let solution = Solution { x: x.to_vec()?, iterations, residual };
    solution.print(start);
    Ok(solution)
}
