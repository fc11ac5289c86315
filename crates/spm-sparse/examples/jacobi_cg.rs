//! Solves A x = b by conjugate gradients with the diagonal as preconditioner (Hestenes and Stiefel 1952):
//! `cargo run --release -p spm-sparse --example jacobi_cg -- [FILE.mtx]`.
//!
//! FILE is a symmetric positive definite matrix. Without one it is the 5-point Laplacian on
//! 1000 x 1000 points. b is A (1, 1, ...).

use std::error::Error;

use spm::{Csr, Operator};

fn main() -> Result<(), Box<dyn Error>> {
    let a = match std::env::args().nth(1) {
        Some(path) => spm::read(path)?,
        None => laplacian(1000)?,
    };
    run(a)
}

pub(crate) fn run(a: Csr<f64>) -> Result<(), Box<dyn Error>> {
    let op = Operator::builder(a).expected_products(1000).build()?;
    println!("{}", op.describe());
    let mut b = vec![0.0; op.rows()];
    op.apply(&vec![1.0; op.cols()], &mut b)?;
    let (x, iterations) = solve(&op, &b, 1e-8)?;
    let mut r = vec![0.0; op.rows()];
    op.residual(&b, &x, &mut r)?;
    let relative = (dot(&r, &r) / dot(&b, &b)).sqrt();
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

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// x and the number of iterations.
fn solve(
    op: &Operator<f64>,
    b: &[f64],
    tolerance: f64,
) -> Result<(Vec<f64>, usize), Box<dyn Error>> {
    let a = op.matrix();
    let diagonal: Vec<f64> = (0..a.rows()).map(|i| a.get(i, i).copied().unwrap_or(0.0)).collect();
    if diagonal.iter().any(|&d| d <= 0.0) {
        return Err("the matrix is not positive definite".into());
    }
    let (mut x, mut r, mut q) = (vec![0.0; b.len()], b.to_vec(), vec![0.0; b.len()]);
    let mut z: Vec<f64> = r.iter().zip(&diagonal).map(|(r, d)| r / d).collect();
    let mut p = z.clone();
    let mut rho = dot(&r, &z);
    let goal = tolerance * dot(b, b).sqrt();
    let mut iterations = 0;
    while dot(&r, &r).sqrt() > goal && iterations < 10 * b.len() {
        op.apply(&p, &mut q)?;
        let alpha = rho / dot(&p, &q);
        for i in 0..b.len() {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            z[i] = r[i] / diagonal[i];
        }
        let next = dot(&r, &z);
        let beta = next / rho;
        rho = next;
        p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + beta * *p);
        iterations += 1;
    }
    Ok((x, iterations))
}
