//! `cargo xtask bench-all` and `cargo xtask bench EXPERIMENT`: the experiment matrix.

pub mod cache;
pub mod case;
pub mod environment;
pub mod estimate;
pub mod experiments;
pub mod gpu;
mod pacing;
pub mod procedures;
pub mod reading;
pub mod reports;
pub mod runner;
pub mod settings;
pub mod timing;
pub mod unfinished;

pub use case::{Case, CaseSpec, Resources, plan};
pub use experiments::{EXPERIMENTS, Experiment};
pub use timing::Scope;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::catalogue::Report;
use anyhow::{Context, bail, ensure};
use spm_formats::MemoryBudget;
use spm_formats::kernel::Backend;
use spm_formats::matrix_market::Mode;
use spm_gpu::DeviceScalar;

use crate::files::{hold_folder, write_whole};
use crate::input::Input;
use crate::matrix::Matrix;
use crate::output::{print, say};
use crate::results::{ENVIRONMENT_FILE, RESULTS_FILE};
use crate::suite::{self, Source};
use crate::wide::{self, Half};
use crate::{progress, report, structure};
use cache::{Eviction, last_level_bytes};
use environment::{Environment, cores};
use pacing::Pacing;
use reports::Setup;
use runner::{Measuring, Precision, Runner};
use settings::{MeasuringOptions, Settings};
use unfinished::Unfinished;

/// Seconds for `bench-all` on the demo suite: a first look, not a wait.
const DEMO_BUDGET_S: u64 = 100;

/// What `bench` and `bench-all` have in common.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Folder for results.csv, environment.json and the report. One with earlier results is renamed
    /// to OUT.1, OUT.2, ... unless --resume.
    #[arg(long, default_value = "results")]
    out: PathBuf,
    /// Go on with the run in --out: finished cases are skipped.
    #[arg(long)]
    resume: bool,
    /// Only these backends. Without a GPU its kernels are left out, and a line says so.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "cpu,gpu",
        value_parser = ["cpu", "gpu"]
    )]
    backend: Vec<String>,
    /// Run CPU kernels on exactly these numbers of threads (1,2,8) instead of each experiment's own.
    #[arg(long, value_delimiter = ',', value_parser = settings::parse_threads)]
    threads: Option<Vec<usize>>,
    #[command(flatten)]
    measuring: MeasuringOptions,
    /// Time that the whole run should take (90, 90s, 5m, 2h): it goes first to the quick cases, and
    /// slow ones get fewer iterations as it runs short (always one). Default: none, or 100 s for the
    /// demo suite.
    #[arg(long, value_name = "TIME", value_parser = settings::parse_budget)]
    budget: Option<u64>,
    /// Read damaged Matrix Market files as far as they make sense, instead of refusing them.
    #[arg(long)]
    lenient: bool,
    /// Only these operations.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "OP",
        value_parser = ["spmv", "spmm", "transpose", "conversion", "read"]
    )]
    op: Option<Vec<String>>,
    /// Only SpMM with these numbers of columns of X.
    #[arg(long, value_delimiter = ',', value_name = "K")]
    k: Option<Vec<usize>>,
    /// Print the cases, the matrices and a rough estimate of the time; measure nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `bench-all`.
#[derive(Debug, clap::Args)]
pub struct AllArgs {
    /// Matrices: demo (generated), reports (the five reports' 71, generated where not downloaded),
    /// or a folder. Default: what is downloaded, or demo when nothing is.
    #[arg(long)]
    suite: Option<String>,
    /// One report as it was: R0, R1, R2, R3 or R4, with its matrices (unless --suite names others),
    /// kernels, parameters, iterations, x, precision and what its clock enclosed.
    #[arg(long)]
    report: Option<Report>,
    /// Only these experiments (`cargo xtask bench --help` lists them).
    #[arg(long, value_delimiter = ',')]
    experiments: Option<Vec<String>>,
    #[command(flatten)]
    options: Options,
}

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = experiments_help())]
pub struct OneArgs {
    /// Name of the experiment: see the end of this help.
    experiment: String,
    #[arg(help = suite::matrices_help())]
    matrices: Vec<String>,
    /// The half of the wide suite: tuning, checking or all (experiment wide without MATRICES).
    #[arg(long, value_enum, default_value = "checking")]
    half: Half,
    /// Leave out matrices of the wide suite with more entries.
    #[arg(long, value_name = "COUNT")]
    max_entries: Option<u64>,
    #[command(flatten)]
    options: Options,
}

