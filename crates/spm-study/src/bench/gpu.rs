//! Cases on a CUDA device, by what the clock encloses: the kernels alone by events, launch and
//! synchronization, or the whole call from host memory to host memory.

use std::rc::Rc;

use spm_formats::kernel::{
    Footprint, KernelInfo, Operation, PlanError, ProductPlan, RunError, TransposeOutput,
    TransposePlan,
};
use spm_formats::{DenseShape, Layout, Scalar};
use spm_gpu::spmv::BoxedPlan;
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsc, DeviceInfo, DeviceReal, DeviceTransposePlan, GpuError,
    HostProductPlan, HostTransposePlan, PlanOptions, Stream,
};
use spm_testing::reference::{self, ErrorMeasures, Reference};

use super::cache::{Eviction, evicting};
use super::case::{Case, CaseSpec, Planned, compare_transpose, missing};
use super::timing::{Sampling, Scope, Timing, sample};
use crate::matrix::Matrix;

/// Every kernel for devices.
pub fn kernels() -> Vec<KernelInfo> {
    let mut all: Vec<KernelInfo> = Vec::new();
    all.extend(spm_gpu::spmv::registry::<f64>().iter().map(|k| k.info));
    all.extend(spm_gpu::spmm::registry::<f64>().iter().map(|k| k.info));
    all.extend(spm_gpu::transpose::registry::<f64>().iter().map(|k| k.info));
    all
}

/// What `environment.json` says of the device, or why there is none.
pub fn describe(device: Result<&Device, &str>) -> serde_json::Value {
    let info: &DeviceInfo = match device {
        Ok(device) => device.info(),
        Err(reason) => return serde_json::json!({ "none": reason }),
    };
    serde_json::json!({
        "name": info.name,
        "compute_capability": format!("{}.{}", info.compute_capability.0, info.compute_capability.1),
        "memory_bytes": info.memory_bytes,
        "l2_bytes": info.l2_bytes,
        "multiprocessors": info.multiprocessors,
        "driver_cuda": info.driver.to_string(),
    })
}

/// Plans `spec` on the device; x and y are allocated and filled there.
///
/// # Errors
/// A kernel that does not apply, padding beyond the budget, no such kernel, too little device memory.
pub fn plan<'a, T: DeviceReal>(
    spec: &CaseSpec,
    matrix: &'a Matrix<T>,
    device: &Device,
    options: &PlanOptions,
) -> Result<Planned<'a>, PlanError> {
    let (a, id) = (matrix.csr(), spec.info.id);
    let missing = || missing(&spec.info);
    let stream = Stream::new(device)?;
    // A whole call plans anew each time, so it keeps what planning takes.
    let (parameters, scope) = (spec.parameters.clone(), spec.scope);
    let (on, options) = (device.clone(), options.clone());
    match spec.info.operation {
        Operation::Spmv => {
            let kernel = spm_gpu::spmv::find::<T>(id).ok_or_else(missing)?;
            let make = move || kernel.plan(&on, a.view(), &parameters, &options);
            Planned::new(make.clone(), |plan| {
                Product::case(plan, matrix, None, (device, stream), scope, make)
            })
        }
        Operation::Spmm => {
            let kernel = spm_gpu::spmm::find::<T>(id).ok_or_else(missing)?;
            let dense = spec.dense.unwrap_or(DenseShape { k: 1, layout: Layout::RowMajor });
            let make = move || kernel.plan(&on, a.view(), dense, &parameters, &options);
            Planned::new(make.clone(), |plan| {
                Product::case(plan, matrix, Some(dense), (device, stream), scope, make)
            })
        }
        Operation::Transpose => {
            let kernel = spm_gpu::transpose::find::<T>(id).ok_or_else(missing)?;
            let make = move || kernel.plan(&on, a.view(), &parameters, &options);
            Planned::new(make.clone(), |plan| {
                let output = DeviceCsc::new(device, a.cols(), a.nnz())?;
                let reference = matrix.transpose_reference();
                let mut host = None;
                let clock = Clock::new(scope, move || {
                    let host = host.get_or_insert_with(|| TransposeOutput::new(a.cols(), a.nnz()));
                    HostTransposePlan::new(make().map_err(unplanned)?)?.run(host)
                });
                Ok(Transpose { plan, output, stream, reference, clock })
            })
        }
        Operation::Conversion | Operation::Read => Err(missing()),
    }
}

