//! Measures a distributed product on the GPUs of this host.

use std::time::Instant;

use spm_dist::gpu::{DeviceOperator, DeviceOptions, Nccl, conjugate_gradients};
use spm_dist::{CgOptions, Communicator, DistCsr, DistError, Times, largest, threads};
use spm_formats::timing::Timing;
use spm_gpu::{Device, DeviceVector, GpuError, Stream};

use super::{
    CG_ITERATIONS, CG_START, Division, Numbers, Run, Subject, Timed, Work, error_of_columns, most,
    operand, per_iteration,
};

/// Seconds of a sample: many short products, so that neither the clock nor the wait at the end counts.
const SAMPLE_S: f64 = 0.01;
/// The most products of a sample.
const MOST_PRODUCTS: f64 = 1000.0;
/// Samples at least.
const SAMPLES: usize = 7;
/// Products whose parts are timed.
const IN_PARTS: usize = 21;
/// Elements of vectors that an iteration of conjugate gradients reads or writes for each row, beside its product:
/// six updates of three, and two dot products.
const CG_VECTORS: usize = 21;

/// The first `count` GPUs of this host, or as many as there are and why there are no more.
pub fn open_gpus(count: usize) -> (Vec<Device>, Option<GpuError>) {
    let mut devices = Vec::new();
    for ordinal in 0..count {
        match Device::open(u32::try_from(ordinal).unwrap_or(u32::MAX)) {
            Ok(device) => devices.push(device),
            Err(error) => return (devices, Some(error)),
        }
    }
    (devices, None)
}

/// Times products or conjugate gradients on these devices, a rank on each.
///
/// A sample is the mean of many products that are put into the stream one after another; all ranks begin a
/// sample together, and the slowest counts.
///
/// # Errors
/// No such matrix, or one that cannot be divided so; too little memory; a device that fails.
///
/// # Panics
/// When there are no devices.
pub fn on_devices(
    devices: &[Device],
    subject: Subject<'_>,
    timed: &Timed<'_>,
) -> Result<Vec<Numbers>, DistError> {
    let of_rank = |comm: &threads::ThreadCommunicator| {
        let device = &devices[comm.rank()];
        let mut options = DeviceOptions::default();
        options.kernel = timed.kernel.clone();
        // Without it, `auto` chooses among the other transports.
        options.nccl = Nccl::new(comm, device).ok();
        subject.for_each(comm, timed.work, |a, work| {
            options.columns = work.columns();
            measure(comm, device, a, (work, timed.seconds), &options)
        })
    };
    let mut ranks = threads::run(devices.len(), of_rank)?;
    Ok(ranks.swap_remove(0))
}

/// An operator and its vectors.
struct Measured<'a, C> {
    comm: &'a C,
    op: DeviceOperator<f64>,
    stream: Stream,
    x: DeviceVector<f64>,
    y: DeviceVector<f64>,
}

impl<C: Communicator> Measured<'_, C> {
    /// Seconds of so many products on the slowest rank, all put into the stream before the host waits.
    fn products(&mut self, count: usize) -> Result<f64, DistError> {
        self.comm.all_gather(&[])?;
        let start = Instant::now();
        (0..count).try_for_each(|_| self.op.apply(&self.x, &mut self.y))?;
        self.stream.synchronize()?;
        Ok(largest(self.comm, start.elapsed().as_secs_f64())?)
    }

    /// Seconds of so many iterations of conjugate gradients for y, from 0, on the slowest rank, and how many were
    /// made.
    fn conjugate_gradients(&mut self, count: usize) -> Result<(f64, usize), DistError> {
        let mut solution = DeviceVector::zeros(&self.stream, self.op.matrix().local_rows())?;
        self.stream.synchronize()?;
        self.comm.all_gather(&[])?;
        let options = CgOptions { tolerance: 0.0, max_iterations: count };
        let start = Instant::now();
        let found = conjugate_gradients(self.comm, &mut self.op, &self.y, &mut solution, &options)?;
        self.stream.synchronize()?;
        let seconds = largest(self.comm, start.elapsed().as_secs_f64())?;
        Ok((seconds, found.iterations))
    }

    /// Samples of one product each, at least so many, for so many seconds.
    fn samples(
        &mut self,
        (seconds, least): (f64, usize),
        mut sample: impl FnMut(&mut Self) -> Result<f64, DistError>,
    ) -> Result<Vec<f64>, DistError> {
        let (mut samples, begin) = (Vec::new(), Instant::now());
        // The rank with the most time ends all of them.
        while samples.len() < least || largest(self.comm, begin.elapsed().as_secs_f64())? < seconds
        {
            samples.push(sample(self)?);
        }
        Ok(samples)
    }
}