fn experiments_help() -> String {
    let lines = experiments::all()
        .map(|e| format!("  {:<22} {}\n{:25}{}\n", e.name, e.title, "", e.redraws));
    let lines: String = lines.collect();
    format!("Experiments, and what of the five reports R0 to R4 they redraw:\n{lines}")
}

/// Runs every experiment on every matrix of the suite, then writes the report.
///
/// # Errors
/// Unknown names, an unwritable folder. A failing case is a row of the results.
pub fn run_all(args: &AllArgs) -> anyhow::Result<()> {
    let setup = args.report.map(Setup::of);
    let mut chosen = setup.as_ref().map_or(EXPERIMENTS.to_vec(), |s| s.experiments.clone());
    if let Some(names) = &args.experiments {
        names.iter().try_for_each(|name| experiment(name).map(drop))?;
        chosen.retain(|e| names.iter().any(|name| name == e.name));
    }
    let matrices = match (args.report, &args.suite) {
        (Some(report), None) => reports::matrices(report)?,
        (_, suite) => suite::suite(suite.as_deref())?,
    };
    let mut options = args.options.clone();
    if options.budget.is_none() && setup.is_none() && matrices == suite::suite(Some("demo"))? {
        options.budget = Some(DEMO_BUDGET_S);
    }
    run(&chosen, &matrices, &options, setup.as_ref())
}

/// Runs one experiment.
///
/// # Errors
/// As [`run_all`].
pub fn run_one(args: &OneArgs) -> anyhow::Result<()> {
    let matrices = match &*args.matrices {
        [] if args.experiment == experiments::WIDE.name => {
            let recipes = wide::suite(args.half, args.max_entries);
            recipes.into_iter().map(Source::Generated).collect()
        }
        [] => suite::suite(None)?,
        names => names.iter().map(|n| Source::parse(n)).collect::<anyhow::Result<_>>()?,
    };
    run(&[*experiment(&args.experiment)?], &matrices, &args.options, None)
}

fn experiment(name: &str) -> anyhow::Result<&'static Experiment> {
    experiments::find(name)
        .with_context(|| format!("no experiment is called {name}\n{}", experiments_help()))
}

fn run(
    experiments: &[Experiment],
    matrices: &[Source],
    options: &Options,
    report: Option<&Setup>,
) -> anyhow::Result<()> {
    let settings = Settings::resolve(&options.measuring, report)?;
    ensure!(!experiments.is_empty(), "no experiment is left: the report has none of those named");
    names_differ(matrices)?;
    let wanted = |backend: Backend| options.backend.iter().any(|b| b == backend.name());
    let uses_gpu = experiments.iter().any(|e| e.backends.contains(&Backend::Gpu));
    let resources = Resources::new(MemoryBudget::default(), wanted(Backend::Gpu) && uses_gpu);
    if let (Err(reason), true) = (resources.device(), wanted(Backend::Gpu) && uses_gpu) {
        eprintln!("GPU kernels are left out: {reason}");
    }
    let runs = |case: &CaseSpec| {
        let op = case.info.operation.to_string();
        wanted(case.info.backend)
            && options.op.as_ref().is_none_or(|ops| ops.contains(&op))
            && options.k.as_ref().is_none_or(|k| case.dense.is_none_or(|d| k.contains(&d.k)))
            && (case.info.backend == Backend::Cpu || resources.device().is_ok())
    };
    let cases: Vec<(&str, CaseSpec)> = experiments
        .iter()
        .flat_map(|e| {
            let cases = e.cases(cores(), options.threads.as_deref(), settings.scope);
            cases.into_iter().map(move |case| (e.name, case))
        })
        .filter(|(_, case)| runs(case))
        .collect();
    ensure!(
        !cases.is_empty(),
        "no case is left: none of the experiments runs these operations on these backends"
    );
    if options.dry_run {
        print(&estimate::describe(&cases, matrices, &settings.sampling, options.budget))?;
        return Ok(());
    }
    let (runner, _guard) = open(&cases, resources, options, &settings)?;
    match settings.precision {
        Precision::F64 => measure::<f64>(runner, &cases, matrices, options, &settings.input),
        Precision::F32 => measure::<f32>(runner, &cases, matrices, options, &settings.input),
    }
}

