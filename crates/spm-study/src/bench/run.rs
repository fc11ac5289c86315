//! A run of experiments: which cases, on which matrices, into which folder.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use spm_formats::MemoryBudget;
use spm_formats::kernel::Backend;
use spm_formats::matrix_market::Mode;
use spm_gpu::DeviceReal;

use super::cache::{Eviction, last_level_bytes};
use super::case::CaseSpec;
use super::environment::{self, cores};
use super::experiments::{Experiment, is_serial};
use super::pacing::{Pacing, Shares};
use super::plan::Resources;
use super::runner::{Measuring, Runner};
use super::settings::{Precision, Settings};
use super::unfinished::Unfinished;
use super::{estimate, procedures};
use crate::files::hold_folder;
use crate::input::Input;
use crate::matrix::Matrix;
use crate::output::{print, say};
use crate::results::RESULTS_FILE;
use crate::suite::Source;
use crate::{interrupt, progress, report, structure};

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
    /// Measure the bandwidth of each device before the first case: what bounds a case.
    pub bandwidth: bool,
    /// Write x, as long as the longest that was used, to this file.
    pub write_x: Option<PathBuf>,
    /// Seconds that the whole run should take.
    pub budget: Option<u64>,
    /// Leave out cases for which the budget has no time, those first that only vary a parameter; else
    /// each is run once.
    pub leave_out: bool,
    /// What the matrices are, in words.
    pub suite: String,
    /// Open the page in a browser at the end.
    pub open: bool,
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
    introduce(&cases, matrices, options)?;
    interrupt::watch();
    let (runner, _guard) = open(&cases, resources, options)?;
    match settings.precision {
        Precision::F64 => measure::<f64>(runner, &cases, matrices, options, &settings.input),
        Precision::F32 => measure::<f32>(runner, &cases, matrices, options, &settings.input),
    }
}

/// Says first what the run will do, and for how long.
fn introduce(
    cases: &[(&str, CaseSpec)],
    matrices: &[Source],
    options: &Options,
) -> anyhow::Result<()> {
    let build =
        if cfg!(debug_assertions) { "development build: not for figures" } else { "release" };
    say(format_args!("spm {}, {}, {build}", env!("CARGO_PKG_VERSION"), env!("SPM_COMPILER")))?;
    let on = |backend: Backend| cases.iter().any(|(_, case)| case.info.backend == backend);
    let backends: Vec<&str> =
        [Backend::Cpu, Backend::Gpu].into_iter().filter(|b| on(*b)).map(Backend::name).collect();
    let suite =
        if options.suite.is_empty() { String::new() } else { format!(" ({})", options.suite) };
    let experiments: HashSet<&str> = cases.iter().map(|(experiment, _)| *experiment).collect();
    let time = estimate::time(cases, matrices, &options.settings.sampling, options.budget);
    say(format_args!(
        "{}{suite}, {}, {} of each on {}: roughly {time}",
        counted(matrices.len(), "matrix", "matrices"),
        counted(experiments.len(), "experiment", "experiments"),
        counted(cases.len(), "case", "cases"),
        backends.join(" and ")
    ))?;
    Ok(say(format_args!(
        "into {}; Ctrl-C ends early and leaves the page of what is there",
        options.out.display()
    ))?)
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
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
fn measure<T: DeviceReal>(
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
    let mut shares = Shares::new(matrices, options.leave_out);
    let essential = essential(&cases);
    let mut left_out = 0;
    let mut ended_early = false;
    'matrices: for (place, source) in matrices.iter().enumerate() {
        let name = source.name();
        let until = shares.next(&pacing);
        let mut pending: Vec<_> = cases
            .iter()
            .zip(&essential)
            .filter(|((e, case), _)| !runner.is_finished(e, &name, case))
            .collect();
        progress.inc((cases.len() - pending.len()) as u64);
        pacing.left -= cases.len() - pending.len();
        if pending.is_empty() {
            continue;
        }
        progress.set_message(name.clone());
        if !runner.begin_loading(&name)? {
            progress.suspend(|| eprintln!("{name}: {}", Unfinished::reason()));
            for ((experiment, case), _) in &pending {
                runner.give_up(experiment, &name, case)?;
            }
            progress.inc(pending.len() as u64);
            pacing.left -= pending.len();
            continue;
        }
        let (begin, tally) = (pacing.elapsed(), runner.tally);
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
        if until.is_some() {
            // What is left out is at the end.
            let ranks =
                ranks(pending.iter().map(|((_, case), essential)| {
                    (**essential, case.info.backend == Backend::Gpu)
                }));
            let mut ranked: Vec<_> = ranks.into_iter().zip(pending).collect();
            ranked.sort_by_key(|(rank, _)| *rank);
            pending = ranked.into_iter().map(|(_, case)| case).collect();
        }
        let mut without_time = 0;
        for ((experiment, case), _) in pending {
            if interrupt::asked() {
                ended_early = true;
                break 'matrices;
            }
            if until.is_some_and(|until| pacing.elapsed() >= until) {
                without_time += 1;
                pacing.left -= 1;
            } else {
                let most = pacing.next_case(runner.sampled);
                runner.run(experiment, &matrix, case, most)?;
            }
            progress.inc(1);
        }
        left_out += without_time;
        let told = Told {
            place: (place + 1, matrices.len()),
            name: &name,
            entries: matrix.csr().nnz(),
            cases: runner.tally.total() - tally.total(),
            seconds: (pacing.elapsed() - begin).as_secs_f64(),
            without_time,
            fastest: runner.fastest(&name),
        };
        progress.suspend(|| say(told))?;
    }
    for (experiment, case) in procedures {
        ended_early |= interrupt::asked();
        if ended_early {
            break;
        }
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
    if left_out > 0 {
        say(format_args!(
            "{} left out for want of time; `--resume --budget 1h` measures them",
            counted(left_out, "case", "cases")
        ))?;
    }
    if let Some(summary) = report::wide::summary(&options.out)? {
        print(&summary)?;
    }
    if options.open {
        crate::browser::open(&page);
    }
    if ended_early {
        bail!("interrupted: the page has what was measured, `--resume` goes on from there");
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

/// The line that a run says of a matrix.
struct Told<'a> {
    place: (usize, usize),
    name: &'a str,
    entries: usize,
    cases: usize,
    seconds: f64,
    without_time: usize,
    fastest: Vec<String>,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, all) = self.place;
        let width = all.to_string().len();
        let (name, entries, cases, seconds) = (self.name, self.entries, self.cases, self.seconds);
        write!(
            f,
            "[{place:>width$}/{all}] {name}: {entries} entries, {cases} cases in {seconds:.1} s"
        )?;
        if self.without_time > 0 {
            write!(f, " ({} left out)", self.without_time)?;
        }
        if !self.fastest.is_empty() {
            write!(f, "; fastest SpMV: {}", self.fastest.join(", "))?;
        }
        Ok(())
    }
}

