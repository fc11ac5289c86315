//! `auto` against the serial kernel of each operation, from 1 x 1 up and on any number of threads.
//!
//! ```text
//! cargo run --release --manifest-path benchmarks/rust/Cargo.toml --target-dir target \
//!     --bin auto_serial [THREADS...]
//! ```
//!
//! Both are planned once and take turns; a figure is the fastest of the rounds of each, in f64.
//! First the time of one call on the 9 x 9 matrix, then a table of time of `auto` / time of the
//! serial kernel. `=` is a plan of `auto` that is the serial kernel's own: the ratio is 1 by construction,
//! and not measured. A cell above 1.02 gets more rounds with the same two plans, up to 8 times as
//! many: another process only ever makes a call slower.

use std::error::Error;
use std::time::Instant;

use spm_cpu::{PlanOptions, spmm, spmv, transpose};
use spm_formats::kernel::TransposeOutput;
use spm_formats::{Csr, DenseShape, Layout};
use spm_study::recipe;

const SIZES: [usize; 14] =
    [1, 2, 3, 5, 9, 20, 50, 100, 300, 1000, 3000, 10_000, 100_000, 1_000_000];
const OPERATIONS: [Operation; 5] = [
    Operation::Spmv,
    Operation::Spmm(1),
    Operation::Spmm(8),
    Operation::Spmm(32),
    Operation::Transpose,
];
const ROUNDS: usize = 15;
/// A ratio above this gets more rounds, up to so many times as many.
const SUSPECT: f64 = 1.02;
const PATIENCE: usize = 8;
/// What a round of one side takes at least, in seconds.
const SIDE: f64 = 1e-4;
/// Bytes of X and Y that a case may take.
const MOST_BYTES: usize = 1 << 30;

#[derive(Clone, Copy)]
enum Operation {
    Spmv,
    /// With so many columns, row-major.
    Spmm(usize),
    Transpose,
}

/// A call of a prepared plan, and what it chose.
type Call<'a> = (Box<dyn FnMut() + 'a>, String);

impl Operation {
    fn name(self) -> String {
        match self {
            Self::Spmv => "spmv".to_owned(),
            Self::Spmm(k) => format!("spmm k={k}"),
            Self::Transpose => "transpose".to_owned(),
        }
    }

    /// Id of the kernel that `auto` is compared with.
    fn serial(self) -> &'static str {
        if matches!(self, Self::Transpose) { "serial" } else { "csr-serial" }
    }

    fn plan<'a>(
        self,
        a: &'a Csr<f64>,
        auto: bool,
        threads: usize,
    ) -> Result<Call<'a>, Box<dyn Error>> {
        let options = PlanOptions::with_threads(threads);
        let id = if auto { "auto" } else { self.serial() };
        let number = |i: usize| (i as f64 * 0.7).sin() + 1.5;
        Ok(match self {
            Self::Spmv => {
                let kernel = spmv::find::<f64>(id).ok_or("no such kernel")?;
                let plan = kernel.plan(a.view(), &kernel.info.defaults(), &options)?;
                let choice = plan.choice().unwrap_or_default();
                let (x, mut y): (Vec<_>, _) =
                    ((0..a.cols()).map(number).collect(), vec![0.0; a.rows()]);
                (Box::new(move || plan.run(&x, &mut y).expect("right lengths")), choice)
            }
            Self::Spmm(k) => {
                let kernel = spmm::find::<f64>(id).ok_or("no such kernel")?;
                let dense = DenseShape { k, layout: Layout::RowMajor };
                let plan = kernel.plan(a.view(), dense, &kernel.info.defaults(), &options)?;
                let choice = plan.choice().unwrap_or_default();
                let (x, mut y): (Vec<_>, _) =
                    ((0..a.cols() * k).map(number).collect(), vec![0.0; a.rows() * k]);
                (Box::new(move || plan.run(&x, &mut y).expect("right lengths")), choice)
            }
            Self::Transpose => {
                let kernel = transpose::find::<f64>(id).ok_or("no such kernel")?;
                let mut plan = kernel.plan(a.view(), &kernel.info.defaults(), &options)?;
                let choice = plan.choice().unwrap_or_default();
                let mut output = TransposeOutput::new(a.cols(), a.nnz());
                (Box::new(move || plan.run(&mut output).expect("right lengths")), choice)
            }
        })
    }
}