/// Results know a matrix by its name alone.
fn names_differ(matrices: &[Source]) -> anyhow::Result<()> {
    let mut by_name: HashMap<String, &Source> = HashMap::new();
    for source in matrices {
        let name = source.name();
        if let Some(earlier) = by_name.get(&name).filter(|earlier| **earlier != source) {
            bail!("{earlier} and {source} are both called {name} in the results: rename one");
        }
        by_name.insert(name, source);
    }
    Ok(())
}

/// Measures what is not in the table yet, then writes the report.
fn measure<T: DeviceScalar>(
    mut runner: Runner,
    cases: &[(&str, CaseSpec)],
    matrices: &[Source],
    options: &Options,
    input: &Input,
) -> anyhow::Result<()> {
    // Procedures run on data of their own, once, and not on each matrix.
    let (procedures, cases): (Vec<_>, Vec<_>) =
        cases.iter().partition(|(experiment, _)| *experiment == procedures::EXPERIMENT);
    let steps = cases.len() * matrices.len() + procedures.len();
    let progress = progress::over(steps as u64, "cases");
    let mode = if options.lenient { Mode::Lenient } else { Mode::Strict };
    let widest = cases.iter().map(|(_, case)| case.k()).max().unwrap_or(1);
    let mut longest = 0;
    let mut unreadable = Vec::new();
    let mut pacing = Pacing::new(options.budget, steps);
    for source in matrices {
        let name = source.name();
        let pending: Vec<_> =
            cases.iter().filter(|(e, case)| !runner.is_finished(e, &name, case)).collect();
        progress.inc((cases.len() - pending.len()) as u64);
        pacing.left -= cases.len() - pending.len();
        if pending.is_empty() {
            continue;
        }
        progress.set_message(name.clone());
        if !runner.begin_loading(&name)? {
            progress.suspend(|| eprintln!("{name}: {}", Unfinished::reason()));
            for (experiment, case) in &pending {
                runner.give_up(experiment, &name, case)?;
            }
            progress.inc(pending.len() as u64);
            pacing.left -= pending.len();
            continue;
        }
        let matrix = match load::<T>(source, mode, input, widest) {
            Ok(matrix) => matrix,
            Err(error) => {
                progress.suspend(|| eprintln!("{name}: {error:#}"));
                unreadable.push(name);
                progress.inc(pending.len() as u64);
                pacing.left -= pending.len();
                continue;
            }
        };
        structure::describe(&matrix).write(&options.out)?;
        let length = matrix.csr().cols() * widest;
        if let (Some(path), true) = (&options.measuring.write_x, length > longest) {
            input.write(path, length)?;
            longest = length;
        }
        for (experiment, case) in pending {
            let most = pacing.next_case(runner.sampled);
            runner.run(experiment, &matrix, case, most)?;
            progress.inc(1);
        }
    }
    for (experiment, case) in procedures {
        let most = pacing.next_case(runner.sampled);
        runner.run_procedure(experiment, case, most)?;
        progress.inc(1);
    }
    runner.end();
    progress.finish_and_clear();
    let page = report::write(&options.out)?;
    let tally = runner.tally;
    say(format_args!(
        "{} cases measured, {} not applicable, {} failed, {} mismatches on {} matrices\n{}",
        tally.ok,
        tally.skipped,
        tally.failed,
        tally.mismatches,
        matrices.len() - unreadable.len(),
        page.display()
    ))?;
    if let Some(summary) = report::wide::summary(&options.out)? {
        print(&summary)?;
    }
    if tally.mismatches > 0 || tally.failed > 0 || !unreadable.is_empty() {
        let unreadable = match &*unreadable {
            [] => String::new(),
            names => format!(", unreadable: {}", names.join(", ")),
        };
        bail!("{} mismatches, {} failures{unreadable}", tally.mismatches, tally.failed);
    }
    Ok(())
}