/// Which cases a run short of time keeps: of each kernel and number of columns the one with default
/// parameters on the most threads, and the serial ones.
fn essential(cases: &[&(&str, CaseSpec)]) -> Vec<bool> {
    let most = cases.iter().map(|(_, case)| case.threads).max().unwrap_or(1);
    let fewest = cases.iter().filter_map(|(_, case)| case.dense).map(|dense| dense.k).min();
    let keeps = |case: &CaseSpec| {
        let all_threads = case.info.backend == Backend::Gpu || case.threads == most;
        is_serial(&case.info)
            || (all_threads
                && case.parameters == case.info.defaults()
                && case.dense.is_none_or(|dense| Some(dense.k) == fewest))
    };
    cases.iter().map(|(_, case)| keeps(case)).collect()
}

/// Where each case comes in a run short of time: the essential ones first, CPU and GPU in turns. A case is told by
/// whether it is essential, and whether it runs on a GPU.
fn ranks(cases: impl Iterator<Item = (bool, bool)>) -> Vec<(bool, usize)> {
    let mut seen = [[0; 2]; 2];
    let rank = |(essential, on_gpu): (bool, bool)| {
        let before = &mut seen[usize::from(essential)][usize::from(on_gpu)];
        *before += 1;
        (!essential, *before)
    };
    cases.map(rank).collect()
}

/// Loads a matrix for which x is long enough.
fn load<T: DeviceReal>(
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
    let device = resources.device();
    let bandwidths = if options.bandwidth {
        environment::Bandwidths::measure(&pools, device)
    } else {
        environment::Bandwidths::default()
    };
    let environment = environment::record(&options.out, bandwidths, device, described.into())?;
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
    fn a_run_short_of_time_has_the_essential_cases_of_both_backends_first() {
        let (essential, on_gpu) = (true, true);
        let cases = [
            (!essential, !on_gpu),
            (essential, !on_gpu),
            (essential, !on_gpu),
            (essential, on_gpu),
            (!essential, on_gpu),
        ];
        let mut order: Vec<_> = ranks(cases.into_iter()).into_iter().zip(0..).collect();
        order.sort_by_key(|(rank, _)| *rank);
        let order: Vec<_> = order.into_iter().map(|(_, case)| case).collect();
        assert_eq!(order, [1, 3, 2, 0, 4]);
    }

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
