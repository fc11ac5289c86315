//! `cargo xtask bench scaling`: a distributed product on several numbers of ranks, and a model of more.
//!
//! Builds the example `scaling` of `spm-dist` with MPI and runs it under `mpirun`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use spm_dist::model::{Load, Machine};
use spm_formats::kernel::split_label;
use spm_study::results::{RESULTS_FILE, Row, SYNTHETIC, Status, Writer};

/// The name of the experiment on the command line.
pub(crate) const NAME: &str = "scaling";

/// Ranks of the modelled rows.
const MODELLED: [usize; 8] = [1, 8, 27, 64, 512, 1000, 4096, 16_384];

/// Options of the experiment `scaling`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Numbers of ranks (experiment scaling) [default: 1, 2, 4, ... up to the cores].
    #[arg(long, value_delimiter = ',', value_name = "COUNT")]
    ranks: Option<Vec<usize>>,
    /// A stencil of n points a side for each rank (experiment scaling; stencil27[n=...] only).
    #[arg(long, conflicts_with = "strong")]
    weak: bool,
    /// One matrix for all ranks together (experiment scaling) [default].
    #[arg(long)]
    strong: bool,
}

/// Measures and prints, and writes OUT/scaling/results.csv.
///
/// # Errors
/// No MPI to build or run with; a folder that cannot be written. A failing number of ranks is a row of the
/// results.
pub(crate) fn run(
    args: &Args,
    matrices: &[String],
    min_seconds: Option<f64>,
    out: &Path,
) -> anyhow::Result<()> {
    let mode = if args.weak { "weak" } else { "strong" };
    let default = [format!("stencil27[n={}]", if args.weak { 64 } else { 100 })];
    let matrices = if matrices.is_empty() { &default } else { matrices };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let doubled = std::iter::successors(Some(1), |ranks| Some(2 * ranks));
    let ranks = args.ranks.clone().unwrap_or_else(|| doubled.take_while(|r| *r <= cores).collect());
    ensure!(ranks.iter().all(|&ranks| ranks > 0), "--ranks: at least 1");
    let program = build()?;
    let table = out.join(NAME).join(RESULTS_FILE);
    let mut writer = Writer::open(&table)?;
    for matrix in matrices {
        let mut measured: Vec<Measured> = Vec::new();
        for &ranks in &ranks {
            println!("{matrix}, {mode} scaling, {ranks} ranks ...");
            let case = measure(&program, matrix, mode, min_seconds.unwrap_or(2.0), ranks)?;
            writer.append(&row(matrix, mode, ranks, &case, measured.first()))?;
            match case {
                Ok(numbers) => measured.push(Measured { ranks, numbers }),
                Err(reason) => eprintln!("{ranks} ranks failed: {reason}"),
            }
        }
        print_measured(&measured, args.weak);
        print_model(matrix, &measured, args.weak);
    }
    println!("rows of this run: {}", table.display());
    Ok(())
}

/// What the program printed for one number of ranks.
struct Measured {
    ranks: usize,
    numbers: Value,
}

impl Measured {
    fn get(&self, name: &str) -> f64 {
        self.numbers[name].as_f64().unwrap_or(f64::NAN)
    }
}

/// Compiles the program that the ranks run; returns its path.
fn build() -> anyhow::Result<PathBuf> {
    println!("building the example scaling of spm-dist with MPI ...");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "-p", "spm-dist", "--features", "mpi"]);
    command.args(["--example", NAME, "--message-format=json-render-diagnostics"]);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let gcc = Command::new("gcc").arg("-print-file-name=include").output();
    if let (Ok(gcc), None) = (gcc, std::env::var_os("BINDGEN_EXTRA_CLANG_ARGS")) {
        // libclang alone does not know where the compiler's own headers are.
        let include = String::from_utf8_lossy(&gcc.stdout).trim().to_owned();
        command.env("BINDGEN_EXTRA_CLANG_ARGS", format!("-I{include}"));
    }
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    ensure!(
        output.status.success(),
        "spm-dist does not build with MPI here; crates/spm-dist/README.md names the packages"
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ours = messages.filter(|message| message["target"]["name"] == NAME);
    let path =
        ours.filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?))).next_back();
    path.context("cargo names no program")
}

