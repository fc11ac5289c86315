//! The products of a [`DeviceOperator`]: what goes into which stream, and what waits for what.

use std::time::Instant;

use spm_formats::Scalar;
use spm_formats::kernel::{Scaling, check_length};
use spm_gpu::{DeviceScalar, DeviceVector, Event, GpuError, Stream};

use super::{DeviceOperator, Transposed};
use crate::{DistError, Times};

impl<T: DeviceScalar> DeviceOperator<T> {
    /// `y` = A `x`: local columns x k and local rows x k elements, row-major. Collective.
    ///
    /// # Errors
    /// Wrong lengths, vectors on another device; a device that fails; errors of the communication. A rank
    /// that has given up is one for those that wait.
    pub fn apply(&mut self, x: &DeviceVector<T>, y: &mut DeviceVector<T>) -> Result<(), DistError> {
        self.multiply(Scaling::OVERWRITE, x, None, y, &mut Untimed)
    }

    /// `y` = `alpha` A `x` + `beta` `y`. With `beta` = 0 `y` is not read. Collective.
    ///
    /// # Errors
    /// As [`DeviceOperator::apply`].
    pub fn apply_scaled(
        &mut self,
        alpha: T,
        x: &DeviceVector<T>,
        beta: T,
        y: &mut DeviceVector<T>,
    ) -> Result<(), DistError> {
        self.multiply(Scaling::new(alpha, beta), x, None, y, &mut Untimed)
    }

    /// `r` = `b` - A `x`. Collective.
    ///
    /// # Errors
    /// As [`DeviceOperator::apply`].
    pub fn residual(
        &mut self,
        x: &DeviceVector<T>,
        b: &DeviceVector<T>,
        r: &mut DeviceVector<T>,
    ) -> Result<(), DistError> {
        let one = <T as Scalar>::ONE;
        self.multiply(Scaling::new(-one, one), x, Some(b), r, &mut Untimed)
    }

    /// As [`DeviceOperator::apply`], one part after the other, each of which the host waits for; their
    /// times on this rank. Collective.
    ///
    /// # Errors
    /// As [`DeviceOperator::apply`].
    pub fn apply_in_parts(
        &mut self,
        x: &DeviceVector<T>,
        y: &mut DeviceVector<T>,
    ) -> Result<Times, DistError> {
        self.device.synchronize()?;
        let mut timed = Timed { times: Times::default(), since: Instant::now() };
        self.multiply(Scaling::OVERWRITE, x, None, y, &mut timed)?;
        Ok(timed.times)
    }

    /// `y` = A^T `x`: local rows and local columns elements, for
    /// [`DeviceOptions::transpose`](crate::gpu::DeviceOptions::transpose). Each rank adds the sums of its rows, then
    /// those of other ranks in their order. Collective.
    ///
    /// # Errors
    /// As [`DeviceOperator::apply`]; [`DistError::Unprepared`].
    pub fn apply_transpose(
        &mut self,
        x: &DeviceVector<T>,
        y: &mut DeviceVector<T>,
    ) -> Result<(), DistError> {
        self.apply_transpose_scaled(<T as Scalar>::ONE, x, <T as Scalar>::ZERO, y)
    }

    /// `y` = `alpha` A^T `x` + `beta` `y`; otherwise as [`DeviceOperator::apply_transpose`]. Collective.
    ///
    /// # Errors
    /// As [`DeviceOperator::apply_transpose`].
    pub fn apply_transpose_scaled(
        &mut self,
        alpha: T,
        x: &DeviceVector<T>,
        beta: T,
        y: &mut DeviceVector<T>,
    ) -> Result<(), DistError> {
        if self.transposed.is_none() {
            return Err(DistError::Unprepared("the operator was made without `transpose`"));
        }
        let lengths = [("x", self.a.local_rows(), x), ("y", self.a.local_cols(), &*y)];
        self.check(lengths.into_iter())?;
        let result = self.enqueue_transposed(Scaling::new(alpha, beta), x, y);
        self.failure.keep(result)
    }