fn measure(
    comm: &impl Communicator,
    device: &Device,
    a: DistCsr<f64>,
    (work, seconds): (Work, f64),
    options: &DeviceOptions,
) -> Result<Numbers, DistError> {
    let start = Instant::now();
    let op = DeviceOperator::new(comm, device, a, options)?;
    let plan_s = largest(comm, start.elapsed().as_secs_f64())?;

    let (k, rows) = (work.columns(), op.matrix().local_rows());
    let stream = Stream::new(device)?;
    let first = op.matrix().col_partition().range(comm.rank()).start;
    let x = DeviceVector::from_slice(&stream, &operand(first, op.matrix().local_cols(), k))?;
    let y = DeviceVector::zeros(&stream, rows * k)?;
    let mut measured = Measured { comm, op, stream, x, y };
    // The same on all ranks, as the samples are.
    let once = measured.samples((0.0, 3), |of| of.products(1))?;
    let once = once.into_iter().fold(f64::INFINITY, f64::min);
    let products = (SAMPLE_S / once).clamp(1.0, MOST_PRODUCTS) as usize;
    let least = (seconds, SAMPLES);
    let (of_sample, samples) = match work {
        Work::Spmv | Work::Spmm(_) => {
            let sample = |of: &mut Measured<'_, _>| Ok(of.products(products)? / products as f64);
            (products, measured.samples(least, sample)?)
        }
        Work::Cg => {
            let sample = |of: &mut Measured<'_, _>| {
                let start = of.conjugate_gradients(CG_START)?;
                let all = of.conjugate_gradients(CG_START + CG_ITERATIONS)?;
                Ok(per_iteration(start, all))
            };
            (CG_ITERATIONS, measured.samples(least, sample)?)
        }
    };
    let iterations = samples.len() * of_sample;
    let timing = Timing::of(samples).expect("some samples");
    let Measured { mut op, x, mut y, .. } = measured;
    // The last of the products that were timed.
    let bound_err = largest(comm, error_of_columns(op.matrix(), &y.to_vec()?, k))?;

    let mut parts = Vec::new();
    for _ in 0..IN_PARTS {
        comm.all_gather(&[])?;
        parts.push(op.apply_in_parts(&x, &mut y)?);
    }
    let part = |of: fn(&Times) -> f64| {
        let timing = Timing::of(parts.iter().map(of).collect()).expect("some products");
        largest(comm, timing.median_s)
    };
    let parts = Times {
        pack: part(|times| times.pack)?,
        local: part(|times| times.local)?,
        wait: part(|times| times.wait)?,
        boundary: part(|times| times.boundary)?,
    };
    let vectors = if work == Work::Cg { CG_VECTORS * rows * size_of::<f64>() } else { 0 };
    let run = Run {
        work,
        kernel: op.kernel().to_owned(),
        transport: Some(op.transport().to_string()),
        iterations,
        timing,
        plan_s,
        memory_bytes: most(comm, op.device_bytes())?,
        bytes_moved: most(comm, op.bytes_moved() + vectors as u64)?,
        bound_err,
        exchange_s: parts.pack + parts.wait,
        parts,
        link: None,
    };
    Ok(Numbers::new(Division::of(comm, op.matrix(), k)?, run))
}

#[cfg(test)]
mod tests {
    use spm_dist::Kernel;

    use super::*;

    fn emulated(count: usize) -> Vec<Device> {
        (0..count).map(|_| Device::emulated(Default::default())).collect()
    }

