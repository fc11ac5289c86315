//! One case: a kernel, planned for one matrix, that can be checked and timed.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use spm_cpu::{PlanOptions, Threads};
use spm_formats::kernel::{
    Backend, Footprint, KernelInfo, Operation, Parameters, PlanError, RunError, SpmmPlan, SpmvPlan,
    TransposeOutput, TransposePlan,
};
use spm_formats::{Coo, DenseShape, Layout, MemoryBudget, Scalar, convert};
use spm_gpu::{Device, DeviceScalar};
use spm_gpu_kernels::emulator::EmulatorOptions;
use spm_testing::reference::{self, ErrorMeasures, Reference, is_exactly};

use super::cache::{Eviction, evicting};
use super::timing::{Sampling, Scope, Timing, sample};
use super::{gpu, reading};
use crate::matrix::Matrix;

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

/// What cases are planned with.
#[derive(Debug)]
pub struct Resources {
    /// Thread pools by their number of threads.
    pools: HashMap<usize, Threads>,
    /// What padded formats may take.
    budget: MemoryBudget,
    /// The device, or why there is none.
    device: Result<Device, String>,
}

impl Resources {
    /// Opens the first device, if `gpu` asks for it.
    pub fn new(budget: MemoryBudget, gpu: bool) -> Self {
        let device = if gpu {
            Device::available().map_err(|error| error.to_string())
        } else {
            Err("not asked for".to_owned())
        };
        Self { pools: HashMap::new(), budget, device }
    }

    /// With the emulator as the device.
    pub fn emulated(budget: MemoryBudget) -> Self {
        Self::on(Device::emulated(EmulatorOptions::default()), budget)
    }

    /// With this device.
    pub fn on(device: Device, budget: MemoryBudget) -> Self {
        let device = Ok(device);
        Self { pools: HashMap::new(), budget, device }
    }

    /// The device, or why there is none.
    pub fn device(&self) -> Result<&Device, &str> {
        self.device.as_ref().map_err(String::as_str)
    }
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

/// Plans `spec` for `matrix`.
///
/// # Errors
/// A kernel that does not apply, padding beyond the budget, no such kernel, no device.
pub fn plan<'a, T: DeviceScalar>(
    spec: &CaseSpec,
    matrix: &'a Matrix<T>,
    resources: &mut Resources,
) -> Result<Planned<'a>, PlanError> {
    let info = spec.info;
    let missing = || missing(&info);
    let budget = resources.budget.clone().for_matrix(&matrix.name);
    if info.backend == Backend::Gpu {
        let device = resources.device().map_err(|reason| PlanError::Device(reason.to_owned()))?;
        return gpu::plan(spec, matrix, device, &spm_gpu::PlanOptions { budget });
    }
    let pool = resources.pools.entry(spec.threads).or_insert_with(|| Threads::new(spec.threads));
    let options = &PlanOptions { threads: pool.clone(), budget };
    let a = matrix.csr();
    match (info.operation, info.backend) {
        (Operation::Spmv, Backend::Cpu) => {
            let kernel = spm_cpu::spmv::find::<T>(info.id).ok_or_else(missing)?;
            Planned::new(
                || kernel.plan(a.view(), &spec.parameters, options),
                |plan| Ok(Product::new(plan, matrix, None)),
            )
        }
        (Operation::Spmm, Backend::Cpu) => {
            let kernel = spm_cpu::spmm::find::<T>(info.id).ok_or_else(missing)?;
            let dense = spec.dense.unwrap_or(DenseShape { k: 1, layout: Layout::RowMajor });
            Planned::new(
                || kernel.plan(a.view(), dense, &spec.parameters, options),
                |plan| Ok(Product::new(plan, matrix, Some(dense))),
            )
        }
        (Operation::Transpose, Backend::Cpu) => {
            let kernel = spm_cpu::transpose::find::<T>(info.id).ok_or_else(missing)?;
            Planned::new(
                || kernel.plan(a.view(), &spec.parameters, options),
                |plan| {
                    let output = TransposeOutput::new(a.cols(), a.nnz());
                    Ok(Transpose { plan, output, reference: matrix.transpose_reference() })
                },
            )
        }
        (Operation::Conversion, Backend::Cpu) => {
            let kernel = convert::find::<T>(info.id).ok_or_else(missing)?;
            let input = convert::ConversionInput { coo: matrix.coo(), csr: a.view() };
            let pool = rayon_pool(spec.threads)?;
            Planned::new(
                || kernel.plan(input, &spec.parameters, &options.budget),
                |plan| Ok(Conversion { plan, pool, coo: matrix.coo() }),
            )
        }
        (Operation::Read, Backend::Cpu) => reading::plan(spec, matrix, rayon_pool(spec.threads)?),
        (_, Backend::Gpu) => Err(missing()),
    }
}

/// A pool of its own for what runs on rayon.
fn rayon_pool(threads: usize) -> Result<rayon::ThreadPool, PlanError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| PlanError::Device(error.to_string()))
}