/// The numbers of one run, or why there are none.
fn measure(
    program: &Path,
    matrix: &str,
    mode: &str,
    seconds: f64,
    ranks: usize,
) -> anyhow::Result<Result<Value, String>> {
    let mut command = Command::new("mpirun");
    command.args(["-n", &ranks.to_string()]).arg(program).args([matrix, mode]);
    command.arg(seconds.to_string());
    // Open MPI refuses root, and more ranks than cores, unless it is told.
    for variable in [
        "OMPI_ALLOW_RUN_AS_ROOT",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
        "OMPI_MCA_rmaps_base_oversubscribe",
    ] {
        command.env(variable, "1");
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("there is no mpirun; crates/spm-dist/README.md names the packages")
        }
        Err(error) => return Err(error).context("cannot run mpirun"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers = text.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    Ok(match numbers {
        Some(numbers) if output.status.success() => Ok(numbers),
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let line = errors.lines().find(|line| !line.trim_matches(['-', ' ']).is_empty());
            Err(line.unwrap_or("no output").to_owned())
        }
    })
}

/// The line of results.csv of one run.
fn row(
    matrix: &str,
    mode: &str,
    ranks: usize,
    case: &Result<Value, String>,
    first: Option<&Measured>,
) -> Row {
    let row = Row {
        experiment: format!("{NAME}-{mode}"),
        matrix: format!("{SYNTHETIC}{matrix}"),
        op: "spmv".to_owned(),
        backend: "cpu".to_owned(),
        threads: Some(1),
        precision: "f64".to_owned(),
        ranks: Some(ranks as u64),
        gpus: Some(0),
        ..Row::default()
    };
    let numbers = match case {
        Ok(numbers) => numbers,
        Err(reason) => return Row { status: Status::Failed, reason: reason.clone(), ..row },
    };
    let run = Measured { ranks, numbers: numbers.clone() };
    let number = |name: &str| numbers[name].as_f64();
    let whole = |name: &str| number(name).map(|value| value as u64);
    let (kernel, params) = split_label(numbers["kernel"].as_str().unwrap_or_default());
    let median = run.get("median_s");
    let mismatch = run.get("bound_err") > 1.0;
    Row {
        rows: whole("rows").unwrap_or_default(),
        cols: whole("rows").unwrap_or_default(),
        entries: whole("entries").unwrap_or_default(),
        kernel: kernel.to_owned(),
        params: params.to_owned(),
        iterations: whole("iterations"),
        median_s: number("median_s"),
        min_s: number("min_s"),
        p10_s: number("p10_s"),
        p90_s: number("p90_s"),
        gflops: Some(2.0 * run.get("entries") / median / 1e9),
        gbytes_per_s: Some(run.get("bytes_moved") * ranks as f64 / median / 1e9),
        efficiency: Some(efficiency(first.unwrap_or(&run), &run, mode == "weak")),
        plan_s: number("plan_s"),
        memory_bytes: whole("memory_bytes"),
        bound_err: number("bound_err"),
        status: if mismatch { Status::Mismatch } else { Status::Ok },
        reason: if mismatch { "differs from the reference".to_owned() } else { String::new() },
        halo_bytes: whole("halo_bytes"),
        neighbours: whole("neighbours"),
        exchange_s: number("exchange_s"),
        overlap: (run.get("halo_bytes") > 0.0).then(|| overlap(&run)),
        ..row
    }
}

/// The part of the exchange that the local product hides.
fn overlap(run: &Measured) -> f64 {
    let left = run.get("pack_s") + run.get("wait_s");
    (1.0 - left / run.get("exchange_s")).clamp(0.0, 1.0)
}

/// Of a run against the first one: the time of a rank's work over the time of the run.
fn efficiency(first: &Measured, run: &Measured, weak: bool) -> f64 {
    let ratio = first.get("median_s") / run.get("median_s");
    if weak { ratio } else { ratio * first.ranks as f64 / run.ranks as f64 }
}

