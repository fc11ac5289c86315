//! Runs cases one after the other and records each before the next begins.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use spm_formats::kernel::{Backend, PlanError};
use spm_gpu::DeviceReal;

use super::cache::Eviction;
use super::case::{CaseSpec, Planned};
use super::environment::Environment;
use super::experiments::is_serial;
use super::plan::{Resources, plan};
use super::procedures;
use super::settings::Precision;
use super::timing::{Sampling, Scope};
use super::unfinished::Unfinished;
use crate::matrix::Matrix;
use crate::results::{self, Baseline, CaseKey, Row, Status, Writer};

/// Records the cases of a run.
pub struct Runner {
    writer: Writer,
    unfinished: Unfinished,
    finished: HashSet<CaseKey>,
    /// Seconds of the serial cases.
    serial: HashMap<Baseline, f64>,
    /// Every recorded case: experiments share some, and those are measured once.
    recorded: HashMap<CaseKey, Row>,
    resources: Resources,
    environment: Environment,
    sampling: Sampling,
    eviction: Option<Eviction>,
    precision: Precision,
    /// Cases recorded by this process, by status.
    pub tally: Tally,
    /// Time that this process spent on timing alone.
    pub sampled: Duration,
}

/// How many cases ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Checked and timed.
    pub ok: usize,
    /// Did not apply (no device, hopeless padding, ...).
    pub skipped: usize,
    /// Broke.
    pub failed: usize,
    /// Computed something else than the reference.
    pub mismatches: usize,
}

impl Tally {
    /// All of them.
    pub fn total(&self) -> usize {
        self.ok + self.skipped + self.failed + self.mismatches
    }
}

/// How cases are measured.
#[derive(Debug)]
pub struct Measuring {
    /// Repetitions.
    pub sampling: Sampling,
    /// Evict caches before each sample.
    pub eviction: Option<Eviction>,
    /// Type of the values.
    pub precision: Precision,
}

impl Runner {
    /// Opens (or continues) the table at `path`.
    ///
    /// # Errors
    /// A table that cannot be read or written.
    pub fn open(
        path: &Path,
        environment: Environment,
        resources: Resources,
        measuring: Measuring,
    ) -> anyhow::Result<Self> {
        let writer = Writer::open(path)?;
        let rows = results::read(path)?;
        let serial = rows
            .iter()
            .filter(|r| r.status == Status::Ok && r.speedup_vs_serial == Some(1.0))
            .filter_map(|r| Some((r.baseline(), r.median_s?)))
            .collect();
        Ok(Self {
            writer,
            unfinished: Unfinished::of(path.parent().unwrap_or(Path::new("."))),
            finished: rows.iter().map(Row::key).collect(),
            serial,
            recorded: rows.into_iter().map(|r| (r.key().without_experiment(), r)).collect(),
            resources,
            environment,
            sampling: measuring.sampling,
            eviction: measuring.eviction,
            precision: measuring.precision,
            tally: Tally::default(),
            sampled: Duration::ZERO,
        })
    }

    /// Whether the table has this case already.
    pub fn is_finished(&self, experiment: &str, matrix: &str, spec: &CaseSpec) -> bool {
        let row = self.identify(experiment, matrix, spec);
        self.finished.contains(&row.key())
    }

    /// Plans, checks, times (for `max_time` at the most, if that is less than the run's own limit)
    /// and records one case. A case that fails is a row like any other; a case that another
    /// experiment has recorded in this table is quoted, not measured again.
    ///
    /// # Errors
    /// Only when the row cannot be written.
    pub fn run<T: DeviceReal>(
        &mut self,
        experiment: &str,
        matrix: &Matrix<T>,
        spec: &CaseSpec,
        max_time: Duration,
    ) -> anyhow::Result<()> {
        let mut row = self.identify(experiment, &matrix.name, spec);
        let (rows, cols) = matrix.csr().shape();
        (row.rows, row.cols) = (rows as u64, cols as u64);
        row.entries = matrix.csr().nnz() as u64;
        self.run_planned(row, spec, max_time, |resources| plan(spec, matrix, resources))
    }

