//! The fastest plan for a matrix on this device: the kernels that suit the structure, by the clock.

use std::time::Duration;

use spm_formats::kernel::{
    Backend, Footprint, KernelInfo, Operation, ParameterSpec, Parameters, PlanError, Value,
    split_label,
};
use spm_formats::{CsrArrays, CsrView, stats};

use super::{BoxedPlan, find};
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, DeviceSpmvPlan, PlanOptions};
use crate::stream::Stream;
use crate::timing::{TimingOptions, time};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "own",
    summary: "the fastest of the kernels that suit the structure, found by timing them in planning",
    parameters: &[COMPACT],
};

const COMPACT: ParameterSpec = ParameterSpec {
    name: "compact",
    meaning: "may leave out equal values and shorten columns to 16 bits",
    default: Value::Switch(true),
    studied: &[Value::Switch(true), Value::Switch(false)],
};

/// Rows of a chunk of the SELL kernels, and the sorting window whose padding is looked at.
const CHUNK: usize = 32;
const SIGMA: usize = 1024;
/// Padding beyond which SELL cannot win.
const LARGEST_PADDING: f64 = 1.5;
/// A longest row of so many means stands out: the balanced kernels run too.
const SKEWED: f64 = 8.0;
/// Rows below which a thread for each row leaves the device idle.
const FEW_ROWS: usize = 1 << 16;

struct Auto<T> {
    plan: BoxedPlan<T>,
    choice: String,
}

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: &CsrView<'_, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let arrays = CsrArrays::new(a)?;
    let mut clock = Clock::new(device, (arrays.rows(), arrays.cols()))?;
    let mut best: Option<(f64, Auto<T>)> = None;
    for choice in candidates(&arrays, parameters.switch("compact")) {
        let (id, text) = split_label(&choice);
        let kernel = find::<T>(id).expect("a registered kernel");
        let parameters = kernel.info.parse_parameters(text).expect("its own parameters");
        let mut plan = match kernel.plan(device, a, &parameters, options) {
            Ok(plan) => plan,
            // Too little memory for one more format, or a format that does not apply.
            Err(_) if best.is_some() => continue,
            Err(error) => return Err(error),
        };
        let seconds = clock.time(&mut plan)?;
        if best.as_ref().is_none_or(|(least, _)| seconds <= *least) {
            best = Some((seconds, Auto { plan, choice }));
        }
    }
    let (_, auto) = best.expect("the first candidate applies to every matrix");
    Ok(Box::new(auto))
}

/// Labels of kernels that may be the fastest; the first applies to every matrix.
fn candidates<T: DeviceScalar>(a: &CsrArrays<'_, T>, compact: bool) -> Vec<String> {
    let drop = if compact { "on" } else { "off" };
    let (rows, entries) = (a.rows().max(1) as f64, a.entries() as f64);
    let longest = a.pointers().windows(2).map(|p| p[1] - p[0]).max().unwrap_or(0);
    let skewed = f64::from(longest) > SKEWED * (entries / rows).max(4.0);
    let mut labels = vec![format!("csr-subwarp-per-row[drop-equal={drop}]")];
    if skewed {
        labels.push(format!("csr-merge[drop-equal={drop}]"));
        labels.push(format!("csr-adaptive[drop-equal={drop}]"));
    }
    if compact {
        labels.push("csr-compact".to_owned());
    }
    if a.rows() < FEW_ROWS {
        labels.push("csr-warp-per-row".to_owned());
    }
    let slots = stats::sell_slots(a.pointers(), CHUNK, SIGMA) as f64;
    if slots <= LARGEST_PADDING * entries {
        labels.push(format!("sell[sigma={SIGMA}]"));
        labels.push("hll-thread-per-row".to_owned());
        if compact {
            labels.push(format!("sell-compact[sigma={SIGMA}]"));
        }
    }
    labels
}

/// Times plans with an x of zeros: where x is read depends on the matrix alone.
struct Clock<T> {
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
    stream: Stream,
}

impl<T: DeviceScalar> Clock<T> {
    fn new(device: &Device, (rows, cols): (usize, usize)) -> Result<Self, GpuError> {
        let (x, y) = (DeviceBuffer::zeroed(device, cols)?, DeviceBuffer::zeroed(device, rows)?);
        Ok(Self { x, y, stream: Stream::new(device)? })
    }

    /// Median seconds of a product. On the emulator time means nothing: 0, and the last candidate,
    /// which moves the fewest bytes, wins.
    fn time(&mut self, plan: &mut BoxedPlan<T>) -> Result<f64, GpuError> {
        if plan.device().is_emulated() {
            return Ok(0.0);
        }
        let options = TimingOptions {
            warm_up: 2,
            iterations: 5,
            min_time: Duration::from_micros(200),
            max_iterations: 20,
        };
        let timing =
            time(&self.stream, options, |stream| plan.launch(&self.x, &mut self.y, stream))?;
        Ok(timing.median_s)
    }
}

impl<T: DeviceScalar> DeviceSpmvPlan<T> for Auto<T> {
    fn device(&self) -> &Device {
        self.plan.device()
    }

    fn shape(&self) -> (usize, usize) {
        self.plan.shape()
    }

    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn launch(
        &mut self,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.plan.launch(x, y, stream)
    }

    fn choice(&self) -> Option<String> {
        Some(self.choice.clone())
    }
}
