//! Times distributed products and prints a line of JSON for each: what `cargo xtask bench scaling` runs on each
//! number of ranks.
//!
//! `scaling MATRIX MODE SECONDS [KERNEL] [RANKS] [WORK]`, where MATRIX is `stencil27[n=100]`, any generator of
//! `spm-testing` with its parameters, or a file `NAME.mtx` or `NAME.npz`. MODE is `strong` (the matrix is divided),
//! `weak` (a stencil of n points a side for each rank) or `threads` (the plan of one process on RANKS threads), and
//! KERNEL is `auto` or a label. RANKS is for `threads`, and for ranks that are threads, without the feature `mpi`.
//! WORK is `spmv`, `spmm=32` (columns) and `cg` (an iteration of conjugate gradients), with commas between them.

use std::error::Error;

use spm_dist::{Communicator, Kernel};
use spm_study::scaling::{Numbers, Subject, Timed, Work, on_rank, on_threads};

struct Arguments {
    matrix: String,
    mode: String,
    seconds: f64,
    kernel: String,
    ranks: usize,
    work: Vec<Work>,
}

impl Arguments {
    fn of_command_line() -> Result<Self, Box<dyn Error>> {
        let mut words = std::env::args().skip(1);
        let mut word = |default: &str| words.next().unwrap_or_else(|| default.to_owned());
        let (matrix, mode) = (word("stencil27[n=60]"), word("strong"));
        let (seconds, kernel, ranks) = (word("2").parse()?, word("auto"), word("2").parse()?);
        let work = word("spmv").split(',').map(str::parse).collect::<Result<_, String>>()?;
        Ok(Self { matrix, mode, seconds, kernel, ranks, work })
    }

    fn measure(&self, comm: &impl Communicator) -> Result<(), spm_dist::DistError> {
        let subject = Subject { matrix: &self.matrix, weak: self.mode == "weak" };
        let kernel = match &*self.kernel {
            "auto" => Kernel::Auto,
            label => Kernel::Fixed(label.to_owned()),
        };
        let timed = Timed { kernel: &kernel, work: &self.work, seconds: self.seconds };
        let numbers = on_rank(comm, subject, &timed)?;
        if comm.rank() == 0 {
            numbers.iter().for_each(print);
        }
        Ok(())
    }

    fn on_threads(&self) -> anyhow::Result<()> {
        print(&on_threads(self.ranks, &self.matrix, &self.kernel, self.seconds)?);
        Ok(())
    }
}

fn print(numbers: &Numbers) {
    println!("{}", serde_json::to_string(numbers).expect("numbers and texts"));
}

#[cfg(feature = "mpi")]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    match Arguments::of_command_line() {
        Ok(arguments) if arguments.mode == "threads" => match arguments.on_threads() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        arguments => spm_dist::mpi::run(|comm| Ok(arguments?.measure(comm)?)),
    }
}

#[cfg(not(feature = "mpi"))]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::of_command_line()?;
    if arguments.mode == "threads" {
        return Ok(arguments.on_threads()?);
    }
    spm_dist::threads::run(arguments.ranks, |comm| arguments.measure(comm))?;
    Ok(())
}
