//! Verification: every kernel against the reference.

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{bail, ensure};
use indicatif::ProgressBar;
use spm_formats::kernel::{Backend, KernelInfo, Operation, PlanError};
use spm_formats::matrix_market::Mode;
use spm_formats::{DenseShape, Layout, MemoryBudget};
use spm_gpu::DeviceReal;

use crate::bench::{CaseSpec, Resources, Scope, plan};
use crate::input::Input;
use crate::kernels;
use crate::matrix::Matrix;
use crate::output::say;
use crate::progress;
use crate::suite::{self, Source};

/// What is verified.
#[derive(Debug, Clone)]
pub struct Options {
    /// Matrices by name; what is downloaded, or the demo suite, when empty.
    pub matrices: Vec<String>,
    /// Only this operation.
    pub op: Option<String>,
    /// Only these backends: cpu, gpu, emulator.
    pub backend: Vec<String>,
    /// Only the kernel with this id.
    pub kernel: Option<String>,
    /// Numbers of threads that CPU kernels run on.
    pub threads: Vec<usize>,
    /// Types of the values: f64, f32.
    pub precision: Vec<String>,
    /// Read damaged Matrix Market files as far as they make sense.
    pub lenient: bool,
}

#[derive(Debug, Default)]
struct Outcome {
    cases: usize,
    not_applicable: usize,
    mismatches: usize,
    worst: f64,
}

/// Checks and prints; a mismatch is a failure of the command.
///
/// # Errors
/// Unknown names, unreadable files, mismatches.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let matrices = match &*options.matrices {
        [] => suite::suite(None)?,
        names => names.iter().map(|n| Source::parse(n)).collect::<anyhow::Result<_>>()?,
    };
    let wants = |backend: &str| options.backend.iter().any(|b| b == backend);
    let mut runs = Vec::new();
    if wants("cpu") {
        runs.push((specs(options, Backend::Cpu), Resources::new(MemoryBudget::default(), false)));
    }
    if wants("gpu") {
        let resources = Resources::new(MemoryBudget::default(), true);
        match resources.device() {
            Ok(_) => runs.push((specs(options, Backend::Gpu), resources)),
            Err(reason) => eprintln!("GPU kernels are left out: {reason}"),
        }
    }
    if wants("emulator") {
        runs.push((specs(options, Backend::Gpu), Resources::emulated(MemoryBudget::default())));
    }
    ensure!(
        runs.iter().any(|(specs, _)| !specs.is_empty()),
        "no kernel matches; `cargo xtask kernels` lists them"
    );
    let progress = progress::over(matrices.len() as u64, "matrices");
    let (mut outcome, mut unreadable) = (Outcome::default(), 0);
    let mode = if options.lenient { Mode::Lenient } else { Mode::Strict };
    for source in &matrices {
        progress.set_message(source.name());
        for precision in &options.precision {
            let read = match precision.as_str() {
                "f32" => check::<f32>(source, mode, &mut runs, &progress, &mut outcome),
                _ => check::<f64>(source, mode, &mut runs, &progress, &mut outcome),
            };
            if let Err(error) = read {
                progress.suspend(|| eprintln!("{}: {error:#}", source.name()));
                unreadable += 1;
                break;
            }
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    let read = matrices.len() - unreadable;
    if outcome.not_applicable > 0 {
        say(format_args!(
            "{} cases do not apply (padding beyond the budget, ...)",
            outcome.not_applicable
        ))?;
    }
    if unreadable > 0 {
        say(format_args!("{unreadable} files could not be read"))?;
    }
    say(format_args!(
        "verified {} cases on {read} matrices: {} mismatches, worst error {:.3} of bound",
        outcome.cases, outcome.mismatches, outcome.worst
    ))?;
    if outcome.mismatches > 0 || unreadable > 0 {
        bail!("{} mismatches, {unreadable} unreadable files", outcome.mismatches);
    }
    Ok(())
}

/// Every kernel of a backend that the arguments leave, with each of its studied parameter values.
fn specs(options: &Options, backend: Backend) -> Vec<CaseSpec> {
    let wanted = |info: &KernelInfo| {
        info.backend == backend
            && options.op.as_deref().is_none_or(|op| op == info.operation.name())
            && options.kernel.as_deref().is_none_or(|id| id == info.id)
            && info.operation != Operation::Read
    };
    let mut all = Vec::new();
    for info in kernels::all().into_iter().filter(wanted) {
        let threads = if info.backend == Backend::Cpu { &*options.threads } else { &[1] };
        for parameters in info.variants() {
            for &threads in threads {
                for dense in widths(info.operation) {
                    let parameters = parameters.clone();
                    all.push(CaseSpec { info, parameters, threads, dense, scope: Scope::Kernel });
                }
            }
        }
    }
    all
}

fn widths(operation: Operation) -> Vec<Option<DenseShape>> {
    if operation != Operation::Spmm {
        return vec![None];
    }
    [Layout::RowMajor, Layout::ColumnMajor]
        .into_iter()
        .flat_map(|layout| [1, 3, 8, 33].map(|k| Some(DenseShape { k, layout })))
        .collect()
}

fn check<T: DeviceReal>(
    source: &Source,
    mode: Mode,
    runs: &mut [(Vec<CaseSpec>, Resources)],
    progress: &ProgressBar,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let matrix = source.load::<T>(mode, Input::Seeded { low: -1.0, high: 1.0, seed: 1 })?;
    for (specs, resources) in runs {
        check_all(&matrix, specs, resources, progress, outcome);
    }
    Ok(())
}

fn check_all<T: DeviceReal>(
    matrix: &Matrix<T>,
    specs: &[CaseSpec],
    resources: &mut Resources,
    progress: &ProgressBar,
    outcome: &mut Outcome,
) {
    for spec in specs {
        let attempt = catch_unwind(AssertUnwindSafe(|| {
            let mut case = match plan(spec, matrix, resources) {
                Ok(planned) => planned.case,
                Err(PlanError::Format(_) | PlanError::Unsupported { .. }) => return Ok(None),
                Err(error) => return Err(error.to_string()),
            };
            case.check().map(Some).map_err(|error| error.to_string())
        }));
        let problem = match attempt {
            Ok(Ok(None)) => {
                outcome.not_applicable += 1;
                continue;
            }
            Ok(Ok(Some(errors))) => {
                outcome.worst = outcome.worst.max(errors.bound);
                let message = || format!("error {:.3e} times the rounding bound", errors.bound);
                (!errors.acceptable()).then(message)
            }
            Ok(Err(error)) => Some(error),
            Err(_) => Some("panicked".to_owned()),
        };
        outcome.cases += 1;
        if let Some(problem) = problem {
            outcome.mismatches += 1;
            let label = spec.info.label(&spec.parameters);
            progress.suspend(|| {
                eprintln!(
                    "{}: {} {label} {} threads={} k={}: {problem}",
                    matrix.name,
                    spec.info.operation,
                    T::NAME,
                    spec.threads,
                    spec.k()
                );
            });
        }
    }
}
