//! Measures a distributed product on CPU cores, a rank on each, and the plan of one process on as many threads.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Context;
use spm_cpu::{PlanOptions, spmv};
use spm_dist::model::Machine;
use spm_dist::{
    Boxes, Communicator, DistCsr, DistError, DistOperator, Kernel, Options, Times, largest,
};
use spm_formats::Csr;
use spm_formats::kernel::split_label;
use spm_formats::timing::Timing;
use spm_testing::distributed::{element, error_of, value};

use super::{Numbers, Subject, side_of};

/// Products at least.
const PRODUCTS: usize = 10;
/// Messages of each size.
const MESSAGES: usize = 60;

/// The statistics of some times, which there are.
fn timing(times: Vec<f64>) -> Timing {
    Timing::of(times).expect("some times")
}

/// Seconds of each product, on the rank that takes the longest, and the median seconds of its parts, each on the
/// rank that takes the longest.
fn products(
    comm: &impl Communicator,
    op: &mut DistOperator<f64>,
    (x, y): (&[f64], &mut [f64]),
    seconds: f64,
) -> Result<(Vec<f64>, Times), DistError> {
    let (mut times, mut parts) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    loop {
        // All begin together, and go on together.
        let mut go_on = [f64::from(u8::from(
            begin.elapsed().as_secs_f64() < seconds || times.len() < PRODUCTS,
        ))];
        comm.sum(&mut go_on)?;
        if go_on[0] < comm.size() as f64 {
            break;
        }
        let start = Instant::now();
        parts.push(op.apply_timed(x, y)?);
        times.push(start.elapsed().as_secs_f64());
        black_box(&y);
    }
    let mut slowest = Vec::with_capacity(times.len());
    for &time in &times {
        slowest.push(largest(comm, time)?);
    }
    let part = |of: fn(&Times) -> f64| -> Result<f64, DistError> {
        Ok(largest(comm, timing(parts.iter().map(of).collect()).median_s)?)
    };
    let times = Times {
        pack: part(|times| times.pack)?,
        local: part(|times| times.local)?,
        wait: part(|times| times.wait)?,
        boundary: part(|times| times.boundary)?,
    };
    Ok((slowest, times))
}

/// Seconds of a message of `bytes` bytes from rank 0 to rank 1: half of there and back.
fn message(comm: &impl Communicator, bytes: usize) -> Result<f64, DistError> {
    let (rank, other) = (comm.rank(), 1 - comm.rank().min(1));
    let to: &[(usize, usize)] = if rank < 2 && comm.size() > 1 { &[(other, bytes)] } else { &[] };
    let (mut there, mut back) = if rank == 0 {
        (comm.channel(to, &[])?, comm.channel(&[], to)?)
    } else {
        (comm.channel(&[], to)?, comm.channel(to, &[])?)
    };
    let mut times = Vec::new();
    for _ in 0..MESSAGES {
        let start = Instant::now();
        // Rank 0 sends, then receives; rank 1 receives, then sends.
        there.start()?;
        there.wait()?;
        back.start()?;
        back.wait()?;
        times.push(start.elapsed().as_secs_f64() / 2.0);
    }
    Ok(largest(comm, if rank == 0 { timing(times).median_s } else { 0.0 })?)
}

/// Times y = Ax on the ranks of a communicator, this one among them, for about `seconds`. Collective.
///
/// # Errors
/// No such matrix, or one that cannot be divided so; a kernel that is not there; errors of the communication.
pub fn on_rank(
    comm: &impl Communicator,
    subject: Subject<'_>,
    kernel: &Kernel,
    seconds: f64,
) -> Result<Numbers, DistError> {
    let (partition, rows) = subject.rows(comm)?;
    let mut entries = [rows.nnz() as f64];
    comm.sum(&mut entries)?;
    let a = DistCsr::new(comm, &partition, &partition, rows)?;
    let start = Instant::now();
    let mut options = Options::default();
    options.kernel = kernel.clone();
    let mut op = DistOperator::new(comm, a, &options)?;
    let plan_s = largest(comm, start.elapsed().as_secs_f64())?;
    let x: Vec<f64> = partition.range(comm.rank()).map(element).collect();
    let mut y = vec![0.0; op.matrix().local_rows()];
    op.apply(&x, &mut y)?;
    let own = op.matrix().to_rows();
    let bound_err = largest(comm, error_of((own.row_ptr(), own.col_ind(), own.values()), &y))?;
    drop(own);

    op.set_overlap(false);
    let (_, apart) = products(comm, &mut op, (&x, &mut y), seconds / 2.0)?;
    op.set_overlap(true);
    let (times, parts) = products(comm, &mut op, (&x, &mut y), seconds)?;
    let iterations = times.len() as u64;
    let timing = timing(times);
    let (small, large) = (8, 1 << 20);
    let (latency_s, link) = match comm.size() {
        1 => (None, None),
        _ => {
            let timed = (message(comm, small)?, message(comm, large)?);
            let (latency, link) = Machine::link((small as f64, timed.0), (large as f64, timed.1));
            (Some(latency), Some(link))
        }
    };
    let whole = |value: u64| Ok::<_, DistError>(largest(comm, value as f64)? as u64);
    let halo = op.matrix().halo();
    Ok(Numbers {
        rows: partition.total(),
        entries: entries[0] as u64,
        kernel: op.kernel().to_owned(),
        transport: None,
        iterations,
        median_s: timing.median_s,
        min_s: timing.min_s,
        p10_s: timing.p10_s,
        p90_s: timing.p90_s,
        plan_s,
        memory_bytes: whole(op.memory_bytes())?,
        bytes_moved: whole(op.bytes_moved())?,
        bound_err,
        boundary_rows: whole(op.matrix().boundary_rows() as u64)?,
        halo_bytes: whole((halo.ghosts().len() * size_of::<f64>()) as u64)?,
        neighbours: whole(halo.neighbours() as u64)?,
        exchange_s: apart.pack + apart.wait,
        pack_s: parts.pack,
        local_s: parts.local,
        wait_s: parts.wait,
        boundary_s: parts.boundary,
        latency_s,
        link,
    })
}