    /// The same for a procedure on data of its own.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn run_procedure(
        &mut self,
        experiment: &str,
        spec: &CaseSpec,
        max_time: Duration,
    ) -> anyhow::Result<()> {
        let length = procedures::length(spec);
        let name = procedures::name(length);
        if self.is_finished(experiment, &name, spec) {
            return Ok(());
        }
        let mut row = self.identify(experiment, &name, spec);
        (row.rows, row.cols, row.entries) = (1, 1, length as u64);
        self.run_planned(row, spec, max_time, |resources| procedures::plan(spec, length, resources))
    }

    fn run_planned<'a>(
        &mut self,
        mut row: Row,
        spec: &CaseSpec,
        max_time: Duration,
        plan: impl FnOnce(&mut Resources) -> Result<Planned<'a>, PlanError>,
    ) -> anyhow::Result<()> {
        let shared = row.key().without_experiment();
        if let Some(recorded) = self.recorded.get(&shared) {
            let row = Row { experiment: row.experiment, ..recorded.clone() };
            return self.record(row);
        }
        if !self.unfinished.begin(&serde_json::to_string(&row.key())?)? {
            (row.status, row.reason) = (Status::Failed, Unfinished::reason());
            return self.record(row);
        }
        let attempt =
            catch_unwind(AssertUnwindSafe(|| self.measure(plan, spec, max_time, &mut row)));
        match attempt {
            Ok(Ok(())) => {}
            Ok(Err(Ended { status, reason })) => (row.status, row.reason) = (status, reason),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                row.status = Status::Failed;
                row.reason = format!("panicked: {}", text.unwrap_or("no message"));
            }
        }
        self.recorded.insert(shared, row.clone());
        self.record(row)
    }

    /// Notes that the matrix of this name is being loaded. `false`: too many processes have ended
    /// in that.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn begin_loading(&mut self, matrix: &str) -> anyhow::Result<bool> {
        self.unfinished.begin(&format!("load {matrix}"))
    }

    /// Records a case of a matrix whose loading was given up, so that no later run tries it again.
    /// Its row has no size.
    ///
    /// # Errors
    /// Only when the row cannot be written.
    pub fn give_up(
        &mut self,
        experiment: &str,
        matrix: &str,
        spec: &CaseSpec,
    ) -> anyhow::Result<()> {
        let (status, reason) = (Status::Failed, Unfinished::reason());
        self.record(Row { status, reason, ..self.identify(experiment, matrix, spec) })
    }

    /// The fastest SpMV on a matrix for each backend, in words.
    pub fn fastest(&self, matrix: &str) -> Vec<String> {
        let of = |backend: &str| {
            let rows = self.recorded.values().filter(|r| {
                r.matrix == matrix && r.op == "spmv" && r.backend == backend && r.kernel != "auto"
            });
            let best =
                rows.max_by(|a, b| a.gflops.unwrap_or(0.0).total_cmp(&b.gflops.unwrap_or(0.0)))?;
            Some(format!("{backend} {} {:.2} GFLOPS", best.kernel, best.gflops?))
        };
        ["cpu", "gpu"].into_iter().filter_map(of).collect()
    }

    /// Notes that every case has its row.
    pub fn end(&self) {
        self.unfinished.end();
    }

    fn record(&mut self, row: Row) -> anyhow::Result<()> {
        match row.status {
            Status::Ok => self.tally.ok += 1,
            Status::Skipped => self.tally.skipped += 1,
            Status::Failed => self.tally.failed += 1,
            Status::Mismatch => self.tally.mismatches += 1,
        }
        self.writer.append(&row)?;
        self.finished.insert(row.key());
        Ok(())
    }

    /// The columns that say which case it is.
    fn identify(&self, experiment: &str, matrix: &str, spec: &CaseSpec) -> Row {
        let cpu = spec.info.backend == Backend::Cpu;
        // Nothing but the product is ever timed on the CPU.
        let scope = if cpu { Scope::Kernel } else { spec.scope };
        let block = spec.parameters.iter().find(|(name, _)| *name == "block");
        Row {
            experiment: experiment.to_owned(),
            matrix: matrix.to_owned(),
            op: spec.info.operation.name().to_owned(),
            backend: spec.info.backend.name().to_owned(),
            kernel: spec.info.id.to_owned(),
            params: spec.parameters_text(),
            k: spec.dense.map(|d| d.k as u64),
            threads: cpu.then_some(spec.threads as u64),
            block: block.and_then(|(_, value)| value.to_string().parse().ok()),
            cache: if self.eviction.is_some() { "cold" } else { "hot" }.to_owned(),
            scope: scope.name().to_owned(),
            precision: self.precision.name().to_owned(),
            ..Row::default()
        }
    }

    fn measure<'a>(
        &mut self,
        plan: impl FnOnce(&mut Resources) -> Result<Planned<'a>, PlanError>,
        spec: &CaseSpec,
        max_time: Duration,
        row: &mut Row,
    ) -> Result<(), Ended> {
        let Planned { mut case, plan_s } = plan(&mut self.resources)?;
        row.plan_s = Some(plan_s);
        let footprint = case.footprint();
        row.memory_bytes = Some(footprint.plan_bytes);

        let errors = case.check().map_err(Ended::failed)?;
        row.max_rel_err = Some(errors.max_relative);
        row.mean_rel_err = Some(errors.mean_relative);
        row.bound_err = Some(errors.bound);
        if !errors.acceptable() {
            return Err(Ended {
                status: Status::Mismatch,
                reason: format!("error {:.3e} times the rounding bound", errors.bound),
            });
        }

        let max_time = max_time.min(self.sampling.max_time);
        let sampling = Sampling { max_time, ..self.sampling };
        let begin = Instant::now();
        let timing = case.time(&sampling, self.eviction.as_mut());
        self.sampled += begin.elapsed();
        let timing = timing.map_err(Ended::failed)?;
        row.iterations = Some(timing.iterations as u64);
        row.median_s = Some(timing.median_s);
        row.min_s = Some(timing.min_s);
        row.p10_s = Some(timing.p10_s);
        row.p90_s = Some(timing.p90_s);
        let per_second = |amount: u64| amount as f64 / timing.median_s / 1e9;
        let flops = spec.flops(row.entries as usize);
        row.gflops = (flops > 0).then(|| per_second(flops));
        row.gbytes_per_s = Some(per_second(footprint.bytes_moved));
        let moved = footprint.bytes_moved;
        // Nothing that lies in memory is bound by a cache.
        let bytes = if self.eviction.is_some() { f64::INFINITY } else { moved as f64 };
        let threads = (spec.info.backend == Backend::Cpu).then_some(spec.threads as u64);
        let roof = self.environment.bandwidth_gb_per_s.roof(threads, bytes);
        row.roofline_fraction = roof.map(|roof| per_second(moved) / roof);
        if is_serial(&spec.info) && is_baseline(spec.info.id) {
            self.serial.entry(row.baseline()).or_insert(timing.median_s);
            row.speedup_vs_serial = Some(1.0);
        } else {
            row.speedup_vs_serial = self.serial.get(&row.baseline()).map(|s| s / timing.median_s);
        }
        row.efficiency = row.threads.and_then(|t| Some(row.speedup_vs_serial? / t as f64));
        row.choice = case.choice().unwrap_or_default();
        Ok(())
    }
}

