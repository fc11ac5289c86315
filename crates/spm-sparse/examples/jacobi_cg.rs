//! Solves A x = b by conjugate gradients with the diagonal as preconditioner (Hestenes and Stiefel 1952):
//! `cargo run --release -p spm-sparse --features gpu --example jacobi_cg -- [--cpu] [FILE.mtx]`.
//!
//! FILE is a symmetric positive definite matrix. Without one it is the 5-point Laplacian on
//! 1000 x 1000 points. b is A (1, 1, ...). The solver runs on the first GPU, and on CPU cores where there
//! is none or with `--cpu`; matrix and vectors stay there.

use std::error::Error;

use spm::{Csr, Device, Operator, Vector};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let cpu = arguments.iter().any(|argument| argument == "--cpu");
    arguments.retain(|argument| argument != "--cpu");
    let a = match arguments.first() {
        Some(path) => spm::read(path)?,
        None => laplacian(1000)?,
    };
    run(a, if cpu { Device::cpu() } else { Device::auto() })
}

pub(crate) fn run(a: Csr<f64>, device: Device) -> Result<(), Box<dyn Error>> {
    let op = Operator::builder(a).device(device).expected_products(1000).build()?;
    println!("{}", op.describe());
    let mut ones = op.vector_zeros(op.cols())?;
    ones.fill(1.0)?;
    let mut b = op.vector_zeros(op.rows())?;
    op.apply_vector(&ones, &mut b)?;
    let (x, iterations) = solve(&op, &b, 1e-8)?;
    let mut r = op.vector_zeros(op.rows())?;
    op.residual_vector(&b, &x, &mut r)?;
    let relative = r.norm2()? / b.norm2()?;
    println!("{iterations} iterations, |b - A x| / |b| = {relative:.1e}");
    if relative < 1e-7 { Ok(()) } else { Err("no convergence".into()) }
}

/// The 5-point Laplacian on n x n points: 4 on the diagonal, -1 for each neighbour.
pub(crate) fn laplacian(n: usize) -> Result<Csr<f64>, spm::Error> {
    let entries = (0..n * n).flat_map(|i| {
        let (row, col) = (i / n, i % n);
        let neighbours = [
            (row > 0).then(|| i - n),
            (col > 0).then(|| i - 1),
            (col + 1 < n).then(|| i + 1),
            (row + 1 < n).then(|| i + n),
        ];
        let others = neighbours.into_iter().flatten().map(move |j| (i, j, -1.0));
        std::iter::once((i, i, 4.0)).chain(others)
    });
    spm::from_triplets((n * n, n * n), entries)
}

/// x and the number of iterations.
fn solve(
    op: &Operator<f64>,
    b: &Vector<f64>,
    tolerance: f64,
) -> Result<(Vector<f64>, usize), Box<dyn Error>> {
    let a = op.matrix();
    let diagonal: Vec<f64> = (0..a.rows()).map(|i| a.get(i, i).copied().unwrap_or(0.0)).collect();
    if diagonal.iter().any(|&d| d <= 0.0) {
        return Err("the matrix is not positive definite".into());
    }
    let inverse = op.vector_from(&diagonal.iter().map(|d| 1.0 / d).collect::<Vec<_>>())?;
    let zeros = || op.vector_zeros(b.len());
    let (mut x, mut r, mut z, mut q) = (zeros()?, b.try_clone()?, zeros()?, zeros()?);
    z.set_product(&inverse, &r)?;
    let mut p = z.try_clone()?;
    let mut rho = r.dot(&z)?;
    let goal = tolerance * b.norm2()?;
    let mut iterations = 0;
    while r.norm2()? > goal && iterations < 10 * b.len() {
        op.apply_vector(&p, &mut q)?;
        let alpha = rho / p.dot(&q)?;
        x.axpy(alpha, &p)?;
        r.axpy(-alpha, &q)?;
        z.set_product(&inverse, &r)?;
        let next = r.dot(&z)?;
        p.axpby(1.0, &z, next / rho)?;
        rho = next;
        iterations += 1;
    }
    Ok((x, iterations))
}