fn unplanned(error: PlanError) -> RunError {
    RunError::device(error.to_string())
}

/// What times a case.
enum Clock<'a> {
    /// Events around the kernels.
    Events,
    /// The host's clock around launch and synchronization.
    Launch,
    /// The host's clock around this.
    Call(Box<dyn FnMut() -> Result<(), RunError> + 'a>),
}

impl<'a> Clock<'a> {
    fn new(scope: Scope, call: impl FnMut() -> Result<(), RunError> + 'a) -> Self {
        match scope {
            Scope::Kernel => Self::Events,
            Scope::Launch => Self::Launch,
            Scope::Call => Self::Call(Box::new(call)),
        }
    }

    fn time(
        &mut self,
        sampling: &Sampling,
        eviction: Option<&mut Eviction>,
        stream: &Stream,
        mut launch: impl FnMut(&Stream) -> Result<(), GpuError>,
    ) -> Result<Timing, RunError> {
        let device = stream.device();
        let mut cold = eviction.is_some().then(|| DeviceEviction::new(device)).transpose()?;
        let is_cold = eviction.is_some();
        let mut evict_host = evicting(eviction);
        let mut evict_device = |stream: &Stream| match &mut cold {
            Some(cold) => cold.0.enqueue_zero(stream),
            None => Ok(()),
        };
        if matches!(self, Self::Events) {
            return Ok(spm_gpu::time_after(stream, sampling, evict_device, launch)?);
        }
        // An error in between stays in the stream, and the next launch reports it.
        let between = || {
            if let Some(evict) = &mut evict_host {
                evict();
            }
            let _ = evict_device(stream).and_then(|()| stream.synchronize());
        };
        let between = is_cold.then_some(between);
        match self {
            Self::Call(call) => sample(sampling, between, call),
            Self::Events | Self::Launch => sample(sampling, between, || {
                launch(stream)?;
                Ok(stream.synchronize()?)
            }),
        }
    }
}

/// A buffer in device memory; overwriting it leaves nothing else in the cache.
struct DeviceEviction(DeviceBuffer<u32>);

impl DeviceEviction {
    /// Twice the device's last-level cache.
    fn new(device: &Device) -> Result<Self, GpuError> {
        let words = 2 * device.info().l2_bytes as usize / size_of::<u32>();
        DeviceBuffer::uninitialized(device, words).map(Self)
    }
}

struct Operands<T> {
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
    result: Vec<T>,
    reference: Rc<Reference>,
}

impl<T: DeviceReal> Operands<T> {
    fn new(device: &Device, x: &[T], y: usize, reference: Rc<Reference>) -> Result<Self, GpuError> {
        // What a kernel fails to write must not pass for a result.
        let result = vec![T::from_f64(f64::NAN); y];
        let x = DeviceBuffer::from_slice(device, x)?;
        Ok(Self { x, y: DeviceBuffer::from_slice(device, &result)?, result, reference })
    }
}

struct Product<'a, T> {
    plan: BoxedPlan<T>,
    operands: Operands<T>,
    stream: Stream,
    clock: Clock<'a>,
}

impl<'a, T: DeviceReal> Product<'a, T> {
    /// With X and Y on the device; `make` plans for a whole call.
    fn case(
        plan: BoxedPlan<T>,
        matrix: &'a Matrix<T>,
        dense: Option<DenseShape>,
        (device, stream): (&Device, Stream),
        scope: Scope,
        make: impl Fn() -> Result<BoxedPlan<T>, PlanError> + 'a,
    ) -> Result<Self, PlanError> {
        let k = dense.map_or(1, |dense| dense.k);
        let (x, elements) = (matrix.x(k), matrix.csr().rows() * k);
        let operands = Operands::new(device, &x, elements, matrix.reference(dense))?;
        let mut y = Vec::new();
        let clock = Clock::new(scope, move || {
            y.resize(elements, <T as Scalar>::ZERO);
            HostProductPlan::new(make().map_err(unplanned)?)?.run(&x, &mut y)
        });
        Ok(Self { plan, operands, stream, clock })
    }
}

