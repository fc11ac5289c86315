//! Conjugate gradients with one reduction an iteration, hidden behind the product.

use std::ops::ControlFlow;

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
    let mut recurrence = Recurrence::new(options, of_b[0]);
    let mut reduction = comm.reduction(2)?;
    loop {
        reduction.start(&[dot(&r, &r), dot(&w, &r)])?;
        a.apply(&w, &mut q)?;
        let mut sums = [0.0; 2];
        reduction.finish(&mut sums)?;
        let Step { alpha, beta } = match recurrence.next(sums) {
            ControlFlow::Continue(step) => step,
            ControlFlow::Break(convergence) => return Ok(convergence),
        };
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
}

/// The scalars of the iterations, from the sums over all ranks.
pub(crate) struct Recurrence<'a> {
    options: &'a CgOptions,
    /// (b, b), and the norm of a residual within the tolerance.
    of_b: f64,
    limit: f64,
    iterations: usize,
    gamma_before: f64,
    alpha_before: f64,
}

/// The factors of an iteration.
pub(crate) struct Step {
    /// Of the direction in x, and of what it takes from the residual.
    pub(crate) alpha: f64,
    /// Of the direction before in the new one.
    pub(crate) beta: f64,
}

impl<'a> Recurrence<'a> {
    pub(crate) fn new(options: &'a CgOptions, of_b: f64) -> Self {
        let limit = options.tolerance * of_b.sqrt();
        let (gamma_before, alpha_before) = (f64::INFINITY, 1.0);
        Self { options, of_b, limit, iterations: 0, gamma_before, alpha_before }
    }

    /// The next iteration, or the end, for the sums (r, r) and (A r, r).
    pub(crate) fn next(&mut self, [gamma, delta]: [f64; 2]) -> ControlFlow<Convergence, Step> {
        let iterations = self.iterations;
        let residual = if self.of_b > 0.0 { (gamma / self.of_b).sqrt() } else { gamma.sqrt() };
        let converged = gamma.sqrt() <= self.limit;
        if converged || iterations == self.options.max_iterations || !gamma.is_finite() {
            return ControlFlow::Break(Convergence { iterations, residual, converged });
        }
        let beta = if iterations > 0 { gamma / self.gamma_before } else { 0.0 };
        let alpha = gamma / (delta - beta * gamma / self.alpha_before);
        (self.gamma_before, self.alpha_before) = (gamma, alpha);
        self.iterations += 1;
        ControlFlow::Continue(Step { alpha, beta })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