/// Loads a matrix for which x is long enough.
fn load<T: DeviceScalar>(
    source: &Source,
    mode: Mode,
    input: &Input,
    widest: usize,
) -> anyhow::Result<Matrix<T>> {
    let matrix = source.load::<T>(mode, input.clone())?;
    let length = matrix.csr().cols() * widest;
    if let Some(limit) = input.limit().filter(|limit| *limit < length) {
        bail!("x has {limit} elements, {length} are needed");
    }
    Ok(matrix)
}

/// Opens the results folder and holds it; a finished run in it is moved aside, never overwritten.
fn open(
    cases: &[(&str, CaseSpec)],
    resources: Resources,
    options: &Options,
    settings: &Settings,
) -> anyhow::Result<(Runner, File)> {
    let table = options.out.join(RESULTS_FILE);
    let hold = || -> anyhow::Result<File> {
        std::fs::create_dir_all(&options.out)
            .with_context(|| format!("cannot create {}", options.out.display()))?;
        hold_folder(&options.out, "bench")
    };
    let mut guard = hold()?;
    if table.exists() && !options.resume {
        let aside = set_aside(&options.out)?;
        eprintln!("the earlier results are now in {}", aside.display());
        guard = hold()?;
    }
    let mut pools: Vec<usize> = cases.iter().map(|(_, case)| case.threads).collect();
    pools.sort_unstable();
    pools.dedup();
    let mut described = settings.describe();
    described.insert("budget_s".to_owned(), options.budget.into());
    let path = options.out.join(ENVIRONMENT_FILE);
    let mut environment = Environment::observe(&pools, resources.device(), described.into());
    environment.earlier = environment::earlier(&path, &environment.settings);
    let json = serde_json::to_vec_pretty(&environment)?;
    write_whole(&path, json).with_context(|| format!("cannot write {}", path.display()))?;
    let (sampling, precision) = (settings.sampling, settings.precision);
    let eviction = settings.cold.then(|| Eviction::new(2 * last_level_bytes()));
    let measuring = Measuring { sampling, eviction, precision };
    Ok((Runner::open(&table, environment, resources, measuring)?, guard))
}

/// Renames a results folder to the first free `NAME.1`, `NAME.2`, ...
fn set_aside(folder: &Path) -> anyhow::Result<PathBuf> {
    let candidate = |n: u32| {
        // Put together again: `results/` becomes `results.1` and not `results/.1`.
        let mut name = folder.components().collect::<PathBuf>().into_os_string();
        name.push(format!(".{n}"));
        PathBuf::from(name)
    };
    let aside = (1..).map(candidate).find(|path| !path.exists()).context("no free name")?;
    std::fs::rename(folder, &aside)
        .with_context(|| format!("cannot rename {} to {}", folder.display(), aside.display()))?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_results_are_moved_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("results");
        for (expected, out) in [("results.1", &out), ("results.2", &out.join(""))] {
            std::fs::create_dir(out).unwrap();
            std::fs::write(out.join("x"), expected).unwrap();
            let aside = set_aside(out).unwrap();
            assert_eq!(aside, folder.path().join(expected));
            assert_eq!(std::fs::read_to_string(aside.join("x")).unwrap(), expected);
        }
    }

    #[test]
    fn one_name_for_two_matrices_is_refused() {
        let file = |path: &str| Source::File(path.into());
        names_differ(&[file("a/m.mtx"), file("b/n.mtx"), file("a/m.mtx")]).unwrap();
        let error = names_differ(&[file("a/m.mtx"), file("b/m.mtx.gz")]).unwrap_err().to_string();
        assert!(error.starts_with("a/m.mtx and b/m.mtx.gz are both called m"), "{error}");
    }
}