/// n x n with `per_row` entries in each row, in columns that are far from each other.
fn matrix(n: usize, per_row: usize) -> Csr<f64> {
    let row = |i: usize| {
        let mut columns: Vec<u32> =
            (0..per_row).map(|j| ((i * 7919 + j * n / per_row) % n) as u32).collect();
        columns.sort_unstable();
        columns
    };
    let pointers = (0..=n).map(|i| (i * per_row) as u32).collect();
    let values = (0..n * per_row).map(|i| (i as f64 * 0.3).cos()).collect();
    Csr::new((n, n), pointers, (0..n).flat_map(row).collect(), values).expect("ascending columns")
}

/// Seconds of a call of `auto`, in the fastest of the rounds.
fn seconds(operation: Operation, a: &Csr<f64>, threads: usize) -> Result<f64, Box<dyn Error>> {
    let (auto, _) = operation.plan(a, true, threads)?;
    let (serial, _) = operation.plan(a, false, threads)?;
    Ok(turns(auto, serial).0)
}

/// Time of `auto` / time of the serial kernel, and what `auto` chose; `None` for a plan that is the
/// serial kernel's own.
fn compare(
    operation: Operation,
    a: &Csr<f64>,
    threads: usize,
) -> Result<Option<(f64, String)>, Box<dyn Error>> {
    let (auto, choice) = operation.plan(a, true, threads)?;
    if choice == operation.serial() {
        return Ok(None);
    }
    let (serial, _) = operation.plan(a, false, threads)?;
    let (of_auto, of_serial) = turns(auto, serial);
    Ok(Some((of_auto / of_serial, choice)))
}

/// Seconds of a call of each side, in the fastest of the rounds.
fn turns(mut auto: impl FnMut(), mut serial: impl FnMut()) -> (f64, f64) {
    let start = Instant::now();
    serial();
    serial();
    let once = start.elapsed().as_secs_f64() / 2.0;
    let calls = (SIDE / once.max(2e-9)).ceil().max(1.0) as usize;
    let side = |call: &mut dyn FnMut()| {
        call();
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed().as_secs_f64() / calls as f64
    };
    let (mut of_auto, mut of_serial) = (f64::INFINITY, f64::INFINITY);
    for round in 0..PATIENCE * ROUNDS {
        if round >= ROUNDS && of_auto <= SUSPECT * of_serial {
            break;
        }
        of_auto = of_auto.min(side(&mut auto));
        of_serial = of_serial.min(side(&mut serial));
    }
    (of_auto, of_serial)
}

fn main() -> Result<(), Box<dyn Error>> {
    let pools: Vec<usize> =
        std::env::args().skip(1).map(|t| t.parse()).collect::<Result<_, _>>()?;
    let pools = if pools.is_empty() { vec![1, 2, 8] } else { pools };
    let cage4 = recipe::named("cage4")?.generate::<f64>()?;
    println!("A call on cage4 (9 x 9, 49 entries), nanoseconds:\n");
    let names: Vec<String> = OPERATIONS.iter().map(|o| o.name()).collect();
    println!("| threads | {} |", names.join(" | "));
    println!("| ---: |{}", " ---: |".repeat(names.len()));
    for &threads in &pools {
        let times = OPERATIONS
            .iter()
            .map(|&operation| Ok(format!("{:.0}", seconds(operation, &cage4, threads)? * 1e9)));
        let times = times.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
        println!("| {threads} | {} |", times.join(" | "));
    }

    println!("\nTime of `auto` / time of the serial kernel, 1 to 8 entries a row:\n");
    println!("| rows | entries | threads | {} |", names.join(" | "));
    println!("| ---: | ---: | ---: |{}", " ---: |".repeat(names.len()));
    let (mut worst, mut cells, mut same) = ((0.0, String::new()), 0, 0);
    for n in SIZES {
        for per_row in [1, 8] {
            let entries = n * per_row.min(n);
            if per_row > 1 && entries == n {
                continue;
            }
            let label = format!("{n} x {n} with {entries} entries");
            let a = matrix(n, per_row.min(n));
            for &threads in &pools {
                print!("| {n} | {} | {threads} |", a.nnz());
                for operation in OPERATIONS {
                    if matches!(operation, Operation::Spmm(k) if 16 * n * k > MOST_BYTES / 4) {
                        print!(" - |");
                        continue;
                    }
                    let Some((ratio, choice)) = compare(operation, &a, threads)? else {
                        same += 1;
                        print!(" = |");
                        continue;
                    };
                    cells += 1;
                    if ratio > worst.0 {
                        let case =
                            format!("{}, {label}, {threads} threads: {choice}", operation.name());
                        worst = (ratio, case);
                    }
                    print!(" {ratio:.2} |");
                }
                println!();
            }
        }
    }
    println!("\n{same} plans are the serial kernel's own.");
    println!("The largest of the {cells} other ratios: {:.3} ({}).", worst.0, worst.1);
    Ok(())
}
