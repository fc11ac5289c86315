//! `cargo xtask bench scaling`: a distributed product on several numbers of ranks, and a model of more.
//!
//! On CPU cores it builds the example `scaling` of `spm-study` with MPI and runs it under `mpirun`. On GPUs the ranks
//! are threads of this process.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use spm_dist::Kernel;
use spm_formats::kernel::{Backend, split_label};
use spm_study::bench::environment;
use spm_study::results::{RESULTS_FILE, Row, Status, Writer};
use spm_study::scaling::{MODELLED, Model, Numbers, Subject, Timed, Work, on_devices, open_gpus};

/// The name of the experiment on the command line.
pub(crate) const NAME: &str = "scaling";

/// Options of the experiment `scaling`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Numbers of ranks over MPI (experiment scaling) [default: 1, 2, 4, ... up to the cores; none with
    /// --gpus].
    #[arg(long, value_delimiter = ',', value_name = "COUNT", value_parser = parse_count)]
    ranks: Option<Vec<usize>>,
    /// Numbers of GPUs of this host, a rank on each (experiment scaling).
    #[arg(long, value_delimiter = ',', value_name = "COUNT", value_parser = parse_count)]
    gpus: Option<Vec<usize>>,
    /// A stencil of n points a side for each rank (experiment scaling; stencil27[n=...] only).
    #[arg(long, conflicts_with = "strong")]
    weak: bool,
    /// One matrix for all ranks together (experiment scaling) [default].
    #[arg(long)]
    strong: bool,
    /// Time an iteration of conjugate gradients too (experiment scaling; stencil27[n=...] only).
    #[arg(long)]
    cg: bool,
}

/// At least one.
fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least 1".to_owned()),
        count => count.map_err(|error| error.to_string()),
    }
}

/// Measures and prints, and writes OUT/scaling/results.csv and environment.json.
///
/// # Errors
/// No MPI to build or run with; a folder that cannot be written. A number of ranks that fails, or that there are
/// not enough GPUs for, is a row of the results.
pub(crate) fn run(
    args: &Args,
    matrices: &[String],
    (min_seconds, columns): (Option<f64>, Option<&[usize]>),
    out: &Path,
) -> anyhow::Result<()> {
    let mut work: Vec<Work> =
        columns.unwrap_or(&[1]).iter().copied().map(Work::columns_of).collect();
    work.extend(args.cg.then_some(Work::Cg));
    let seconds = min_seconds.unwrap_or(2.0);
    let ranks = match (&args.ranks, &args.gpus) {
        (Some(ranks), _) => ranks.clone(),
        (None, Some(_)) => Vec::new(),
        (None, None) => {
            let doubled = std::iter::successors(Some(1), |ranks| Some(2 * ranks));
            doubled.take_while(|ranks| *ranks <= environment::cores()).collect()
        }
    };
    let program = if ranks.is_empty() { None } else { Some(build()?) };
    let (devices, missing) = match &args.gpus {
        Some(gpus) => open_gpus(gpus.iter().copied().max().unwrap_or_default()),
        None => (Vec::new(), None),
    };
    let folder = out.join(NAME);
    let settings = serde_json::json!({
        "min_seconds": seconds,
        "matrices": matrices,
        "scaling": if args.weak { "weak" } else { "strong" },
        "ranks": ranks,
        "gpus": args.gpus,
        "work": work,
    });
    // Ranks share the bandwidth of as many threads.
    let mut threads = ranks.clone();
    threads.retain(|&count| count <= environment::cores());
    let device = devices.first().ok_or_else(|| match &missing {
        Some(error) => error.to_string(),
        None => "not asked for".to_owned(),
    });
    let device = device.as_ref().map(|device| *device).map_err(String::as_str);
    let bandwidths = environment::Bandwidths::measure(&threads, device);
    environment::record(&folder, bandwidths, device, settings)?;
    let table = folder.join(RESULTS_FILE);
    let mut writer = Writer::open(&table)?;
    if let Some(program) = program {
        let series = Series { backend: Backend::Cpu, weak: args.weak };
        for matrix in series.matrices(matrices) {
            let (measured, rows) = series.run(&mut writer, &matrix, &ranks, |ranks| {
                measure(&program, (&matrix, series.mode()), &work, seconds, ranks)
            })?;
            print(series, &work, &measured, &rows);
        }
    }
    if let Some(gpus) = &args.gpus {
        let series = Series { backend: Backend::Gpu, weak: args.weak };
        for matrix in series.matrices(matrices) {
            let subject = Subject { matrix: &matrix, weak: args.weak };
            let (measured, rows) = series.run(&mut writer, &matrix, gpus, |ranks| {
                let Some(devices) = devices.get(..ranks) else {
                    let reason = missing.as_ref().map_or(String::new(), |error| error.to_string());
                    return Ok(Err((Status::Skipped, reason)));
                };
                let timed = Timed { kernel: &Kernel::Auto, work: &work, seconds };
                let numbers = on_devices(devices, subject, &timed);
                Ok(numbers.map_err(|error| (Status::Failed, error.to_string())))
            })?;
            print(series, &work, &measured, &rows);
        }
    }
    println!("rows of this run: {}", table.display());
    Ok(())
}

