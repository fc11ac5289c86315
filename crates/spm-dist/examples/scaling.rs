//! Times a distributed product and prints one line of JSON: what `cargo xtask bench scaling` runs on each
//! number of ranks.
//!
//! `scaling MATRIX MODE SECONDS [KERNEL] [RANKS]`, where MATRIX is `stencil27[n=100]` or any generator of
//! `spm-testing` with its parameters, MODE is `strong` (the matrix is divided), `weak` (a stencil of n
//! points a side for each rank) or `threads` (the plan of one process on RANKS threads), and KERNEL is
//! `auto` or a label. RANKS is for `threads`, and for ranks that are threads, without the feature `mpi`.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use spm_cpu::{PlanOptions, spmv};
use spm_dist::model::Machine;
use spm_dist::{
    Boxes, Communicator, DistCsr, DistError, DistOperator, Kernel, Options, Partition, Rows, Times,
    largest,
};
use spm_formats::Csr;
use spm_testing::distributed::{element, error_of, value};
use spm_testing::generate;

struct Arguments {
    matrix: String,
    mode: String,
    seconds: f64,
    kernel: String,
    ranks: usize,
}

impl Arguments {
    fn of_command_line() -> Result<Self, Box<dyn Error>> {
        let mut words = std::env::args().skip(1);
        let mut word = |default: &str| words.next().unwrap_or_else(|| default.to_owned());
        let (matrix, mode) = (word("stencil27[n=60]"), word("strong"));
        let (seconds, kernel, ranks) = (word("2").parse()?, word("auto"), word("2").parse()?);
        Ok(Self { matrix, mode, seconds, kernel, ranks })
    }

    /// The side of a stencil that ranks generate themselves.
    fn side(&self) -> Option<u64> {
        self.matrix.strip_prefix("stencil27[n=")?.strip_suffix(']')?.parse().ok()
    }

    /// The whole matrix, for what has no rows of its own to generate.
    fn whole(&self) -> Result<Csr<f64>, DistError> {
        let wrong = |error: String| DistError::File(format!("{}: {error}", self.matrix));
        let spec = generate::named(&self.matrix).map_err(|error| wrong(error.to_string()))?;
        spec.generate().map_err(|error| wrong(error.to_string()))
    }