    fn kernel() -> Kernel {
        Kernel::Fixed("csr-subwarp-per-row[threads-per-row=4]".to_owned())
    }

    fn on(count: usize, subject: Subject<'_>) -> Result<Numbers, DistError> {
        let kernel = kernel();
        let timed = Timed { kernel: &kernel, work: &[Work::Spmv], seconds: 0.0 };
        Ok(on_devices(&emulated(count), subject, &timed)?.swap_remove(0))
    }

    #[test]
    fn columns_and_conjugate_gradients_are_measured() {
        let subject = Subject { matrix: "stencil27[n=3]", weak: true };
        let work = [Work::Spmv, Work::Spmm(3), Work::Cg];
        let timed = Timed { kernel: &Kernel::Auto, work: &work, seconds: 0.0 };
        let found = on_devices(&emulated(2), subject, &timed).unwrap();
        assert_eq!(found.iter().map(|found| found.work).collect::<Vec<_>>(), work);
        assert!(found.iter().all(|found| found.bound_err <= 1.0 && found.median_s > 0.0));
        assert_eq!(
            found.iter().map(|of| of.overlap().is_some()).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert!(found[2].bytes_moved > found[0].bytes_moved);
        assert_eq!(found[1].halo_bytes, 3 * found[0].halo_bytes);
        let mesh = Subject { matrix: "mesh2[n=6]", weak: false };
        let error = on_devices(&emulated(1), mesh, &timed).unwrap_err();
        assert!(error.to_string().contains("stencil27[n=SIDE]"), "{error}");
    }

    #[test]
    fn one_two_and_four_devices_are_measured() {
        for (count, weak) in [(1, false), (2, false), (4, false), (2, true)] {
            let subject = Subject { matrix: "stencil27[n=4]", weak };
            let found = on(count, subject).unwrap();
            assert_eq!(
                (found.rows, found.kernel.contains("subwarp")),
                if weak { (128, true) } else { (64, true) }
            );
            assert!(found.bound_err <= 1.0, "{found:?}");
            // Boxes of 4 x 4 x 2 points have 16 neighbours in the other one, those of 4 x 2 x 2 in three.
            let (halo, neighbours) = [(0, 0), (16, 1), (20, 3)][count / 2];
            assert_eq!((found.halo_bytes, found.neighbours), (8 * halo, neighbours));
            // 10 points along an axis have a neighbour on the axis or are their own.
            assert!(weak || found.entries == 1000, "{found:?}");
            assert!(
                found.median_s > 0.0 && found.local_s > 0.0 && found.iterations >= 7,
                "{found:?}"
            );
            assert_eq!(found.overlap().is_some(), count > 1);
        }
    }

    #[test]
    fn matrices_of_any_generator_are_divided() {
        let subject = Subject { matrix: "mesh2[n=6]", weak: false };
        let found = on(2, subject).unwrap();
        assert!(found.bound_err <= 1.0 && found.halo_bytes > 0, "{found:?}");
        let refused = |matrix, weak| on(2, Subject { matrix, weak }).unwrap_err().to_string();
        assert!(refused("mesh2[n=6]", true).contains("weak scaling is for stencil27[n=SIDE]"));
        assert!(refused("no-such", false).contains("no-such"));
    }

    #[test]
    fn what_the_local_block_hides() {
        let subject = Subject { matrix: "stencil27[n=2]", weak: false };
        let mut numbers = on(2, subject).unwrap();
        (numbers.exchange_s, numbers.local_s, numbers.boundary_s) = (4.0, 10.0, 1.0);
        (numbers.pack_s, numbers.wait_s) = (1.0, 3.0);
        for (median, hidden) in [(15.0, 0.0), (12.0, 0.75), (11.0, 1.0), (10.0, 1.0), (20.0, 0.0)] {
            numbers.median_s = median;
            assert_eq!(numbers.overlap(), Some(hidden));
        }
        numbers.transport = None;
        assert_eq!(numbers.overlap(), Some(0.0));
        numbers.wait_s = 0.0;
        assert_eq!(numbers.overlap(), Some(0.75));
    }
}