/// The numbers of one number of ranks, for each kind of work, or how it ended and why.
type Case = Result<Vec<Numbers>, (Status, String)>;

/// Prints what was measured of each kind of work, and what the model says.
fn print(series: Series, work: &[Work], measured: &[Measured], rows: &[Row]) {
    for &work in work {
        let of_work: Vec<&Measured> =
            measured.iter().filter(|of| of.numbers.work == work).collect();
        series.print(work, &of_work);
        let rows = rows.iter().filter(|row| Work::of(row) == work);
        print_model(&rows.collect::<Vec<_>>());
    }
}

/// What was measured of one kind of work on one number of ranks.
struct Measured {
    ranks: usize,
    numbers: Numbers,
}

/// Products on several numbers of ranks of one kind.
#[derive(Clone, Copy)]
struct Series {
    backend: Backend,
    weak: bool,
}

impl Series {
    fn mode(self) -> &'static str {
        if self.weak { "weak" } else { "strong" }
    }

    /// Those asked for, or one that is larger than the caches of a rank.
    fn matrices(self, asked: &[String]) -> Vec<String> {
        let side = match (self.backend, self.weak) {
            (Backend::Cpu, true) => 64,
            (Backend::Cpu, false) => 100,
            (Backend::Gpu, true) => 160,
            (Backend::Gpu, false) => 200,
        };
        if asked.is_empty() { vec![format!("stencil27[n={side}]")] } else { asked.to_vec() }
    }

    /// Measures each number of ranks, and writes a row for it; returns those that worked, and the rows.
    fn run(
        self,
        writer: &mut Writer,
        matrix: &str,
        counts: &[usize],
        measure: impl Fn(usize) -> anyhow::Result<Case>,
    ) -> anyhow::Result<(Vec<Measured>, Vec<Row>)> {
        let (mut measured, mut rows) = (Vec::<Measured>::new(), Vec::new());
        let what = if self.backend == Backend::Gpu { "GPU" } else { "rank" };
        for &ranks in counts {
            let on = format!("{ranks} {what}{}", if ranks == 1 { "" } else { "s" });
            println!("{matrix}, {} scaling, {on} ...", self.mode());
            let case = measure(ranks)?;
            let cases = match case {
                Ok(all) => all.into_iter().map(Ok).collect(),
                Err(end) => vec![Err(end)],
            };
            for case in cases {
                let row = self.row(matrix, ranks, &case, &measured);
                writer.append(&row)?;
                rows.push(row);
                match case {
                    Ok(numbers) => measured.push(Measured { ranks, numbers }),
                    Err((status, reason)) => eprintln!("{on}: {status}: {reason}"),
                }
            }
        }
        Ok((measured, rows))
    }

    /// The line of results.csv of one kind of work on one number of ranks. Its efficiency counts from the first of
    /// what was measured before.
    fn row(
        self,
        matrix: &str,
        ranks: usize,
        case: &Result<Numbers, (Status, String)>,
        before: &[Measured],
    ) -> Row {
        let gpu = self.backend == Backend::Gpu;
        let row = Row {
            experiment: format!("{NAME}-{}", self.mode()),
            matrix: Subject { matrix, weak: self.weak }.label(),
            op: Work::default().op().to_owned(),
            backend: self.backend.name().to_owned(),
            threads: (!gpu).then_some(1),
            precision: "f64".to_owned(),
            ranks: Some(ranks as u64),
            gpus: Some(if gpu { ranks as u64 } else { 0 }),
            ..Row::default()
        };
        let numbers = match case {
            Ok(numbers) => numbers,
            Err((status, reason)) => {
                return Row { status: *status, reason: reason.clone(), ..row };
            }
        };
        let (kernel, params) = split_label(&numbers.kernel);
        let columns = numbers.work.columns();
        let first = before.iter().find(|before| before.numbers.work == numbers.work);
        let first =
            first.map_or((ranks, numbers.median_s), |run| (run.ranks, run.numbers.median_s));
        let mismatch = numbers.bound_err > 1.0;
        Row {
            op: numbers.work.op().to_owned(),
            k: (columns > 1).then_some(columns as u64),
            rows: numbers.rows,
            cols: numbers.rows,
            entries: numbers.entries,
            kernel: kernel.to_owned(),
            params: params.to_owned(),
            iterations: Some(numbers.iterations),
            median_s: Some(numbers.median_s),
            min_s: Some(numbers.min_s),
            p10_s: Some(numbers.p10_s),
            p90_s: Some(numbers.p90_s),
            gflops: Some(2.0 * (numbers.entries * columns as u64) as f64 / numbers.median_s / 1e9),
            gbytes_per_s: Some(numbers.bytes_moved as f64 * ranks as f64 / numbers.median_s / 1e9),
            efficiency: Some(self.efficiency(first, (ranks, numbers.median_s))),
            plan_s: Some(numbers.plan_s),
            memory_bytes: Some(numbers.memory_bytes),
            bound_err: Some(numbers.bound_err),
            status: if mismatch { Status::Mismatch } else { Status::Ok },
            reason: if mismatch { "differs from the reference".to_owned() } else { String::new() },
            halo_bytes: Some(numbers.halo_bytes),
            neighbours: Some(numbers.neighbours),
            exchange_s: Some(numbers.exchange_s),
            overlap: numbers.overlap(),
            latency_s: numbers.latency_s,
            link_gbytes_per_s: numbers.link.map(|link| link / 1e9),
            ..row
        }
    }

    /// Of a run against the first one, each its ranks and seconds: the time of a rank's work over the time of
    /// the run.
    fn efficiency(self, first: (usize, f64), run: (usize, f64)) -> f64 {
        let ratio = first.1 / run.1;
        if self.weak { ratio } else { ratio * first.0 as f64 / run.0 as f64 }
    }

    fn print(self, work: Work, measured: &[&Measured]) {
        let Some(first) = measured.first() else { return };
        println!(
            "measured, {work}: ranks, median us (local, wait, boundary, pack), exchange alone us, hidden,"
        );
        println!("          halo bytes, neighbours, kernel, TB/s, efficiency");
        for Measured { ranks, numbers } in measured {
            let transport = numbers.transport.as_ref();
            println!(
                "{ranks:6} {:10.1} ({:.1} {:.1} {:.1} {:.1}) {:8.1} {:4.0} % {:9} {:3} {}{} {:.3} {:5.1} %",
                numbers.median_s * 1e6,
                numbers.local_s * 1e6,
                numbers.wait_s * 1e6,
                numbers.boundary_s * 1e6,
                numbers.pack_s * 1e6,
                numbers.exchange_s * 1e6,
                100.0 * numbers.overlap().unwrap_or(0.0),
                numbers.halo_bytes,
                numbers.neighbours,
                numbers.kernel,
                transport.map_or(String::new(), |transport| format!(" over {transport}")),
                numbers.bytes_moved as f64 * *ranks as f64 / numbers.median_s / 1e12,
                100.0
                    * self.efficiency(
                        (first.ranks, first.numbers.median_s),
                        (*ranks, numbers.median_s)
                    ),
            );
        }
    }
}

