//! One case: a kernel, planned for one matrix, that can be checked and timed.

use std::time::Instant;

use spm_formats::kernel::{
    Footprint, KernelInfo, Operation, Parameters, PlanError, RunError, TransposeOutput,
};
use spm_formats::{DenseShape, Layout, RealScalar};
use spm_testing::reference::ErrorMeasures;

use super::cache::Eviction;
use super::timing::{Sampling, Scope, Timing};

/// What to run, before any matrix is known.
#[derive(Debug, Clone)]
pub struct CaseSpec {
    /// The kernel.
    pub info: KernelInfo,
    /// Its parameters.
    pub parameters: Parameters,
    /// Threads of the thread pool (CPU).
    pub threads: usize,
    /// Columns and layout of X (SpMM).
    pub dense: Option<DenseShape>,
    /// What the clock encloses; on the CPU always the kernel.
    pub scope: Scope,
}

impl CaseSpec {
    /// The `params` column: the layout of X, then the kernel's parameters.
    pub fn parameters_text(&self) -> String {
        let layout = self.dense.map(|dense| format!("layout={}", layout_name(dense.layout)));
        let own = Some(self.parameters.to_string()).filter(|text| !text.is_empty());
        layout.into_iter().chain(own).collect::<Vec<_>>().join(",")
    }

    /// Whether the two are the same case of an experiment.
    pub fn same(&self, other: &Self) -> bool {
        let key =
            |c: &Self| (c.info.operation, c.info.backend, c.info.id, c.threads, c.dense, c.scope);
        key(self) == key(other) && self.parameters == other.parameters
    }

    /// The `k` column.
    pub fn k(&self) -> usize {
        self.dense.map_or(1, |dense| dense.k)
    }

    /// Floating-point operations of one run on a matrix of `entries` entries (0 for data movement).
    pub fn flops(&self, entries: usize) -> u64 {
        match self.info.operation {
            Operation::Spmv | Operation::Spmm => 2 * entries as u64 * self.k() as u64,
            Operation::Transpose | Operation::Conversion | Operation::Read => 0,
        }
    }
}

/// `row` or `column`, as layouts are written on the command line.
pub fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::RowMajor => "row",
        Layout::ColumnMajor => "column",
    }
}

/// A planned kernel with its operands.
pub trait Case {
    /// Traffic and memory of the plan.
    fn footprint(&self) -> Footprint;

    /// What a kernel that chooses by itself has chosen.
    fn choice(&self) -> Option<String>;

    /// Runs once and compares with the reference.
    ///
    /// # Errors
    /// What the kernel reports.
    fn check(&mut self) -> Result<ErrorMeasures, RunError>;

    /// Runs and times; caches are evicted, untimed, before each sample, if `eviction` is given.
    ///
    /// # Errors
    /// What the kernel reports.
    fn time(
        &mut self,
        sampling: &Sampling,
        eviction: Option<&mut Eviction>,
    ) -> Result<Timing, RunError>;
}

/// A case that is ready to run.
pub struct Planned<'a> {
    /// The plan with its operands.
    pub case: Box<dyn Case + 'a>,
    /// What planning alone took, in seconds: operands and the reference are not part of it.
    pub plan_s: f64,
}

impl<'a> Planned<'a> {
    /// Plans by `plan` and lets `case` put the operands beside the plan.
    ///
    /// # Errors
    /// Those of both.
    pub fn new<P, C: Case + 'a>(
        plan: impl FnOnce() -> Result<P, PlanError>,
        case: impl FnOnce(P) -> Result<C, PlanError>,
    ) -> Result<Self, PlanError> {
        let start = Instant::now();
        let plan = plan()?;
        let plan_s = start.elapsed().as_secs_f64();
        Ok(Self { case: Box::new(case(plan)?), plan_s })
    }
}

/// The answer for a kernel that no registry has.
pub fn missing(info: &KernelInfo) -> PlanError {
    let reason = format!("no {} kernel of this name for {}", info.operation, info.backend);
    PlanError::Unsupported { kernel: info.id, reason }
}

/// A transposition moves values: every bit has to be right.
pub fn compare_transpose<T: RealScalar>(
    computed: &TransposeOutput<T>,
    reference: &TransposeOutput<T>,
) -> ErrorMeasures {
    let bits = |values: &[T]| values.iter().map(|v| v.to_bits64()).collect::<Vec<_>>();
    let same = computed.col_ptr == reference.col_ptr
        && computed.row_ind == reference.row_ind
        && bits(&computed.values) == bits(&reference.values);
    exact(same)
}

/// The measures of an operation that has to be right bit by bit.
pub fn exact(same: bool) -> ErrorMeasures {
    ErrorMeasures { bound: if same { 0.0 } else { f64::INFINITY }, ..ErrorMeasures::default() }
}