fn print_measured(measured: &[Measured], weak: bool) {
    println!(
        "measured: ranks, median us (local, wait, boundary, pack), exchange alone us, hidden,"
    );
    println!("          halo bytes, neighbours, kernel, efficiency");
    for run in measured {
        let micros = |name: &str| run.get(name) * 1e6;
        println!(
            "{:6} {:10.1} ({:.1} {:.1} {:.1} {:.1}) {:8.1} {:4.0} % {:9} {:3} {} {:5.1} %",
            run.ranks,
            micros("median_s"),
            micros("local_s"),
            micros("wait_s"),
            micros("boundary_s"),
            micros("pack_s"),
            micros("exchange_s"),
            100.0 * overlap(run),
            run.get("halo_bytes"),
            run.get("neighbours"),
            run.numbers["kernel"].as_str().unwrap_or_default(),
            100.0 * efficiency(&measured[0], run, weak),
        );
    }
}

/// The machine that the model takes, from the run on the most ranks.
fn machine(measured: &[Measured]) -> Option<Machine> {
    let most = measured.iter().filter(|run| run.ranks > 1).max_by_key(|run| run.ranks)?;
    let seconds = most.get("local_s") + most.get("boundary_s");
    let bandwidth = most.get("bytes_moved") / seconds;
    Some(Machine { bandwidth, latency: most.get("latency_s"), link: most.get("link") })
}

fn side_of(matrix: &str) -> Option<f64> {
    matrix.strip_prefix("stencil27[n=")?.strip_suffix(']')?.parse().ok()
}

fn print_model(matrix: &str, measured: &[Measured], weak: bool) {
    let (Some(machine), Some(side)) = (machine(measured), side_of(matrix)) else {
        println!("no model: it needs a run on two ranks at least, and stencil27[n=SIDE]");
        return;
    };
    let bytes_per_row = measured
        .iter()
        .map(|run| run.get("bytes_moved") * run.ranks as f64 / run.get("rows"))
        .fold(0.0, f64::max);
    println!(
        "modelled with {:.2} GB/s a rank, messages of {:.1} us and {:.2} GB/s, as between ranks of this",
        machine.bandwidth / 1e9,
        machine.latency * 1e6,
        machine.link / 1e9
    );
    println!(
        "machine: ranks, halo bytes, neighbours, us and efficiency without overlap, with overlap"
    );
    let load = |ranks: usize| {
        let side = if weak { side } else { side / (ranks as f64).cbrt() };
        Load::stencil27(side, ranks, bytes_per_row, 8.0)
    };
    let alone = machine.product(&load(1), true);
    for ranks in MODELLED {
        let load = load(ranks);
        let seconds = [false, true].map(|overlap| machine.product(&load, overlap));
        let work = if weak { alone } else { alone / ranks as f64 };
        println!(
            "{ranks:6} {:9.0} {:3} {:10.1} {:5.1} % {:10.1} {:5.1} %",
            load.halo,
            load.neighbours,
            seconds[0] * 1e6,
            100.0 * work / seconds[0],
            seconds[1] * 1e6,
            100.0 * work / seconds[1],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ranks: usize, median_s: f64) -> Measured {
        let numbers = serde_json::json!({
            "ranks": ranks, "rows": 1000, "entries": 27000, "kernel": "csr-rows[simd=on]",
            "median_s": median_s, "exchange_s": 8e-5, "pack_s": 1e-5, "wait_s": 1e-5,
            "bytes_moved": 3e5, "bound_err": 0.5, "halo_bytes": 800.0, "neighbours": 1.0,
        });
        Measured { ranks, numbers }
    }

    #[test]
    fn efficiency_is_of_the_first_run() {
        let (one, two) = (run(1, 4e-3), run(2, 2.5e-3));
        assert_eq!(efficiency(&one, &two, false), 0.8);
        assert_eq!(efficiency(&one, &two, true), 1.6);
        assert!((overlap(&two) - 0.75).abs() < 1e-12);
    }

    #[test]
    fn a_run_is_a_row() {
        let two = run(2, 2.5e-3);
        let one = run(1, 4e-3);
        let found = row("stencil27[n=10]", "strong", 2, &Ok(two.numbers), Some(&one));
        assert_eq!((found.kernel.as_str(), found.params.as_str()), ("csr-rows", "simd=on"));
        assert_eq!(
            (found.ranks, found.halo_bytes, found.efficiency),
            (Some(2), Some(800), Some(0.8))
        );
        assert_eq!(found.status, Status::Ok);
        let failed = row("a", "weak", 4, &Err("no such file".to_owned()), None);
        assert_eq!((failed.status, failed.reason.as_str()), (Status::Failed, "no such file"));
    }
}
