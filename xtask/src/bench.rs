//! `cargo xtask bench-all` and `cargo xtask bench EXPERIMENT`: the experiment matrix.

use std::path::PathBuf;

use anyhow::Context;
use spm_study::bench::reports::{self, Setup};
use spm_study::bench::{self, EXPERIMENTS, Experiment, Options, experiments};
use spm_study::catalogue::Report;
use spm_study::suite::{self, Source};
use spm_study::wide::{self, Half};

use crate::measuring::{Measuring, parse_budget, parse_threads};
use crate::scaling;

/// Seconds for `bench-all` on the demo suite: a first look, not a wait. With what comes before and after
/// it is less than three minutes on any two cores.
const DEMO_BUDGET_S: u64 = 150;

/// What `bench` and `bench-all` have in common.
#[derive(Debug, Clone, clap::Args)]
struct Common {
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
    #[arg(long, value_delimiter = ',', value_parser = parse_threads)]
    threads: Option<Vec<usize>>,
    #[command(flatten)]
    measuring: Measuring,
    /// Time that the whole run should take (90, 90s, 5m, 2h): it goes first to the quick cases, and
    /// slow ones get fewer iterations as it runs short (always one). Default: none, or 150 s for the
    /// demo suite, where cases that have no time left are left out.
    #[arg(long, value_name = "TIME", value_parser = parse_budget)]
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
    /// Only SpMM with these numbers of columns of X (experiment scaling: products with these, 1 for SpMV).
    #[arg(long, value_delimiter = ',', value_name = "K")]
    k: Option<Vec<usize>>,
    /// Print the cases, the matrices and a rough estimate of the time; measure nothing.
    #[arg(long)]
    dry_run: bool,
    /// Open the page in a browser at the end.
    #[arg(long)]
    open: bool,
}

impl Common {
    fn options(&self, report: Option<&Setup>) -> anyhow::Result<Options> {
        Ok(Options {
            out: self.out.clone(),
            resume: self.resume,
            backend: self.backend.clone(),
            threads: self.threads.clone(),
            settings: self.measuring.settings(report)?,
            bandwidth: !self.measuring.no_bandwidth,
            write_x: self.measuring.write_x.clone(),
            budget: self.budget,
            leave_out: false,
            suite: String::new(),
            open: self.open,
            lenient: self.lenient,
            op: self.op.clone(),
            k: self.k.clone(),
            dry_run: self.dry_run,
        })
    }
}

/// Arguments of `bench-all`.
#[derive(Debug, clap::Args)]
pub struct AllArgs {
    /// A folder of .mtx, .mtx.gz or .tar.gz files, as --suite.
    #[arg(conflicts_with = "suite")]
    folder: Option<String>,
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
    common: Common,
}

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = experiments_help())]
pub struct OneArgs {
    /// Name of the experiment: see the end of this help.
    experiment: String,
    #[arg(help = suite::matrices_help())]
    matrices: Vec<String>,
    /// The half of the wide suite: tuning (may be profiled and tuned on), checking (figures are
    /// quoted on it) or all (experiment wide without MATRICES).
    #[arg(long, default_value = "checking")]
    half: Half,
    /// Leave out matrices of the wide suite with more entries.
    #[arg(long, value_name = "COUNT")]
    max_entries: Option<u64>,
    #[command(flatten)]
    scaling: scaling::Args,
    #[command(flatten)]
    common: Common,
}

fn experiments_help() -> String {
    let lines = experiments::all()
        .map(|e| format!("  {:<22} {}\n{:25}{}\n", e.name, e.title, "", e.redraws));
    let lines: String = lines.collect();
    let (scaling, title) =
        (scaling::NAME, "a product on --ranks, which needs MPI, or on --gpus (docs/scale.md)");
    format!(
        "Experiments, and what of the five reports R0 to R4 they redraw:\n{lines}  {scaling:<22} {title}\n"
    )
}

/// Runs every experiment on every matrix of the suite, then writes the report.
///
/// # Errors
/// Unknown names, an unwritable folder. A failing case is a row of the results.
pub fn run_all(args: &AllArgs) -> anyhow::Result<()> {
    let setup = args.report.map(Setup::of);
    let named = args.suite.as_ref().or(args.folder.as_ref());
    let mut chosen = setup.as_ref().map_or(EXPERIMENTS.to_vec(), |s| s.experiments.clone());
    if let Some(names) = &args.experiments {
        names.iter().try_for_each(|name| experiment(name).map(drop))?;
        chosen.retain(|e| names.iter().any(|name| name == e.name));
    }
    let matrices = match (args.report, named) {
        (Some(report), None) => reports::matrices(report)?,
        (_, suite) => suite::suite(suite.map(String::as_str))?,
    };
    let mut options = args.common.options(setup.as_ref())?;
    let demo = matrices == suite::suite(Some("demo"))?;
    options.suite = match (named, args.report) {
        _ if demo && named.is_none() => {
            "generated for a demonstration: `cargo xtask download-suitesparse` brings real ones, \
             --suite FOLDER takes yours"
                .to_owned()
        }
        _ if demo => "generated".to_owned(),
        (None, None) => format!("downloaded to {}", suite::download_folder().display()),
        (None, Some(report)) => format!("those of {report}"),
        (Some(suite), _) => suite.clone(),
    };
    if options.budget.is_none() && setup.is_none() && demo {
        options.budget = Some(DEMO_BUDGET_S);
        options.leave_out = true;
    }
    bench::run(&chosen, &matrices, &options)
}

/// Runs one experiment.
///
/// # Errors
/// As [`run_all`].
pub fn run_one(args: &OneArgs) -> anyhow::Result<()> {
    if args.experiment == scaling::NAME {
        let measuring = (args.common.measuring.min_time_s(), args.common.k.as_deref());
        return scaling::run(&args.scaling, &args.matrices, measuring, &args.common.out);
    }
    let matrices = match &*args.matrices {
        [] if args.experiment == experiments::WIDE.name => {
            let recipes = wide::suite(args.half, args.max_entries);
            recipes.into_iter().map(Source::Generated).collect()
        }
        [] => suite::suite(None)?,
        names => names.iter().map(|n| Source::parse(n)).collect::<anyhow::Result<_>>()?,
    };
    bench::run(&[*experiment(&args.experiment)?], &matrices, &args.common.options(None)?)
}

fn experiment(name: &str) -> anyhow::Result<&'static Experiment> {
    experiments::find(name)
        .with_context(|| format!("no experiment is called {name}\n{}", experiments_help()))
}
