//! A run of experiments: which cases, on which matrices, into which folder.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use spm_formats::MemoryBudget;
use spm_formats::kernel::Backend;
use spm_formats::matrix_market::Mode;
use spm_gpu::DeviceScalar;

use super::cache::{Eviction, last_level_bytes};
use super::case::CaseSpec;
use super::environment::{self, Environment, cores};
use super::experiments::Experiment;
use super::pacing::Pacing;
use super::plan::Resources;
use super::runner::{Measuring, Runner};
use super::settings::{Precision, Settings};
use super::unfinished::Unfinished;
use super::{estimate, procedures};
use crate::files::{hold_folder, write_whole};
use crate::input::Input;
use crate::matrix::Matrix;
use crate::output::{print, say};
use crate::results::{ENVIRONMENT_FILE, RESULTS_FILE};
use crate::suite::Source;
use crate::{progress, report, structure};

/// How a run goes.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder for results.csv, environment.json and the report.
    pub out: PathBuf,
    /// Go on with the run in `out`: finished cases are skipped.
    pub resume: bool,
    /// Only these backends: cpu, gpu.
    pub backend: Vec<String>,
    /// Run CPU kernels on exactly these numbers of threads instead of each experiment's own.
    pub threads: Option<Vec<usize>>,
    /// How it measures.
    pub settings: Settings,
    /// Write x, as long as the longest that was used, to this file.
    pub write_x: Option<PathBuf>,
    /// Seconds that the whole run should take.
    pub budget: Option<u64>,
    /// Read damaged Matrix Market files as far as they make sense.
    pub lenient: bool,
    /// Only these operations, by their names.
    pub op: Option<Vec<String>>,
    /// Only SpMM with these numbers of columns of X.
    pub k: Option<Vec<usize>>,
    /// Print the cases, the matrices and a rough estimate of the time; measure nothing.
    pub dry_run: bool,
}

/// Runs experiments on matrices, then writes the report.
///
/// # Errors
/// Two matrices of one name, no case that runs, an unwritable folder. A failing case is a row of the
/// results.
pub fn run(
    experiments: &[Experiment],
    matrices: &[Source],
    options: &Options,
) -> anyhow::Result<()> {
    let settings = &options.settings;
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
    let (runner, _guard) = open(&cases, resources, options)?;
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
        if let (Some(path), true) = (&options.write_x, length > longest) {
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
) -> anyhow::Result<(Runner, File)> {
    let settings = &options.settings;
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
