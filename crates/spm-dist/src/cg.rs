//! Conjugate gradients with one reduction an iteration, hidden behind the product.

use crate::{Communicator, DistError, DistOperator};

/// When [`conjugate_gradients`] ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CgOptions {
    /// The residual's 2-norm over that of b.
    pub tolerance: f64,
    /// Iterations at most.
    pub max_iterations: usize,
}

impl Default for CgOptions {
    /// 10^-8, 1000 iterations.
    fn default() -> Self {
        Self { tolerance: 1e-8, max_iterations: 1000 }
    }
}

/// How [`conjugate_gradients`] ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Convergence {
    /// Iterations.
    pub iterations: usize,
    /// The 2-norm of the recurred residual over that of b.
    pub residual: f64,
    /// Whether the residual is within the tolerance.
    pub converged: bool,
}

/// Solves A x = b for a symmetric positive definite A; `x` is the first guess, and then the solution.
///
/// The pipelined variant of Ghysels and Vanroose ("Hiding global synchronization latency in the
/// preconditioned conjugate gradient algorithm", 2014) without a preconditioner. The sums (r, r) and
/// (A r, r) of an iteration are one reduction, which goes on while A (A r) is computed. Its recurrences
/// are less stable than the classical ones: a tolerance near the rounding error may not be reached.
/// Collective.
///
/// # Errors
/// Those of the products; lengths of `b` and `x`.
pub fn conjugate_gradients(
    comm: &(impl Communicator + ?Sized),
    a: &mut DistOperator<f64>,
    b: &[f64],
    x: &mut [f64],
    options: &CgOptions,
) -> Result<Convergence, DistError> {
    let n = a.matrix().local_rows();
    let zeros = || vec![0.0; n];
    let (mut r, mut w, mut q) = (zeros(), zeros(), zeros());
    let (mut p, mut s, mut z) = (zeros(), zeros(), zeros());
    a.residual(x, b, &mut r)?;
    a.apply(&r, &mut w)?;
    let mut of_b = [dot(b, b)];
    comm.sum(&mut of_b)?;
    let limit = options.tolerance * of_b[0].sqrt();
    let mut reduction = comm.reduction(2)?;
    let (mut gamma_before, mut alpha_before) = (f64::INFINITY, 1.0);
    for iterations in 0.. {
        reduction.start(&[dot(&r, &r), dot(&w, &r)])?;
        a.apply(&w, &mut q)?;
        let mut sums = [0.0; 2];
        reduction.finish(&mut sums)?;
        let [gamma, delta] = sums;
        let residual = if of_b[0] > 0.0 { (gamma / of_b[0]).sqrt() } else { gamma.sqrt() };
        let converged = gamma.sqrt() <= limit;
        if converged || iterations == options.max_iterations || !gamma.is_finite() {
            return Ok(Convergence { iterations, residual, converged });
        }
        let beta = if iterations > 0 { gamma / gamma_before } else { 0.0 };
        let alpha = gamma / (delta - beta * gamma / alpha_before);
        (gamma_before, alpha_before) = (gamma, alpha);
        let vectors = z.iter_mut().zip(&mut s).zip(&mut p).zip(&mut r).zip(&mut w).zip(&q);
        for ((((((z, s), p), r), w), q), x) in vectors.zip(&mut *x) {
            *z = q + beta * *z;
            *s = *w + beta * *s;
            *p = *r + beta * *p;
            *x += alpha * *p;
            *r -= alpha * *s;
            *w -= alpha * *z;
        }
    }
    unreachable!("the loop ends at the latest after the most iterations")
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