/// The answer for a kernel that no registry has.
pub fn missing(info: &KernelInfo) -> PlanError {
    let reason = format!("no {} kernel of this name for {}", info.operation, info.backend);
    PlanError::Unsupported { kernel: info.id, reason }
}

/// A transposition moves values: every bit has to be right.
pub fn compare_transpose<T: Scalar>(
    computed: &TransposeOutput<T>,
    reference: &TransposeOutput<T>,
) -> ErrorMeasures {
    let bits = |values: &[T]| values.iter().map(|v| v.to_bits64()).collect::<Vec<_>>();
    let same = computed.pointers == reference.pointers
        && computed.indices == reference.indices
        && bits(&computed.values) == bits(&reference.values);
    exact(same)
}

/// The measures of an operation that has to be right bit by bit.
pub fn exact(same: bool) -> ErrorMeasures {
    ErrorMeasures { bound: if same { 0.0 } else { f64::INFINITY }, ..ErrorMeasures::default() }
}

/// What SpMV and SpMM plans have in common.
trait Multiply<T> {
    fn footprint(&self) -> Footprint;
    fn choice(&self) -> Option<String>;
    fn run(&mut self, x: &[T], y: &mut [T]) -> Result<(), RunError>;
}

macro_rules! multiply {
    ($plan:ident) => {
        impl<T> Multiply<T> for Box<dyn $plan<T> + '_> {
            fn footprint(&self) -> Footprint {
                (**self).footprint()
            }
            fn choice(&self) -> Option<String> {
                (**self).choice()
            }
            fn run(&mut self, x: &[T], y: &mut [T]) -> Result<(), RunError> {
                (**self).run(x, y)
            }
        }
    };
}

multiply!(SpmvPlan);
multiply!(SpmmPlan);

struct Product<P, T> {
    plan: P,
    x: Vec<T>,
    y: Vec<T>,
    reference: Rc<Reference>,
}

impl<P: Multiply<T>, T: Scalar> Product<P, T> {
    fn new(plan: P, matrix: &Matrix<T>, dense: Option<DenseShape>) -> Self {
        let k = dense.map_or(1, |dense| dense.k);
        let y = vec![<T as Scalar>::ZERO; matrix.csr().rows() * k];
        Self { plan, x: matrix.x(k), y, reference: matrix.reference(dense) }
    }
}

impl<P: Multiply<T>, T: Scalar> Case for Product<P, T> {
    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn choice(&self) -> Option<String> {
        self.plan.choice()
    }

    fn check(&mut self) -> Result<ErrorMeasures, RunError> {
        // What a kernel fails to write must not pass for a result.
        self.y.fill(T::from_f64(f64::NAN));
        self.plan.run(&self.x, &mut self.y)?;
        Ok(reference::compare(&self.y, &self.reference))
    }

    fn time(
        &mut self,
        sampling: &Sampling,
        eviction: Option<&mut Eviction>,
    ) -> Result<Timing, RunError> {
        sample(sampling, evicting(eviction), || self.plan.run(&self.x, &mut self.y))
    }
}

struct Transpose<'a, T> {
    plan: Box<dyn TransposePlan<T> + 'a>,
    output: TransposeOutput<T>,
    reference: Rc<TransposeOutput<T>>,
}

impl<T: Scalar> Case for Transpose<'_, T> {
    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn choice(&self) -> Option<String> {
        self.plan.choice()
    }

    fn check(&mut self) -> Result<ErrorMeasures, RunError> {
        self.output.pointers.fill(u32::MAX);
        self.output.indices.fill(u32::MAX);
        self.output.values.fill(T::from_f64(f64::NAN));
        self.plan.run(&mut self.output)?;
        Ok(compare_transpose(&self.output, &self.reference))
    }

    fn time(
        &mut self,
        sampling: &Sampling,
        eviction: Option<&mut Eviction>,
    ) -> Result<Timing, RunError> {
        sample(sampling, evicting(eviction), || self.plan.run(&mut self.output))
    }
}

struct Conversion<'a, T> {
    plan: convert::ConversionPlan<'a, T>,
    pool: rayon::ThreadPool,
    coo: &'a Coo<T>,
}

impl<T: Scalar> Case for Conversion<'_, T> {
    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn choice(&self) -> Option<String> {
        None
    }

    fn check(&mut self) -> Result<ErrorMeasures, RunError> {
        let converted = self.pool.install(|| self.plan.run());
        let converted = converted.map_err(|error| RunError::Device(error.to_string()))?;
        Ok(exact(is_exactly(&converted, self.coo)))
    }

    fn time(
        &mut self,
        sampling: &Sampling,
        eviction: Option<&mut Eviction>,
    ) -> Result<Timing, RunError> {
        let convert = || -> Result<(), RunError> {
            let converted = self.plan.run().map_err(|error| RunError::Device(error.to_string()))?;
            // Giving the result back to the allocator is part of what a caller pays.
            drop(std::hint::black_box(converted));
            Ok(())
        };
        sample(sampling, evicting(eviction), || self.pool.install(convert))
    }
}
