//! The fastest plan for a matrix and a dense shape on this device: the kernels that suit them, by
//! the clock.

use std::time::Duration;

use spm_formats::kernel::{
    Backend, Footprint, KernelInfo, Operation, Parameters, PlanError, split_label,
};
use spm_formats::{CsrArrays, CsrView, DenseShape, Layout, stats};

use super::{BoxedPlan, find};
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, DeviceSpmmPlan, DeviceSpmvPlan, PlanOptions};
use crate::spmv;
use crate::stream::Stream;
use crate::timing::{Clock, TimingOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "own",
    summary: "SpMV's auto for one column; for more the fastest of the kernels that suit structure, k and layout, found by timing them in planning",
    parameters: &[],
};

/// Rows of a chunk of the SELL kernels, and the sorting windows whose padding is looked at.
const CHUNK: usize = 32;
const SIGMAS: [usize; 2] = [1, 1024];
/// Padding beyond which SELL is not looked at, and less of it is worth no sorting.
const LARGEST_PADDING: f64 = 1.5;
const SMALL_PADDING: f64 = 1.05;
/// A longest row of so many means stands out.
const SKEWED: f64 = 8.0;
/// Bytes of X that L2 holds beside the rest, about.
const L2_BYTES: usize = 24 << 20;

/// How long each candidate is timed.
const TIMING: TimingOptions = TimingOptions {
    warm_up: 2,
    iterations: 5,
    min_time: Duration::from_micros(200),
    max_iterations: 20,
};

struct Auto<T> {
    plan: BoxedPlan<T>,
    choice: String,
}

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: &CsrView<'_, T>,
    dense: DenseShape,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    if dense.k == 1 {
        let kernel = spmv::find::<T>("auto").expect("a registered kernel");
        let plan = kernel.plan(device, a, &kernel.info.defaults(), options)?;
        let choice = format!("spmv {}", plan.choice().unwrap_or_default());
        return Ok(Box::new(Auto { plan: Box::new(OneColumn { dense, plan }), choice }));
    }
    let arrays = CsrArrays::new(a)?;
    let mut labels = candidates(&arrays, dense);
    let mut clock = Clock::new(device, arrays.cols() * dense.k, arrays.rows() * dense.k);
    if clock.is_err() || arrays.entries() == 0 || dense.k == 0 {
        labels.truncate(1);
    }
    let mut best: Option<(f64, Auto<T>)> = None;
    for choice in labels {
        let (id, text) = split_label(&choice);
        let kernel = find::<T>(id).expect("a registered kernel");
        let parameters = kernel.info.parse_parameters(text).expect("its own parameters");
        let timed = kernel.plan(device, a, dense, &parameters, options).and_then(|mut plan| {
            let seconds = clock.as_mut().map_or(Ok(0.0), |clock| {
                clock.time(TIMING, |x, y, stream| plan.launch(x, y, stream))
            })?;
            Ok((seconds, Auto { plan, choice }))
        });
        match timed {
            Ok((seconds, auto)) => {
                if best.as_ref().is_none_or(|(least, _)| seconds <= *least) {
                    best = Some((seconds, auto));
                }
            }
            // Too little memory for one more format, or a kernel that does not apply.
            Err(_) if best.is_some() => {}
            Err(error) => return Err(error),
        }
    }
    let (_, auto) = best.expect("the first candidate applies to every matrix");
    Ok(Box::new(auto))
}

/// Labels of kernels that may be the fastest; the first applies to every matrix.
fn candidates<T: DeviceScalar>(a: &CsrArrays<'_, T>, dense: DenseShape) -> Vec<String> {
    let DenseShape { k, layout } = dense;
    let (even, entries) = (k.is_multiple_of(2), a.entries() as f64);
    let longest = a.pointers().windows(2).map(|p| p[1] - p[0]).max().unwrap_or(0);
    let mean = entries / a.rows().max(1) as f64;
    let skewed = f64::from(longest) > SKEWED * mean.max(4.0);
    let padding = SIGMAS.map(|s| stats::sell_slots(a.pointers(), CHUNK, s) as f64 / entries);
    let sorting = usize::from(padding[0] > SMALL_PADDING);
    let sell = (padding[sorting] <= LARGEST_PADDING).then_some(SIGMAS[sorting]);

    let mut labels = vec!["csr-column-lanes".to_owned()];
    match (layout, sell) {
        (Layout::ColumnMajor, Some(sigma)) => {
            let widths: &[u32] = if k <= 4 { &[2, 4] } else { &[4, 8] };
            let label = |n| format!("sell-thread-per-row[columns={n},sigma={sigma}]");
            labels.extend(widths.iter().map(label));
        }
        (Layout::RowMajor, Some(sigma)) => {
            labels.push(format!("sell-column-lanes[sigma={sigma}]"));
            if even {
                labels.push(format!("sell-column-lanes[block=64,columns=4,sigma={sigma}]"));
            }
        }
        _ => {}
    }
    if layout == Layout::ColumnMajor && skewed {
        labels.push("csr-adaptive".to_owned());
    }
    let pairs = if even { "columns=2" } else { "columns=1" };
    labels.push(format!("csr-row-groups[{pairs}]"));
    if k > 16 && a.cols() * k * T::BYTES > L2_BYTES {
        labels.push(format!("csr-row-groups[{pairs},tile=16]"));
    }
    labels
}

/// Y = A X with one column, in either layout, is y = A x.
struct OneColumn<T> {
    dense: DenseShape,
    plan: Box<dyn DeviceSpmvPlan<T>>,
}

macro_rules! forward {
    ($plan:ident, $dense:expr, $choice:expr) => {
        impl<T: DeviceScalar> DeviceSpmmPlan<T> for $plan<T> {
            fn device(&self) -> &Device {
                self.plan.device()
            }

            fn shape(&self) -> (usize, usize) {
                self.plan.shape()
            }

            fn dense(&self) -> DenseShape {
                $dense(self)
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
                $choice(self)
            }
        }
    };
}

forward!(OneColumn, |plan: &Self| plan.dense, |plan: &Self| plan.plan.choice());
forward!(Auto, |plan: &Self| plan.plan.dense(), |plan: &Self| Some(plan.choice.clone()));

#[cfg(test)]
mod tests {
    use spm_formats::generate;

    use super::*;
    use crate::spmm::registry;

    #[test]
    fn every_candidate_is_a_kernel_and_takes_its_parameters() {
        for name in ["stencil5[n=9]", "powerlaw[rows=900,cols=900,entries=2500,longest=400]"] {
            let a = generate::named(name).unwrap().generate::<f64>().unwrap();
            for (k, layout) in [2, 3, 4, 8, 32, 33, 64]
                .into_iter()
                .flat_map(|k| [(k, Layout::RowMajor), (k, Layout::ColumnMajor)])
            {
                let labels =
                    candidates(&CsrArrays::new(&a.view()).unwrap(), DenseShape { k, layout });
                assert_eq!(labels[0], "csr-column-lanes");
                for label in labels {
                    let (id, text) = split_label(&label);
                    let kernel = registry::<f64>().into_iter().find(|k| k.info.id == id).unwrap();
                    kernel.info.parse_parameters(text).unwrap();
                }
            }
        }
    }
}