/// The kernels that speedups are counted from.
pub fn is_baseline(id: &str) -> bool {
    matches!(id, "csr-serial" | "serial")
}

/// Why a case has no time.
struct Ended {
    status: Status,
    reason: String,
}

impl Ended {
    fn failed(error: impl std::fmt::Display) -> Self {
        Self { status: Status::Failed, reason: error.to_string() }
    }
}

impl From<PlanError> for Ended {
    fn from(error: PlanError) -> Self {
        // A format or a kernel that does not suit the matrix is an answer, not a fault.
        let status = match error {
            PlanError::Format(_) | PlanError::Unsupported { .. } => Status::Skipped,
            _ => Status::Failed,
        };
        Self { status, reason: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::MemoryBudget;
    use spm_formats::convert::csr_to_coo;
    use spm_gpu::Device;
    use spm_gpu_kernels::emulator::EmulatorOptions;

    use super::*;
    use crate::bench::environment::Bandwidths;
    use crate::bench::experiments;
    use crate::input::Input;

    #[test]
    fn a_device_lost_in_the_middle_fails_its_cases_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(results::RESULTS_FILE);
        // The first case is checked, warmed up and sampled; a later one does not get so far.
        let options = EmulatorOptions { launches: 6, ..EmulatorOptions::default() };
        let resources = Resources::on(Device::emulated(options), MemoryBudget::default());
        let environment =
            Environment::observe(Bandwidths::default(), Err("none"), serde_json::Value::Null);
        let sampling = Sampling {
            warm_up: 0,
            iterations: 1,
            min_time: Duration::ZERO,
            max_time: Duration::MAX,
        };
        let measuring = Measuring { sampling, eviction: None, precision: Precision::F64 };
        let mut runner = Runner::open(&path, environment, resources, measuring).unwrap();
        let csr = crate::recipe::named("cage4").unwrap().generate::<f64>().unwrap();
        let coo = csr_to_coo(csr.view());
        let matrix = Matrix::new("cage4".to_owned(), coo, csr, Input::default());
        let experiment = experiments::find("spmv-cpu-vs-gpu").unwrap();
        let cases = experiment.cases(1, None, Scope::Kernel);
        for case in &cases {
            runner.run(experiment.name, &matrix, case, Duration::MAX).unwrap();
        }
        let rows = results::read(&path).unwrap();
        assert_eq!(rows.len(), cases.len());
        let (gpu, cpu): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.backend == "gpu");
        assert!(!cpu.is_empty() && cpu.iter().all(|row| row.status == Status::Ok));
        let lost =
            |row: &Row| row.status == Status::Failed && row.reason.contains("device is lost");
        let first = gpu.iter().position(lost).expect("six launches are not enough for all");
        assert!(first > 0 && gpu[..first].iter().any(|row| row.status == Status::Ok));
        // Comparators have no library here, whatever happens to the device.
        assert!(gpu[first..].iter().all(|row| lost(row) || row.status == Status::Skipped));
    }
}