/// Times the plan of one process on some threads, for comparison with as many ranks.
///
/// # Errors
/// No such matrix, or no such kernel.
pub fn on_threads(
    threads: usize,
    matrix: &str,
    kernel: &str,
    seconds: f64,
) -> anyhow::Result<Numbers> {
    let a = match side_of(matrix) {
        Some(n) => {
            let rows = Boxes::new([n; 3], 1).stencil27(0, value)?;
            let row_ptr = rows.row_ptr().iter().map(|&end| end as u32).collect();
            let col_ind = rows.col_ind().iter().map(|&col| col as u32).collect();
            let size = rows.rows();
            Csr::new((size, size), row_ptr, col_ind, rows.values().to_vec())?
        }
        None => Subject { matrix, weak: false }.whole()?,
    };
    let (id, parameters) = split_label(kernel);
    let entry = spmv::find::<f64>(id).with_context(|| format!("no kernel is called {id}"))?;
    let parameters = entry.info.parse_parameters(parameters)?;
    let start = Instant::now();
    let plan = entry.plan(&a, &parameters, &PlanOptions::with_threads(threads))?;
    let plan_s = start.elapsed().as_secs_f64();
    let x: Vec<f64> = (0..a.cols() as u64).map(element).collect();
    let mut y = vec![0.0; a.rows()];
    let (mut times, begin) = (Vec::new(), Instant::now());
    while times.len() < PRODUCTS || begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        plan.run(&x, &mut y)?;
        times.push(start.elapsed().as_secs_f64());
        black_box(&y);
    }
    let iterations = times.len() as u64;
    let timing = timing(times);
    let rows = spm_dist::Rows::of(a.view(), 0..a.rows() as u64);
    let footprint = plan.footprint();
    Ok(Numbers {
        rows: a.rows() as u64,
        entries: a.nnz() as u64,
        kernel: plan.choice().unwrap_or_else(|| kernel.to_owned()),
        transport: None,
        iterations,
        median_s: timing.median_s,
        min_s: timing.min_s,
        p10_s: timing.p10_s,
        p90_s: timing.p90_s,
        plan_s,
        memory_bytes: a.memory_bytes() + footprint.plan_bytes,
        bytes_moved: footprint.bytes_moved,
        bound_err: error_of((rows.row_ptr(), rows.col_ind(), rows.values()), &y),
        boundary_rows: 0,
        halo_bytes: 0,
        neighbours: 0,
        exchange_s: 0.0,
        pack_s: 0.0,
        local_s: timing.median_s,
        wait_s: 0.0,
        boundary_s: 0.0,
        latency_s: None,
        link: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_threads_are_measured() {
        let kernel = Kernel::Fixed("csr-rows".to_owned());
        for (weak, matrix, rows) in [
            (false, "stencil27[n=6]", 216),
            (true, "stencil27[n=4]", 128),
            (false, "mesh2[n=6]", 36),
        ] {
            let found = spm_dist::threads::run(2, |comm| {
                on_rank(comm, Subject { matrix, weak }, &kernel, 0.0)
            });
            let found = found.unwrap();
            let (first, other) = (&found[0], &found[1]);
            assert_eq!((first.rows, &*first.kernel), (rows, "csr-rows"));
            assert!(first.bound_err <= 1.0 && first.iterations >= PRODUCTS as u64, "{first:?}");
            assert!(first.link.is_some() && first.overlap().is_some() && first.boundary_rows > 0);
            assert_eq!(first, other, "all ranks know the same");
        }
        let found = on_threads(2, "stencil27[n=6]", "auto", 0.0).unwrap();
        assert_eq!((found.rows, found.halo_bytes, found.overlap()), (216, 0, None));
        assert!(found.bound_err <= 1.0 && found.kernel != "auto", "{found:?}");
        assert!(on_threads(1, "stencil27[n=6]", "no-such", 0.0).is_err());
    }
}
