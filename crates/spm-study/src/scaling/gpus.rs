//! Measures a distributed product on the GPUs of this host.

use std::time::Instant;

use spm_dist::gpu::{DeviceOperator, DeviceOptions, Nccl};
use spm_dist::{Communicator, DistCsr, DistError, Kernel, Times, largest, threads};
use spm_formats::timing::Timing;
use spm_gpu::{Device, DeviceVector, GpuError, Stream};
use spm_testing::distributed::{element, error_of};

use super::{Division, Numbers, Run, Subject, most};

/// Seconds of a sample: many short products, so that neither the clock nor the wait at the end counts.
const SAMPLE_S: f64 = 0.01;
/// The most products of a sample.
const MOST_PRODUCTS: f64 = 1000.0;
/// Samples at least.
const SAMPLES: usize = 7;
/// Products whose parts are timed.
const IN_PARTS: usize = 21;

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

/// Times y = Ax on these devices, a rank on each, for about `seconds`.
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
    kernel: &Kernel,
    seconds: f64,
) -> Result<Numbers, DistError> {
    let of_rank = |comm: &threads::ThreadCommunicator| {
        measure(comm, &devices[comm.rank()], subject, kernel, seconds)
    };
    let mut ranks = threads::run(devices.len(), of_rank)?;
    Ok(ranks.swap_remove(0))
}

fn measure(
    comm: &impl Communicator,
    device: &Device,
    subject: Subject<'_>,
    kernel: &Kernel,
    seconds: f64,
) -> Result<Numbers, DistError> {
    let (partition, rows) = subject.rows(comm)?;
    let a = DistCsr::new(comm, &partition, &partition, rows)?;
    let mut options = DeviceOptions::default();
    options.kernel = kernel.clone();
    // Without it, `auto` chooses among the other transports.
    options.nccl = Nccl::new(comm, device).ok();
    let start = Instant::now();
    let mut op = DeviceOperator::new(comm, device, a, &options)?;
    let plan_s = largest(comm, start.elapsed().as_secs_f64())?;

    let stream = Stream::new(device)?;
    let x: Vec<f64> = partition.range(comm.rank()).map(element).collect();
    let x = DeviceVector::from_slice(&stream, &x)?;
    let mut y = DeviceVector::zeros(&stream, op.matrix().local_rows())?;
    let mut samples = |products: usize, seconds: f64, least: usize| {
        let (mut samples, begin) = (Vec::new(), Instant::now());
        loop {
            // Also lets all ranks begin together. The rank with the most time ends all of them.
            let passed = largest(comm, begin.elapsed().as_secs_f64())?;
            if samples.len() >= least && passed >= seconds {
                return Ok::<_, DistError>(samples);
            }
            let start = Instant::now();
            (0..products).try_for_each(|_| op.apply(&x, &mut y))?;
            stream.synchronize()?;
            samples.push(largest(comm, start.elapsed().as_secs_f64() / products as f64)?);
        }
    };
    // The same on all ranks, as the samples are.
    let once = samples(1, 0.0, 3)?.into_iter().fold(f64::INFINITY, f64::min);
    let products = (SAMPLE_S / once).clamp(1.0, MOST_PRODUCTS) as usize;
    let samples = samples(products, seconds, SAMPLES)?;
    let iterations = samples.len() * products;
    let timing = Timing::of(samples).expect("some samples");
    // Checks the products that were timed.
    let rows = op.matrix().to_rows();
    let bound_err =
        largest(comm, error_of((rows.row_ptr(), rows.col_ind(), rows.values()), &y.to_vec()?))?;
    drop(rows);

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
    let run = Run {
        kernel: op.kernel().to_owned(),
        transport: Some(op.transport().to_string()),
        iterations,
        timing,
        plan_s,
        memory_bytes: most(comm, op.device_bytes())?,
        bytes_moved: most(comm, op.bytes_moved())?,
        bound_err,
        exchange_s: parts.pack + parts.wait,
        parts,
        link: None,
    };
    Ok(Numbers::new(Division::of(comm, op.matrix())?, run))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emulated(count: usize) -> Vec<Device> {
        (0..count).map(|_| Device::emulated(Default::default())).collect()
    }

    fn kernel() -> Kernel {
        Kernel::Fixed("csr-subwarp-per-row[threads-per-row=4]".to_owned())
    }

    #[test]
    fn one_two_and_four_devices_are_measured() {
        for (count, weak) in [(1, false), (2, false), (4, false), (2, true)] {
            let subject = Subject { matrix: "stencil27[n=4]", weak };
            let found = on_devices(&emulated(count), subject, &kernel(), 0.0).unwrap();
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
        let found = on_devices(&emulated(2), subject, &kernel(), 0.0).unwrap();
        assert!(found.bound_err <= 1.0 && found.halo_bytes > 0, "{found:?}");
        let refused = |matrix, weak| {
            let measured = on_devices(&emulated(2), Subject { matrix, weak }, &kernel(), 0.0);
            measured.unwrap_err().to_string()
        };
        assert!(refused("mesh2[n=6]", true).contains("weak scaling is for stencil27[n=SIDE]"));
        assert!(refused("no-such", false).contains("no-such"));
    }

    #[test]
    fn what_the_local_block_hides() {
        let subject = Subject { matrix: "stencil27[n=2]", weak: false };
        let mut numbers = on_devices(&emulated(2), subject, &kernel(), 0.0).unwrap();
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
