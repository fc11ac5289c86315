//! Measures a distributed product on CPU cores, a rank on each, and the plan of one process on as many threads.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Context;
use spm_cpu::{PlanOptions, spmv};
use spm_dist::model::Machine;
use spm_dist::{
    CgOptions, Communicator, DistCsr, DistError, DistOperator, Options, Times, conjugate_gradients,
    largest,
};
use spm_formats::kernel::split_label;
use spm_formats::timing::Timing;
use spm_testing::distributed::{element, error_of};

use super::{
    CG_ITERATIONS, CG_START, Division, Numbers, Run, Subject, Timed, Work, error_of_columns, most,
    operand, per_iteration,
};

/// Products at least.
const PRODUCTS: usize = 10;
/// Samples of conjugate gradients at least.
const SAMPLES: usize = 3;
/// Elements of vectors that an iteration of conjugate gradients reads or writes for each row, beside its product:
/// one loop over seven vectors of which six change, and two dot products.
const CG_VECTORS: usize = 16;
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

/// Times products or conjugate gradients on the ranks of a communicator, this one among them. Collective.
///
/// # Errors
/// No such matrix, or one that cannot be divided so; a kernel that is not there; errors of the communication.
pub fn on_rank(
    comm: &impl Communicator,
    subject: Subject<'_>,
    timed: &Timed<'_>,
) -> Result<Vec<Numbers>, DistError> {
    subject.for_each(comm, timed.work, |a, work| measure(comm, a, work, timed))
}

/// Seconds of so many iterations of conjugate gradients for `b`, from 0, on the rank that takes the longest, and
/// how many were made.
fn iterations(
    comm: &impl Communicator,
    op: &mut DistOperator<f64>,
    b: &[f64],
    count: usize,
) -> Result<(f64, usize), DistError> {
    let mut solution = vec![0.0; b.len()];
    comm.all_gather(&[])?;
    let options = CgOptions { tolerance: 0.0, max_iterations: count };
    let start = Instant::now();
    let found = conjugate_gradients(comm, op, b, &mut solution, &options)?;
    let seconds = largest(comm, start.elapsed().as_secs_f64())?;
    Ok((seconds, found.iterations))
}

fn measure(
    comm: &impl Communicator,
    a: DistCsr<f64>,
    work: Work,
    timed: &Timed<'_>,
) -> Result<Numbers, DistError> {
    let start = Instant::now();
    let mut options = Options::default();
    (options.kernel, options.columns) = (timed.kernel.clone(), work.columns());
    let mut op = DistOperator::new(comm, a, &options)?;
    let plan_s = largest(comm, start.elapsed().as_secs_f64())?;
    let (k, rows) = (work.columns(), op.matrix().local_rows());
    let first = op.matrix().col_partition().range(comm.rank()).start;
    let x = operand(first, op.matrix().local_cols(), k);
    let mut y = vec![0.0; rows * k];
    op.apply(&x, &mut y)?;
    let bound_err = largest(comm, error_of_columns(op.matrix(), &y, k))?;

    op.set_overlap(false);
    let (_, apart) = products(comm, &mut op, (&x, &mut y), timed.seconds / 2.0)?;
    op.set_overlap(true);
    let (mut times, parts) = products(comm, &mut op, (&x, &mut y), timed.seconds)?;
    let mut of_sample = 1;
    if work == Work::Cg {
        (times, of_sample) = (Vec::new(), CG_ITERATIONS);
        let begin = Instant::now();
        while times.len() < SAMPLES || largest(comm, begin.elapsed().as_secs_f64())? < timed.seconds
        {
            let start = iterations(comm, &mut op, &y, CG_START)?;
            let all = iterations(comm, &mut op, &y, CG_START + CG_ITERATIONS)?;
            times.push(per_iteration(start, all));
        }
    }
    let timing = timing(times);
    let (small, large) = (8, 1 << 20);
    let link = match comm.size() {
        1 => None,
        _ => {
            let timed = (message(comm, small)?, message(comm, large)?);
            Some(Machine::link((small as f64, timed.0), (large as f64, timed.1)))
        }
    };
    let vectors = if work == Work::Cg { CG_VECTORS * rows * size_of::<f64>() } else { 0 };
    let run = Run {
        work,
        kernel: op.kernel().to_owned(),
        transport: None,
        iterations: of_sample * timing.iterations,
        timing,
        plan_s,
        memory_bytes: most(comm, op.memory_bytes())?,
        bytes_moved: most(comm, op.bytes_moved() + vectors as u64)?,
        bound_err,
        exchange_s: apart.pack + apart.wait,
        parts,
        link,
    };
    Ok(Numbers::new(Division::of(comm, op.matrix(), k)?, run))
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
    let a = Subject { matrix, weak: false }.whole()?;
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
    let timing = timing(times);
    let rows = spm_dist::Rows::of(a.view(), 0..a.rows() as u64);
    let footprint = plan.footprint();
    let (rows_of_a, entries) = (a.rows() as u64, a.nnz() as u64);
    let division = Division { rows: rows_of_a, entries, ..Division::default() };
    let run = Run {
        work: Work::Spmv,
        kernel: plan.choice().unwrap_or_else(|| kernel.to_owned()),
        transport: None,
        iterations: timing.iterations,
        timing,
        plan_s,
        memory_bytes: a.memory_bytes() + footprint.plan_bytes,
        bytes_moved: footprint.bytes_moved,
        bound_err: error_of((rows.row_ptr(), rows.col_ind(), rows.values()), &y),
        exchange_s: 0.0,
        parts: Times { local: timing.median_s, ..Times::default() },
        link: None,
    };
    Ok(Numbers::new(division, run))
}

#[cfg(test)]
mod tests {
    use spm_dist::Kernel;

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
                let timed = Timed { kernel: &kernel, work: &[Work::Spmv], seconds: 0.0 };
                Ok(on_rank(comm, Subject { matrix, weak }, &timed)?.swap_remove(0))
            });
            let found = found.unwrap();
            let (first, other) = (&found[0], &found[1]);
            assert_eq!((first.rows, &*first.kernel), (rows, "csr-rows"));
            assert!(first.bound_err <= 1.0 && first.iterations >= PRODUCTS as u64, "{first:?}");
            assert!(first.link.is_some() && first.overlap().is_some() && first.boundary_rows > 0);
            assert_eq!(first, other, "all ranks know the same");
        }
        let work = [Work::Spmm(3), Work::Cg];
        let found = spm_dist::threads::run(2, |comm| {
            let timed = Timed { kernel: &Kernel::Auto, work: &work, seconds: 0.0 };
            on_rank(comm, Subject { matrix: "stencil27[n=4]", weak: true }, &timed)
        });
        let found = found.unwrap().swap_remove(0);
        assert_eq!(found.iter().map(|found| found.work).collect::<Vec<_>>(), work);
        assert!(found.iter().all(|found| found.bound_err <= 1.0 && found.median_s > 0.0));
        assert!(found[0].overlap().is_some() && found[1].overlap().is_none());
        let found = on_threads(2, "stencil27[n=6]", "auto", 0.0).unwrap();
        assert_eq!((found.rows, found.halo_bytes, found.overlap()), (216, 0, None));
        assert!(found.bound_err <= 1.0 && found.kernel != "auto", "{found:?}");
        assert!(on_threads(1, "stencil27[n=6]", "no-such", 0.0).is_err());
        assert!(on_threads(1, "no-such.mtx", "auto", 0.0).is_err());
    }
}