impl<T: DeviceReal> Case for Product<'_, T> {
    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn choice(&self) -> Option<String> {
        self.plan.choice()
    }

    fn check(&mut self) -> Result<ErrorMeasures, RunError> {
        let Operands { x, y, result, reference } = &mut self.operands;
        self.plan.launch(x, y, &self.stream)?;
        self.stream.synchronize()?;
        y.copy_to_slice(result)?;
        Ok(reference::compare(result, reference))
    }

    fn time(
        &mut self,
        sampling: &Sampling,
        eviction: Option<&mut Eviction>,
    ) -> Result<Timing, RunError> {
        let Operands { x, y, .. } = &mut self.operands;
        let plan = &mut self.plan;
        let launch = |stream: &Stream| plan.launch(x, y, stream);
        self.clock.time(sampling, eviction, &self.stream, launch)
    }
}

struct Transpose<'a, T> {
    plan: Box<dyn DeviceTransposePlan<T>>,
    output: DeviceCsc<T>,
    stream: Stream,
    reference: Rc<TransposeOutput<T>>,
    clock: Clock<'a>,
}

impl<T: DeviceReal> Case for Transpose<'_, T> {
    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn choice(&self) -> Option<String> {
        self.plan.choice()
    }

    fn check(&mut self) -> Result<ErrorMeasures, RunError> {
        self.plan.launch(&mut self.output, &self.stream)?;
        self.stream.synchronize()?;
        let mut output = TransposeOutput::new(self.plan.shape().1, self.plan.entries());
        self.output.copy_to(&mut output)?;
        Ok(compare_transpose(&output, &self.reference))
    }

    fn time(
        &mut self,
        sampling: &Sampling,
        eviction: Option<&mut Eviction>,
    ) -> Result<Timing, RunError> {
        let (plan, output) = (&mut self.plan, &mut self.output);
        let launch = |stream: &Stream| plan.launch(output, stream);
        self.clock.time(sampling, eviction, &self.stream, launch)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use spm_formats::{Coo, MemoryBudget};

    use super::*;
    use crate::bench::Resources;
    use crate::input::Input;

    /// Every operation is checked and timed by every clock, hot and cold.
    #[test]
    fn every_scope_times_what_was_checked() {
        let rows: Vec<u32> = (0..40).collect();
        let cols: Vec<u32> = (0..40).map(|i| i * 7 % 30).collect();
        let values: Vec<f32> = (1..=40).map(|i| i as f32).collect();
        let coo = Coo::new(40, 30, rows, cols, values).unwrap();
        let csr = spm_formats::convert::coo_to_csr(&coo);
        let matrix = Matrix::new("small".to_owned(), coo, csr, Input::default());
        let mut resources = Resources::emulated(MemoryBudget::default());
        let sampling = Sampling {
            warm_up: 1,
            iterations: 3,
            min_time: Duration::ZERO,
            max_time: Duration::MAX,
        };
        for (operation, id) in [
            (Operation::Spmv, "csr-thread-per-row"),
            (Operation::Spmm, "csr-thread-per-element-v2"),
            (Operation::Transpose, "scan-trans"),
        ] {
            let info = kernels().into_iter().find(|k| k.operation == operation && k.id == id);
            let info = info.expect("a registered kernel");
            for scope in [Scope::Kernel, Scope::Launch, Scope::Call] {
                let dense = DenseShape { k: 3, layout: Layout::RowMajor };
                let dense = (operation == Operation::Spmm).then_some(dense);
                let parameters = info.defaults();
                let spec = CaseSpec { info, parameters, threads: 1, dense, scope };
                let mut case = super::super::plan(&spec, &matrix, &mut resources).unwrap().case;
                assert!(case.check().unwrap().acceptable(), "{id} {scope:?}");
                for mut eviction in [None, Some(Eviction::new(1 << 16))] {
                    let timing = case.time(&sampling, eviction.as_mut()).unwrap();
                    assert_eq!(timing.iterations, 3, "{id} {scope:?}");
                    assert!(timing.min_s > 0.0, "{id} {scope:?}");
                    // With no time at all one run is taken all the same, and no more.
                    let none = Sampling { max_time: Duration::ZERO, ..sampling };
                    let timing = case.time(&none, eviction.as_mut()).unwrap();
                    assert_eq!(timing.iterations, 1, "{id} {scope:?}");
                }
                assert!(case.check().unwrap().acceptable(), "{id} {scope:?}");
            }
        }
    }
}
