//! Conjugate gradients on vectors in device memory.

use std::ops::ControlFlow;

use spm_gpu::{DeviceVector, Stream};

use super::DeviceOperator;
use crate::cg::{Recurrence, Step};
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
    let mut recurrence = Recurrence::new(options, of_b[0]);
    let mut reduction = comm.reduction(2)?;
    loop {
        reduction.start(&[r.dot(&r)?, w.dot(&r)?])?;
        a.apply(&w, &mut q)?;
        let mut sums = [0.0; 2];
        reduction.finish(&mut sums)?;
        let Step { alpha, beta } = match recurrence.next(sums) {
            ControlFlow::Continue(step) => step,
            ControlFlow::Break(convergence) => return Ok(convergence),
        };
        z.axpby(1.0, &q, beta)?;
        s.axpby(1.0, &w, beta)?;
        p.axpby(1.0, &r, beta)?;
        x.axpy(alpha, &p)?;
        r.axpy(-alpha, &s)?;
        w.axpy(-alpha, &z)?;
    }
}