    /// Checks operands: what it is, its length, the vector.
    fn check<'v>(
        &self,
        operands: impl Iterator<Item = (&'static str, usize, &'v DeviceVector<T>)>,
    ) -> Result<(), DistError>
    where
        T: 'v,
    {
        for (what, length, vector) in operands {
            check_length(what, length, vector.len())?;
            if !vector.device().is(&self.device) {
                return Err(GpuError::OtherDevice { what }.into());
            }
        }
        self.failure.check()
    }

    /// Checks the operands, and remembers errors of the product.
    fn multiply(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceVector<T>,
        z: Option<&DeviceVector<T>>,
        y: &mut DeviceVector<T>,
        clock: &mut dyn Clock,
    ) -> Result<(), DistError> {
        let k = self.columns;
        let z_length = z.map(|z| ("z", self.a.local_rows() * k, z));
        let operands = [("x", self.a.local_cols() * k, x), ("y", self.a.local_rows() * k, &*y)];
        self.check(operands.into_iter().chain(z_length))?;
        let result = self.enqueue(scaling, x, z, y, clock);
        self.failure.keep(result)
    }

    /// `y` = alpha A `x` + beta z, where z is `y` unless it is given.
    fn enqueue(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceVector<T>,
        z: Option<&DeviceVector<T>>,
        y: &mut DeviceVector<T>,
        clock: &mut dyn Clock,
    ) -> Result<(), DistError> {
        let k = self.columns;
        let (of_boundary, of_y) = (&self.stream, &y.stream().clone());
        let follow = |one: &Stream, other: &Stream| follow(&self.mark, one, other);
        for read in [Some(x), z].into_iter().flatten() {
            follow(of_y, read.stream())?;
        }
        follow(of_boundary, of_y)?;

        let Self { exchange, sends, own, boundary_rows, .. } = self;
        exchange.send(of_boundary, &mut |outgoing| {
            sends.gather(k, x.elements(), outgoing, 0, of_boundary)
        })?;
        clock.lap(of_boundary, |times| &mut times.pack)?;
        own.gather(k, x.elements(), &mut self.x, self.a.boundary.below, of_boundary)?;
        if scaling.beta != <T as Scalar>::ZERO {
            let added = z.unwrap_or(y);
            boundary_rows.gather(k, added.elements(), &mut self.y, 0, of_boundary)?;
            if z.is_none() {
                // Before the local block, which writes all of y.
                follow(of_y, of_boundary)?;
            }
        }
        clock.lap(of_boundary, |times| &mut times.boundary)?;
        match z {
            Some(z) => {
                let y = y.elements_mut();
                self.local.launch_adding(scaling, x.elements(), z.elements(), y, of_y)?;
            }
            None => self.local.launch_scaled(scaling, x.elements(), y.elements_mut(), of_y)?,
        }
        clock.lap(of_y, |times| &mut times.local)?;
        exchange.receive(of_boundary, &mut self.x)?;
        clock.lap(of_boundary, |times| &mut times.wait)?;
        self.boundary.launch_scaled(scaling, &self.x, &mut self.y, of_boundary)?;
        follow(of_boundary, of_y)?;
        boundary_rows.scatter(k, &self.y, y.elements_mut(), of_boundary)?;
        clock.lap(of_boundary, |times| &mut times.boundary)?;
        follow(of_y, of_boundary)?;
        // Later writes of what was read.
        for read in [Some(x), z].into_iter().flatten() {
            follow(read.stream(), of_y)?;
        }
        Ok(())
    }

    /// `y` = alpha A^T `x` + beta `y`.
    fn enqueue_transposed(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceVector<T>,
        y: &mut DeviceVector<T>,
    ) -> Result<(), DistError> {
        let Some(transposed) = &mut self.transposed else { return Ok(()) };
        let Transposed { local, boundary, exchange, incoming, neighbours } = transposed;
        let (of_boundary, of_y) = (&self.stream, &y.stream().clone());
        let follow = |one: &Stream, other: &Stream| follow(&self.mark, one, other);
        follow(of_y, x.stream())?;
        follow(of_boundary, of_y)?;
        // The boundary rows first: their sums belong to other ranks, too.
        self.boundary_rows.gather(1, x.elements(), &mut self.y, 0, of_boundary)?;
        let once = Scaling::new(scaling.alpha, <T as Scalar>::ZERO);
        boundary.launch_scaled(once, &self.y, &mut self.x, of_boundary)?;
        let (below, end) = (self.a.boundary.below, self.a.boundary.below + self.own.len());
        exchange.send(of_boundary, &mut |outgoing| {
            let above = outgoing.len() - below;
            outgoing.copy_part_from_on(0, &self.x, 0, below, of_boundary)?;
            outgoing.copy_part_from_on(below, &self.x, end, above, of_boundary)
        })?;
        local.launch_scaled(scaling, x.elements(), y.elements_mut(), of_y)?;
        exchange.receive(of_boundary, incoming)?;
        follow(of_boundary, of_y)?;
        let y = y.elements_mut();
        self.own.scatter_add(1, &self.x, below, y, of_boundary)?;
        for (rows, first) in &*neighbours {
            rows.scatter_add(1, incoming, *first, y, of_boundary)?;
        }
        follow(of_y, of_boundary)?;
        Ok(follow(x.stream(), of_y)?)
    }
}

/// `one` goes on when `other` has done what it has now.
fn follow(mark: &Event, one: &Stream, other: &Stream) -> Result<(), GpuError> {
    if one.is(other) {
        return Ok(());
    }
    mark.record(other)?;
    one.wait(mark)
}

/// Takes the times of the parts of a product.
trait Clock {
    /// Ends a part, whose last work is in `stream`.
    fn lap(&mut self, stream: &Stream, part: fn(&mut Times) -> &mut f64) -> Result<(), GpuError>;
}

struct Untimed;

impl Clock for Untimed {
    fn lap(&mut self, _: &Stream, _: fn(&mut Times) -> &mut f64) -> Result<(), GpuError> {
        Ok(())
    }
}

struct Timed {
    times: Times,
    since: Instant,
}

impl Clock for Timed {
    fn lap(&mut self, stream: &Stream, part: fn(&mut Times) -> &mut f64) -> Result<(), GpuError> {
        stream.synchronize()?;
        let now = Instant::now();
        *part(&mut self.times) += (now - std::mem::replace(&mut self.since, now)).as_secs_f64();
        Ok(())
    }
}
