//! Cases on a CUDA device: operands stay there, times come from events around the kernels alone.

use std::rc::Rc;

use spm_formats::kernel::{Footprint, KernelInfo, Operation, PlanError, RunError, TransposeOutput};
use spm_formats::reference::{self, ErrorMeasures, Reference};
use spm_formats::{DenseShape, Layout};
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsc, DeviceInfo, DeviceScalar, DeviceSpmmPlan, DeviceSpmvPlan,
    DeviceTransposePlan, GpuError, PlanOptions, Stream, TimingOptions,
};

use super::case::{Case, CaseSpec, Planned, compare_transpose, missing};
use super::timing::{Sampling, Timing};
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

/// Median bandwidth of a copy inside device memory, in GB/s read plus written.
///
/// # Errors
/// Too little memory, a device that fails.
pub fn copy_bandwidth(device: &Device) -> Result<f64, GpuError> {
    const ELEMENTS: usize = 1 << 27;
    let source = DeviceBuffer::<f64>::zeroed(device, ELEMENTS)?;
    let mut target = DeviceBuffer::<f64>::zeroed(device, ELEMENTS)?;
    let stream = Stream::new(device)?;
    let options = TimingOptions { iterations: 20, ..TimingOptions::default() };
    let timing = spm_gpu::time(&stream, options, |stream| target.copy_from_on(&source, stream))?;
    Ok(2.0 * source.bytes() as f64 / timing.median_s / 1e9)
}

/// Plans `spec` on the device; x and y are allocated and filled there.
///
/// # Errors
/// As [`super::case::plan`]; also too little device memory.
pub fn plan<T: DeviceScalar>(
    spec: &CaseSpec,
    matrix: &Matrix<T>,
    device: &Device,
    options: &PlanOptions,
) -> Result<Planned<'static>, PlanError> {
    let (a, id) = (matrix.csr(), spec.info.id);
    let missing = || missing(&spec.info);
    let stream = Stream::new(device)?;
    match spec.info.operation {
        Operation::Spmv => {
            let kernel = spm_gpu::spmv::find::<T>(id).ok_or_else(missing)?;
            Planned::new(
                || kernel.plan(device, &a.view(), &spec.parameters, options),
                |plan| {
                    let reference = matrix.reference(None);
                    let operands = Operands::new(device, &matrix.x(1), a.rows(), reference)?;
                    Ok(Product { plan, operands, stream })
                },
            )
        }
        Operation::Spmm => {
            let kernel = spm_gpu::spmm::find::<T>(id).ok_or_else(missing)?;
            let dense = spec.dense.unwrap_or(DenseShape { k: 1, layout: Layout::RowMajor });
            Planned::new(
                || kernel.plan(device, &a.view(), dense, &spec.parameters, options),
                |plan| {
                    let (x, reference) = (matrix.x(dense.k), matrix.reference(Some(dense)));
                    let operands = Operands::new(device, &x, a.rows() * dense.k, reference)?;
                    Ok(Product { plan, operands, stream })
                },
            )
        }
        Operation::Transpose => {
            let kernel = spm_gpu::transpose::find::<T>(id).ok_or_else(missing)?;
            Planned::new(
                || kernel.plan(device, &a.view(), &spec.parameters, options),
                |plan| {
                    let output = DeviceCsc::new(device, a.cols(), a.nnz())?;
                    let reference = matrix.transpose_reference();
                    Ok(Transpose { plan, output, stream, reference })
                },
            )
        }
        Operation::Conversion | Operation::Read => Err(missing()),
    }
}

/// What SpMV and SpMM plans have in common.
trait Launch<T> {
    fn footprint(&self) -> Footprint;
    fn choice(&self) -> Option<String>;
    fn launch(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError>;
}

macro_rules! launch {
    ($plan:ident) => {
        impl<T> Launch<T> for Box<dyn $plan<T>> {
            fn footprint(&self) -> Footprint {
                (**self).footprint()
            }
            fn choice(&self) -> Option<String> {
                (**self).choice()
            }
            fn launch(
                &mut self,
                x: &DeviceBuffer<T>,
                y: &mut DeviceBuffer<T>,
                stream: &Stream,
            ) -> Result<(), GpuError> {
                (**self).launch(x, y, stream)
            }
        }
    };
}

launch!(DeviceSpmvPlan);
launch!(DeviceSpmmPlan);

struct Operands<T> {
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
    result: Vec<T>,
    reference: Rc<Reference>,
}

impl<T: DeviceScalar> Operands<T> {
    fn new(device: &Device, x: &[T], y: usize, reference: Rc<Reference>) -> Result<Self, GpuError> {
        // What a kernel fails to write must not pass for a result.
        let result = vec![T::from_f64(f64::NAN); y];
        let x = DeviceBuffer::from_slice(device, x)?;
        Ok(Self { x, y: DeviceBuffer::from_slice(device, &result)?, result, reference })
    }
}

struct Product<P, T> {
    plan: P,
    operands: Operands<T>,
    stream: Stream,
}

impl<P: Launch<T>, T: DeviceScalar> Case for Product<P, T> {
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

    fn time(&mut self, sampling: &Sampling, between: &mut dyn FnMut()) -> Result<Timing, RunError> {
        between();
        let Operands { x, y, .. } = &mut self.operands;
        let plan = &mut self.plan;
        event_times(sampling, &self.stream, |stream| plan.launch(x, y, stream))
    }
}

struct Transpose<T> {
    plan: Box<dyn DeviceTransposePlan<T>>,
    output: DeviceCsc<T>,
    stream: Stream,
    reference: Rc<TransposeOutput<T>>,
}

impl<T: DeviceScalar> Case for Transpose<T> {
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

    fn time(&mut self, sampling: &Sampling, between: &mut dyn FnMut()) -> Result<Timing, RunError> {
        between();
        let (plan, output) = (&mut self.plan, &mut self.output);
        event_times(sampling, &self.stream, |stream| plan.launch(output, stream))
    }
}

fn event_times(
    sampling: &Sampling,
    stream: &Stream,
    launch: impl FnMut(&Stream) -> Result<(), GpuError>,
) -> Result<Timing, RunError> {
    let options = TimingOptions {
        warm_up: sampling.warm_up,
        iterations: sampling.iterations,
        min_time: sampling.min_time.min(sampling.max_time),
        ..TimingOptions::default()
    };
    let times = spm_gpu::time(stream, options, launch)?;
    Ok(Timing {
        median_s: times.median_s,
        min_s: times.min_s,
        p10_s: times.p10_s,
        p90_s: times.p90_s,
        iterations: times.iterations,
    })
}