/// Compiles the program that the ranks run; returns its path.
fn build() -> anyhow::Result<PathBuf> {
    println!("building the example scaling of spm-study with MPI ...");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "-p", "spm-study", "--features", "mpi"]);
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
        "spm-study does not build with MPI here; crates/spm-dist/README.md names the packages"
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
    (matrix, mode): (&str, &str),
    work: &[Work],
    seconds: f64,
    ranks: usize,
) -> anyhow::Result<Case> {
    let mut command = Command::new("mpirun");
    command.args(["-n", &ranks.to_string()]).arg(program).args([matrix, mode]);
    let work: Vec<String> = work.iter().map(Work::to_string).collect();
    command.args([&seconds.to_string(), "auto", &ranks.to_string(), &work.join(",")]);
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
    let numbers: Vec<_> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok(match numbers.is_empty() {
        false if output.status.success() => Ok(numbers),
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let line = errors.lines().find(|line| !line.trim_matches(['-', ' ']).is_empty());
            Err((Status::Failed, line.unwrap_or("no output").to_owned()))
        }
    })
}

/// Prints what the model says of more ranks.
fn print_model(rows: &[&Row]) {
    let Some(model) = Model::of(rows) else {
        println!(
            "no model: it needs products with stencil27[n=SIDE], and on CPU cores two ranks at least"
        );
        return;
    };
    println!("modelled with {}:", model.describe());
    println!(
        "          ranks, halo bytes, neighbours, us and efficiency without overlap, with overlap"
    );
    for ranks in MODELLED {
        let load = model.load(ranks);
        let [without, with] = [false, true].map(|overlap| {
            (model.seconds(ranks, overlap) * 1e6, 100.0 * model.efficiency(ranks, overlap))
        });
        println!(
            "{ranks:6} {:9.0} {:3} {:10.1} {:5.1} % {:10.1} {:5.1} %",
            load.halo, load.neighbours, without.0, without.1, with.0, with.1,
        );
    }
}