    fn rows(&self, comm: &impl Communicator) -> Result<(Partition, Rows<f64>), DistError> {
        match self.side() {
            Some(n) => {
                let boxes = match &*self.mode {
                    "weak" => Boxes::of_equal_size(n, comm.size()),
                    _ => Boxes::new([n; 3], comm.size()),
                };
                Ok((boxes.partition(), boxes.stencil27(comm.rank(), value)?))
            }
            None if self.mode == "weak" => {
                Err(DistError::File("weak scaling is for stencil27[n=SIDE]".to_owned()))
            }
            None => {
                let a = self.whole()?;
                let rows = Partition::by_entries(a.row_ptr(), comm.size());
                let own = Rows::of(a.view(), rows.range(comm.rank()));
                Ok((rows, own))
            }
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Seconds of each product, on the rank that takes the longest, and the parts on that rank.
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
        let mut go_on =
            [f64::from(u8::from(begin.elapsed().as_secs_f64() < seconds || times.len() < 10))];
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
        Ok(largest(comm, median(&mut parts.iter().map(of).collect::<Vec<_>>()))?)
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
    for _ in 0..60 {
        let start = Instant::now();
        // Rank 0 sends, then receives; rank 1 receives, then sends.
        there.start()?;
        there.wait()?;
        back.start()?;
        back.wait()?;
        times.push(start.elapsed().as_secs_f64() / 2.0);
    }
    Ok(largest(comm, if rank == 0 { median(&mut times) } else { 0.0 })?)
}

fn measure(comm: &impl Communicator, arguments: &Arguments) -> Result<(), DistError> {
    let start = Instant::now();
    let (partition, rows) = arguments.rows(comm)?;
    let total = comm.all_gather(&(rows.nnz() as u64).to_le_bytes())?;
    let entries: u64 =
        total.iter().map(|n| u64::from_le_bytes(n[..].try_into().unwrap_or([0; 8]))).sum();
    let a = DistCsr::new(comm, &partition, &partition, rows)?;
    let assembly = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut options = Options::default();
    if arguments.kernel != "auto" {
        options.kernel = Kernel::Fixed(arguments.kernel.clone());
    }
    let mut op = DistOperator::new(comm, a, &options)?;
    let plan = largest(comm, start.elapsed().as_secs_f64())?;
    let x: Vec<f64> = partition.range(comm.rank()).map(element).collect();
    let mut y = vec![0.0; op.matrix().local_rows()];
    op.apply(&x, &mut y)?;
    let own = op.matrix().to_rows();
    let error = largest(comm, error_of((own.row_ptr(), own.col_ind(), own.values()), &y))?;
    drop(own);

    op.set_overlap(false);
    let (_, apart) = products(comm, &mut op, (&x, &mut y), arguments.seconds / 2.0)?;
    op.set_overlap(true);
    let (mut times, parts) = products(comm, &mut op, (&x, &mut y), arguments.seconds)?;
    let (small, large) = (8, 1 << 20);
    let (latency, link) = match comm.size() {
        1 => (0.0, f64::MAX),
        _ => {
            let timed = (message(comm, small)?, message(comm, large)?);
            Machine::link((small as f64, timed.0), (large as f64, timed.1))
        }
    };
    let halo = op.matrix().halo();
    let number = |value: f64| largest(comm, value);
    let ghosts = number((halo.ghosts().len() * size_of::<f64>()) as f64)?;
    let neighbours = number(halo.neighbours() as f64)?;
    let boundary = number(op.matrix().boundary_rows() as f64)?;
    let bytes = number(op.bytes_moved() as f64)?;
    let memory = number(op.memory_bytes() as f64)?;
    let exchange = apart.pack + apart.wait;
    let median_s = median(&mut times);
    let percentile = |p: usize| times[(times.len() - 1) * p / 100];
    if comm.rank() == 0 {
        let n = partition.total();
        println!(
            "{{\"ranks\":{},\"rows\":{n},\"entries\":{entries},\"kernel\":\"{}\",\"iterations\":{},\
             \"median_s\":{median_s:e},\"min_s\":{:e},\"p10_s\":{:e},\"p90_s\":{:e},\
             \"plan_s\":{plan:e},\"assembly_s\":{assembly:e},\"memory_bytes\":{memory},\
             \"bytes_moved\":{bytes},\"bound_err\":{error:e},\"halo_bytes\":{ghosts},\
             \"neighbours\":{neighbours},\"boundary_rows\":{boundary},\"exchange_s\":{exchange:e},\
             \"pack_s\":{:e},\"local_s\":{:e},\"wait_s\":{:e},\"boundary_s\":{:e},\
             \"latency_s\":{latency:e},\"link\":{link:e}}}",
            comm.size(),
            op.kernel(),
            times.len(),
            percentile(0),
            percentile(10),
            percentile(90),
            parts.pack,
            parts.local,
            parts.wait,
            parts.boundary,
        );
    }
    Ok(())
}

/// The plan of one process on several threads, for comparison.
fn shared_memory(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let a = match arguments.side() {
        Some(n) => {
            let rows = Boxes::new([n; 3], 1).stencil27(0, value)?;
            let row_ptr = rows.row_ptr().iter().map(|&end| end as u32).collect();
            let col_ind = rows.col_ind().iter().map(|&col| col as u32).collect();
            let size = rows.rows();
            Csr::new((size, size), row_ptr, col_ind, rows.values().to_vec())?
        }
        None => arguments.whole()?,
    };
    let (id, parameters) = spm_formats::kernel::split_label(&arguments.kernel);
    let kernel = spmv::find::<f64>(id).ok_or("no such kernel")?;
    let parameters = kernel.info.parse_parameters(parameters)?;
    let start = Instant::now();
    let plan = kernel.plan(&a, &parameters, &PlanOptions::with_threads(arguments.ranks))?;
    let plan_s = start.elapsed().as_secs_f64();
    let x: Vec<f64> = (0..a.cols() as u64).map(element).collect();
    let mut y = vec![0.0; a.rows()];
    let (mut times, begin) = (Vec::new(), Instant::now());
    while times.len() < 10 || begin.elapsed().as_secs_f64() < arguments.seconds {
        let start = Instant::now();
        plan.run(&x, &mut y)?;
        times.push(start.elapsed().as_secs_f64());
        black_box(&y);
    }
    let rows = Rows::of(a.view(), 0..a.rows() as u64);
    let error = error_of((rows.row_ptr(), rows.col_ind(), rows.values()), &y);
    let label = plan.choice().unwrap_or_else(|| arguments.kernel.clone());
    let (iterations, median_s) = (times.len(), median(&mut times));
    println!(
        "{{\"threads\":{},\"rows\":{},\"entries\":{},\"kernel\":\"{label}\",\"iterations\":{iterations},\
         \"median_s\":{median_s:e},\"min_s\":{:e},\"plan_s\":{plan_s:e},\"bytes_moved\":{},\
         \"bound_err\":{error:e}}}",
        arguments.ranks,
        a.rows(),
        a.nnz(),
        times[0],
        plan.footprint().bytes_moved,
    );
    Ok(())
}

#[cfg(feature = "mpi")]
fn main() -> std::process::ExitCode {
    let threads = |arguments: &Arguments| arguments.mode == "threads";
    match Arguments::of_command_line() {
        Ok(arguments) if threads(&arguments) => match shared_memory(&arguments) {
            Ok(()) => std::process::ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                std::process::ExitCode::FAILURE
            }
        },
        arguments => spm_dist::mpi::run(|comm| Ok(measure(comm, &arguments?)?)),
    }
}

#[cfg(not(feature = "mpi"))]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::of_command_line()?;
    if arguments.mode == "threads" {
        return shared_memory(&arguments);
    }
    spm_dist::threads::run(arguments.ranks, |comm| measure(comm, &arguments))?;
    Ok(())
}
