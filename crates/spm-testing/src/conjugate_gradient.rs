//! Conjugate gradients over any product: what the examples of spm-cpu and spm-gpu and the benchmarks share.

use std::time::Instant;

use spm_formats::matrix_market::{self, ReadOptions};
use spm_formats::{Csr, CsrView};

use crate::generate;

/// Any error.
pub type AnyError = Box<dyn std::error::Error>;

/// The system that an example solves.
pub struct System {
    /// What the matrix is.
    pub name: String,
    /// The matrix.
    pub a: Csr<f64>,
}

impl System {
    /// The matrix of a Matrix Market file (.mtx, .mtx.gz, .tar.gz), which has to be symmetric and
    /// positive definite: `cant`, `bcsstk17`, `thermal1`, ...
    ///
    /// # Errors
    /// A file that cannot be read, a matrix that is not square.
    pub fn read(path: &str) -> Result<Self, AnyError> {
        let a = matrix_market::read_csr(path, &ReadOptions::default())?;
        if a.rows() != a.cols() {
            return Err(format!("{path}: expected a square matrix, found {:?}", a.shape()).into());
        }
        Ok(Self { name: path.to_owned(), a })
    }

    /// The 5-point Laplacian on a grid of n x n points: 4 on the diagonal, -1 beside it.
    ///
    /// # Errors
    /// More points than 32-bit indices number.
    pub fn laplacian(n: usize) -> Result<Self, AnyError> {
        let mut a = generate::named(&format!("stencil5[n={n}]"))?.generate::<f64>()?;
        let value = |(row, col, _)| if row == col { 4.0 } else { -1.0 };
        let values: Vec<f64> = a.iter().map(value).collect();
        a.values_mut().copy_from_slice(&values);
        Ok(Self { name: format!("5-point Laplacian on {n} x {n} points"), a })
    }

    /// The diagonal, which the solver divides by.
    ///
    /// # Errors
    /// An element that is not positive.
    pub fn diagonal(&self) -> Result<Vec<f64>, AnyError> {
        let a: CsrView<'_, f64> = self.a.view();
        let entry = |row: usize| a.get(row, row).copied().unwrap_or(0.0);
        let diagonal: Vec<f64> = (0..a.rows()).map(entry).collect();
        match diagonal.iter().position(|d| *d <= 0.0) {
            None => Ok(diagonal),
            Some(row) => Err(format!(
                "not positive definite: diagonal entry {} of row {}",
                diagonal[row],
                row + 1
            )
            .into()),
        }
    }
}

/// What the solver found.
pub struct Solution {
    /// x.
    pub x: Vec<f64>,
    /// Iterations that were done.
    pub iterations: usize,
    /// |b - A x| / |b|, computed afresh from x.
    pub residual: f64,
}

impl Solution {
    /// One line; the examples' solution is 1 everywhere.
    pub fn print(&self, start: Instant) {
        let furthest = self.x.iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);
        println!(
            "{} iterations in {:.3} s, |b - A x| / |b| = {:.1e}, x within {furthest:.1e} of the \
             ones",
            self.iterations,
            start.elapsed().as_secs_f64(),
            self.residual
        );
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves A x = b by conjugate gradients with the diagonal as preconditioner (Hestenes and Stiefel
/// 1952), until the recursive residual is below `tolerance` |b| or `most` iterations are done.
/// `product` overwrites its second argument with the product of A and the first.
///
/// # Errors
/// A matrix that is not positive definite; whatever `product` reports.
pub fn solve(
    mut product: impl FnMut(&[f64], &mut [f64]) -> Result<(), AnyError>,
    diagonal: &[f64],
    b: &[f64],
    tolerance: f64,
    most: usize,
) -> Result<Solution, AnyError> {
    let n = b.len();
    let (mut x, mut r, mut q) = (vec![0.0; n], b.to_vec(), vec![0.0; n]);
    let mut z: Vec<f64> = r.iter().zip(diagonal).map(|(r, d)| r / d).collect();
    let mut p = z.clone();
    let mut rho = dot(&r, &z);
    let goal = tolerance * dot(b, b).sqrt();
    let mut iterations = 0;
    while dot(&r, &r).sqrt() > goal && iterations < most {
        product(&p, &mut q)?;
        let curvature = dot(&p, &q);
        if curvature <= 0.0 {
            return Err("not positive definite: a direction of no or negative curvature".into());
        }
        let alpha = rho / curvature;
        for i in 0..n {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            z[i] = r[i] / diagonal[i];
        }
        let next = dot(&r, &z);
        let beta = next / rho;
        rho = next;
        for i in 0..n {
            p[i] = z[i] + beta * p[i];
        }
        iterations += 1;
    }
    product(&x, &mut q)?;
    let left: f64 = b.iter().zip(&q).map(|(b, q)| (b - q) * (b - q)).sum();
    let residual = (left / dot(b, b)).sqrt();
    Ok(Solution { x, iterations, residual })
}
