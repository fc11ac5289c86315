//! Conjugate gradients on vectors in device memory.

use spm_gpu::{DeviceVector, Stream};

use super::DeviceOperator;
use crate::{CgOptions, Communicator, Convergence, DistError};

/// [`conjugate_gradients`](crate::conjugate_gradients) on the devices of the ranks: no vector is copied to the
/// host. The host takes part in the sums of each iteration, one reduction, which goes on while A (A r) is
/// computed. Collective.
///
/// # Errors
/// Those of the products; lengths and devices of `b` and `x`.
pub fn conjugate_gradients(
    comm: &(impl Communicator + ?Sized),
    a: &mut DeviceOperator<f64>,
    b: &DeviceVector<f64>,
    x: &mut DeviceVector<f64>,
    options: &CgOptions,
) -> Result<Convergence, DistError> {
    let stream = Stream::new(a.device())?;
    let zeros = || DeviceVector::zeros(&stream, a.matrix().local_rows());
    let (mut r, mut w, mut q) = (zeros()?, zeros()?, zeros()?);
    let (mut p, mut s, mut z) = (zeros()?, zeros()?, zeros()?);
    a.residual(x, b, &mut r)?;
    a.apply(&r, &mut w)?;
    let mut of_b = [b.dot(b)?];
    comm.sum(&mut of_b)?;
    let limit = options.tolerance * of_b[0].sqrt();
    let mut reduction = comm.reduction(2)?;
    let (mut gamma_before, mut alpha_before) = (f64::INFINITY, 1.0);
    for iterations in 0.. {
        reduction.start(&[r.dot(&r)?, w.dot(&r)?])?;
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
        z.axpby(1.0, &q, beta)?;
        s.axpby(1.0, &w, beta)?;
        p.axpby(1.0, &r, beta)?;
        x.axpy(alpha, &p)?;
        r.axpy(-alpha, &s)?;
        w.axpy(-alpha, &z)?;
    }
    unreachable!("the loop ends at the latest after the most iterations")
}