#[cfg(test)]
mod tests {
    use spm_study::results::ENVIRONMENT_FILE;

    use super::*;

    const CPU: Series = Series { backend: Backend::Cpu, weak: false };

    /// A line of the example `scaling`.
    fn numbers(median_s: f64) -> Numbers {
        let line = format!(
            r#"{{"ranks":2,"rows":1000,"entries":27000,"kernel":"csr-rows[simd=on]","iterations":90,
            "median_s":{median_s:e},"min_s":2e-3,"p10_s":2e-3,"p90_s":3e-3,"plan_s":1e0,"assembly_s":1e0,
            "memory_bytes":400000,"bytes_moved":300000,"bound_err":5e-1,"halo_bytes":800,"neighbours":1,
            "boundary_rows":100,"exchange_s":8e-5,"pack_s":1e-5,"local_s":2e-3,"wait_s":1e-5,
            "boundary_s":1e-4,"latency_s":1e-6,"link":1.7976931348623157e308}}"#
        );
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn efficiency_is_of_the_first_run() {
        let (one, two) = ((1, 4e-3), (2, 2.5e-3));
        assert_eq!(CPU.efficiency(one, two), 0.8);
        assert_eq!(Series { weak: true, ..CPU }.efficiency(one, two), 1.6);
    }

    #[test]
    fn a_run_is_a_row() {
        let one = Measured { ranks: 1, numbers: numbers(4e-3) };
        let found = CPU.row("stencil27[n=10]", 2, &Ok(numbers(2.5e-3)), &[one]);
        assert_eq!((found.kernel.as_str(), found.params.as_str()), ("csr-rows", "simd=on"));
        assert_eq!(
            (found.ranks, found.gpus, found.halo_bytes, found.efficiency),
            (Some(2), Some(0), Some(800), Some(0.8))
        );
        assert!((found.overlap.unwrap() - 0.75).abs() < 1e-12);
        assert_eq!(found.status, Status::Ok);
        let wrong = Numbers { bound_err: 1.5, ..numbers(4e-3) };
        assert_eq!(CPU.row("a", 1, &Ok(wrong), &[]).status, Status::Mismatch);
        let failed = CPU.row("a", 4, &Err((Status::Failed, "no such file".to_owned())), &[]);
        assert_eq!((failed.status, failed.reason.as_str()), (Status::Failed, "no such file"));
    }

    #[test]
    fn each_number_of_gpus_is_a_row() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join(RESULTS_FILE);
        let mut writer = Writer::open(&table).unwrap();
        let series = Series { backend: Backend::Gpu, weak: true };
        let measured = series.run(&mut writer, "stencil27[n=3]", &[1, 2, 4], |gpus| {
            let refused = || (Status::Skipped, "there are 2".to_owned());
            Ok(if gpus > 2 {
                Err(refused())
            } else {
                let one = numbers(4e-3 * gpus as f64);
                Ok(vec![Numbers { work: Work::Cg, median_s: 1.0, ..one.clone() }, one])
            })
        });
        let (measured, written) = measured.unwrap();
        assert_eq!((measured.len(), written.len()), (4, 5));
        drop(writer);
        let rows = spm_study::results::read(&table).unwrap();
        let of = |row: &Row| (row.op.clone(), row.gpus, row.ranks, row.status, row.efficiency);
        let case = |op: &str, gpus, status, efficiency| {
            (op.to_owned(), Some(gpus), Some(gpus), status, efficiency)
        };
        let expected = [
            case("cg", 1, Status::Ok, Some(1.0)),
            case("spmv", 1, Status::Ok, Some(1.0)),
            case("cg", 2, Status::Ok, Some(1.0)),
            case("spmv", 2, Status::Ok, Some(0.5)),
            case("spmv", 4, Status::Skipped, None),
        ];
        assert!(rows.iter().all(|row| row.threads.is_none()));
        assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected);
        assert!(rows.iter().all(|row| row.backend == "gpu" && row.experiment == "scaling-weak"));
        assert_eq!(rows[4].reason, "there are 2");
    }

    #[test]
    fn gpus_that_are_not_there_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let args =
            Args { ranks: None, gpus: Some(vec![4096]), weak: false, strong: false, cg: false };
        run(&args, &[], (None, None), folder.path()).unwrap();
        let rows = spm_study::results::read(&folder.path().join(NAME).join(RESULTS_FILE)).unwrap();
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((row.status, row.gpus), (Status::Skipped, Some(4096)));
        assert!(!row.reason.is_empty(), "{row:?}");
        let machine = std::fs::read(folder.path().join(NAME).join(ENVIRONMENT_FILE)).unwrap();
        let machine: Value = serde_json::from_slice(&machine).unwrap();
        assert_eq!(machine["settings"]["gpus"], serde_json::json!([4096]));
        assert!(machine["memory_bytes"].as_u64() > Some(0), "{machine}");
    }

    #[test]
    fn counts_are_at_least_one() {
        assert_eq!(parse_count("3"), Ok(3));
        assert!(parse_count("0").is_err() && parse_count("x").is_err());
    }
}
