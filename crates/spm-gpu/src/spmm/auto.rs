//! The fastest plan for a matrix and a dense shape on this device: from the statistics where they
//! tell, and else by the clock, among the two or three kernels that suit.

use std::time::Duration;

use spm_formats::kernel::{
    Backend, Footprint, KernelInfo, Operation, Parameters, PlanError, split_label,
};
use spm_formats::{DenseShape, Layout, MemoryBudget};

use super::{BoxedPlan, find};
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, DeviceSpmmPlan, DeviceSpmvPlan};
use crate::spmv::{self, Source};
use crate::stream::Stream;
use crate::timing::{Clock, TimingOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "own",
    summary: "SpMV's auto for one column; for more the kernel that suits structure, k and layout, the fastest of two or three by timing them in planning where the structure does not tell",
    parameters: &[],
};

/// Slots that are nothing, however much of them is padding.
const FEW_SLOTS: f64 = 65536.0;
/// Padding beyond which SELL is not looked at; sorted, and where sorting is worth it.
const LARGEST_PADDING: f64 = 3.0;
const LARGEST_SORTED_PADDING: f64 = 1.5;
const SMALL_PADDING: f64 = 1.05;
/// Rows that are sorted together.
const SIGMA: usize = 1024;
/// A longest row of so many means stands out.
const SKEWED: f64 = 8.0;
/// Rows and columns, and entries, of a matrix that takes little more than a launch.
const FEW_ROWS: usize = 1 << 14;
const FEW_ENTRIES: usize = 1 << 19;
/// Entries from which on some microseconds more of planning are nothing.
const MANY_ENTRIES: usize = 1 << 20;
/// Entries from which on the device is full whatever the block.
const MOST_ENTRIES: usize = 1 << 24;
/// Bytes of X that L2 holds beside the rest, about.
const L2_BYTES: usize = 24 << 20;
/// Entries of rows from which on threads share them, with 4 columns of X, or more.
const SHORT_ROW: usize = 3;
const LONG_ROW: usize = 12;
const LONGER_ROW: usize = 20;
/// Entries that `csr-row-split` loads at once.
const QUAD: usize = 4;
/// Threads for each entry of a row, with a thread for a row and four columns, from which on they
/// keep the device busy.
const THREADS_FOR_ENTRY: usize = 1 << 10;

/// How each candidate is timed: once, and again where that is short and not far from the best.
const FIRST_TIMING: TimingOptions =
    TimingOptions { warm_up: 1, iterations: 1, min_time: Duration::ZERO, max_iterations: 1 };
const TIMING: TimingOptions = TimingOptions {
    warm_up: 1,
    iterations: 3,
    min_time: Duration::from_micros(30),
    max_iterations: 6,
};
const SHORT_S: f64 = 2e-4;
const FAR: f64 = 1.5;

struct Auto<T> {
    plan: BoxedPlan<T>,
    choice: String,
}

pub(super) fn on_device<T: DeviceScalar>(
    a: &Source<T>,
    dense: DenseShape,
    _: &Parameters,
    budget: &MemoryBudget,
) -> Result<BoxedPlan<T>, PlanError> {
    if dense.k == 1 {
        let kernel = spmv::find::<T>("auto").expect("a registered kernel");
        let plan = kernel.plan_source(a, &kernel.info.defaults(), budget);
        let plan = plan.expect("planned on the device")?;
        let choice = format!("spmv {}", plan.choice().unwrap_or_default());
        return Ok(Box::new(Auto { plan: Box::new(OneColumn { dense, plan }), choice }));
    }
    let padded = |sigma: usize, most: f64| sells(a, sigma, most, budget);
    let mut labels = candidates::<T>(Structure::of(a), dense, padded);
    if a.csr.entries() == 0 || dense.k == 0 {
        labels.truncate(1);
    }
    // One candidate needs no clock; without memory for the clock's operands the first one is taken.
    let mut clock = (labels.len() > 1)
        .then(|| Clock::new(a.csr.device(), a.csr.cols() * dense.k, a.csr.rows() * dense.k))
        .and_then(Result::ok);
    if clock.is_none() {
        labels.truncate(1);
    }
    let mut best: Option<(f64, Auto<T>)> = None;
    for choice in labels {
        let (id, text) = split_label(&choice);
        let kernel = find::<T>(id).expect("a registered kernel");
        let parameters = kernel.info.parse_parameters(text).expect("its own parameters");
        let plan = kernel.plan_source(a, dense, &parameters, budget);
        let least = best.as_ref().map_or(f64::INFINITY, |(least, _)| *least);
        let timed = plan.expect("planned on the device").and_then(|mut plan| {
            let Some(clock) = &mut clock else { return Ok((0.0, Auto { plan, choice })) };
            let mut time = |options| clock.time(options, |x, y, stream| plan.launch(x, y, stream));
            let mut seconds = time(FIRST_TIMING)?;
            if seconds < SHORT_S.min(FAR * least) {
                seconds = time(TIMING)?;
            }
            Ok((seconds, Auto { plan, choice }))
        });
        match timed {
            Ok((seconds, auto)) => {
                if seconds <= least {
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

/// What the candidates are chosen by.
#[derive(Debug, Clone, Copy)]
struct Structure {
    rows: usize,
    cols: usize,
    entries: usize,
    /// Entries of a row that has some.
    mean_row: usize,
    longest_row: usize,
}

impl Structure {
    fn of<T: DeviceScalar>(a: &Source<T>) -> Self {
        Self {
            rows: a.csr.rows(),
            cols: a.csr.cols(),
            entries: a.csr.entries(),
            mean_row: a.mean_row(),
            longest_row: a.stats.longest_row,
        }
    }
}

/// Labels of kernels that may be the fastest. `sells` makes SELL with rows sorted in windows of its first
/// argument, if that takes no more slots for each entry than the second.
fn candidates<T: DeviceScalar>(
    a: Structure,
    dense: DenseShape,
    sells: impl Fn(usize, f64) -> bool,
) -> Vec<String> {
    let DenseShape { k, layout } = dense;
    let Structure { rows, cols, entries, mean_row: mean, longest_row } = a;
    let skewed = longest_row as f64 > SKEWED * (entries as f64 / rows as f64).max(4.0);
    let small = rows <= FEW_ROWS && cols <= FEW_ROWS && entries < FEW_ENTRIES;
    let even = k.is_multiple_of(2);
    let large_x = cols * k * T::BYTES > L2_BYTES;

    let groups = if even { "csr-nonzero-split[columns=2" } else { "csr-nonzero-split[columns=1" };
    let mut row_groups = vec![format!("{groups}]")];
    if k > 16 && large_x {
        row_groups.push(format!("{groups},tile=16]"));
    }
    let column_lanes = || "csr-row-split".to_owned();
    let entry_lanes = || "csr-vector".to_owned();
    match layout {
        // A thread or a warp for a row would wait for the longest one.
        Layout::ColumnMajor if skewed && k <= 16 => {
            vec![column_lanes(), "csr-segmented-sum".to_owned()]
        }
        // Most rows end inside of the four entries that are loaded at once.
        _ if skewed && mean < QUAD => row_groups,
        _ if skewed => [vec![column_lanes()], row_groups].concat(),
        Layout::ColumnMajor => {
            let long = mean >= if k <= 4 { SHORT_ROW } else { LONG_ROW };
            let enough = rows * k.div_ceil(4) >= THREADS_FOR_ENTRY * mean;
            if small && if k <= 8 { long } else { !enough } {
                return vec![entry_lanes()];
            }
            if !sells(1, LARGEST_PADDING) {
                return [vec![entry_lanes(), column_lanes()], row_groups].concat();
            }
            let of_thread = |columns| format!("sell-thread-per-row[columns={columns},sigma=1]");
            if small {
                return vec![of_thread(if k <= 2 { 2 } else { 4 })];
            }
            // Rows with columns all over X are better off with a row-major copy.
            let mut labels = vec!["sell-row-split[sigma=1]".to_owned()];
            if k <= 8 {
                labels.push(entry_lanes());
            } else {
                labels.append(&mut row_groups);
            }
            if k > 4 && entries >= MANY_ENTRIES {
                labels.push(of_thread(8));
            }
            labels.push(of_thread(if k <= 2 { 2 } else { 4 }));
            labels
        }
        Layout::RowMajor => {
            let long = mean >= if k <= 4 { LONG_ROW } else { LONGER_ROW };
            if small && long && k <= 16 {
                return vec![column_lanes()];
            }
            // Sorting costs more than it gains while rows are few.
            let sorted = entries >= MANY_ENTRIES;
            let most = if sorted { SMALL_PADDING } else { LARGEST_PADDING };
            let sigma = if sells(1, most) {
                1
            } else if sorted && sells(SIGMA, LARGEST_SORTED_PADDING) {
                SIGMA
            } else {
                return [vec![column_lanes()], row_groups].concat();
            };
            let mut labels = vec![format!("sell-row-split[sigma={sigma}]")];
            if small && even && k > 16 {
                labels.push(format!("sell-row-split[columns=2,sigma={sigma}]"));
            } else if !small && k > 16 {
                labels.append(&mut row_groups);
            }
            if even && entries >= MOST_ENTRIES {
                labels.push(format!("sell-row-split[block=64,columns=4,sigma={sigma}]"));
            }
            labels
        }
    }
}

/// Makes SELL of the matrix, unless it would have more than so many slots for each entry or take
/// more memory than there is.
fn sells<T: DeviceScalar>(a: &Source<T>, sigma: usize, most: f64, budget: &MemoryBudget) -> bool {
    let few = |padding: f64| padding * a.csr.entries() as f64 <= FEW_SLOTS;
    matches!(a.sell_if(sigma, budget, |padding| padding <= most || few(padding)), Ok(Some(_)))
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
    use std::sync::Arc;

    use spm_testing::generate;

    use super::*;
    use crate::device::EmulatedDevice;
    use crate::matrix::DeviceCsr;

    fn source(name: &str) -> Source<f64> {
        let a = generate::named(name).unwrap().generate::<f64>().unwrap();
        let device = Device::emulated(Default::default());
        let a = DeviceCsr::new(&device, a.view()).unwrap();
        Source::new(Arc::new(a)).unwrap()
    }

    fn labels(a: &Source<f64>, k: usize, layout: Layout) -> Vec<String> {
        let padded = |sigma: usize, most: f64| sells(a, sigma, most, &MemoryBudget::default());
        candidates::<f64>(Structure::of(a), DenseShape { k, layout }, padded)
    }

    #[test]
    fn every_candidate_is_planned_on_the_device_and_takes_its_parameters() {
        for name in [
            "stencil5[n=9]",
            "banded[n=700,lower=20,upper=20]",
            "powerlaw[rows=900,cols=900,entries=2500,longest=400]",
            "uniform[rows=20000,cols=20000,entries=60000]",
        ] {
            let a = source(name);
            for (k, layout) in [2, 3, 4, 8, 32, 33, 64]
                .into_iter()
                .flat_map(|k| [(k, Layout::RowMajor), (k, Layout::ColumnMajor)])
            {
                let labels = labels(&a, k, layout);
                assert!(!labels.is_empty() && labels.len() <= 4, "{name}, {k}: {labels:?}");
                for label in labels {
                    let (id, text) = split_label(&label);
                    let kernel = find::<f64>(id).unwrap();
                    let parameters = kernel.info.parse_parameters(text).unwrap();
                    let (dense, budget) = (DenseShape { k, layout }, MemoryBudget::default());
                    let plan = kernel.plan_source(&a, dense, &parameters, &budget);
                    assert!(plan.unwrap().is_ok(), "{label}, {dense:?}");
                }
            }
        }
    }

    #[test]
    fn statistics_decide_where_a_launch_takes_the_time() {
        let long = source("banded[n=700,lower=20,upper=20]");
        for (k, layout, expected) in [
            (4, Layout::RowMajor, "csr-row-split"),
            (8, Layout::ColumnMajor, "csr-vector"),
            (32, Layout::ColumnMajor, "csr-vector"),
        ] {
            assert_eq!(labels(&long, k, layout), [expected], "{k}");
        }
        let short = source("stencil5[n=20]");
        assert_eq!(labels(&short, 4, Layout::RowMajor), ["sell-row-split[sigma=1]"]);
    }

    /// Structure, k, layout, stored elements of SELL for each entry, unsorted and sorted; candidates.
    type Case<'a> = (Structure, usize, Layout, (f64, f64), &'a [&'a str]);

    /// Every branch, with matrices of all sizes.
    #[test]
    fn structure_width_and_layout_decide() {
        const SMALL: Structure =
            Structure { rows: 1000, cols: 1000, entries: 5000, mean_row: 5, longest_row: 9 };
        const LARGE: Structure = Structure {
            rows: 1 << 18,
            cols: 1 << 18,
            entries: 1 << 20,
            mean_row: 4,
            longest_row: 9,
        };
        let skewed = Structure { longest_row: 9000, ..LARGE };
        let skewed_short = Structure { longest_row: 9000, mean_row: 3, ..LARGE };
        let long = Structure { rows: 30_000, entries: 600_000, mean_row: 20, ..LARGE };
        let huge = Structure { entries: 1 << 24, mean_row: 64, longest_row: 64, ..LARGE };
        let small_long = Structure { mean_row: 30, entries: 30_000, ..SMALL };
        let (rows, columns) = (Layout::RowMajor, Layout::ColumnMajor);
        let (even, odd) = ("csr-nonzero-split[columns=2]", "csr-nonzero-split[columns=1]");
        let (lanes, entry_lanes) = ("csr-row-split", "csr-vector");
        let thread = |columns: usize| format!("sell-thread-per-row[columns={columns},sigma=1]");
        let [thread_2, thread_4, thread_8] = [2, 4, 8].map(thread);
        let (sell, sorted) = ("sell-row-split[sigma=1]", "sell-row-split[sigma=1024]");
        let wide = "sell-row-split[columns=2,sigma=1]";
        let most = "sell-row-split[block=64,columns=4,sigma=1]";
        let tiled = "csr-nonzero-split[columns=2,tile=16]";
        let cases: &[Case] = &[
            (skewed, 8, columns, (9.0, 9.0), &[lanes, "csr-segmented-sum"]),
            (skewed_short, 8, rows, (9.0, 9.0), &[even]),
            (skewed_short, 7, rows, (9.0, 9.0), &[odd]),
            (skewed, 32, columns, (9.0, 9.0), &[lanes, even, tiled]),
            (skewed, 8, rows, (9.0, 9.0), &[lanes, even]),
            // Column-major.
            (small_long, 8, columns, (1.0, 1.0), &[entry_lanes]),
            (small_long, 16, columns, (1.0, 1.0), &[entry_lanes]),
            (SMALL, 8, columns, (9.0, 9.0), &[entry_lanes, lanes, even]),
            (SMALL, 8, columns, (1.2, 1.0), &[&thread_4]),
            (Structure { mean_row: 2, ..SMALL }, 2, columns, (1.2, 1.0), &[&thread_2]),
            (long, 2, columns, (1.2, 1.0), &[sell, entry_lanes, &thread_2]),
            (long, 3, columns, (1.2, 1.0), &[sell, entry_lanes, &thread_4]),
            (long, 9, columns, (1.2, 1.0), &[sell, odd, &thread_4]),
            (LARGE, 8, columns, (1.2, 1.0), &[sell, entry_lanes, &thread_8, &thread_4]),
            // Row-major.
            (small_long, 16, rows, (1.0, 1.0), &[lanes]),
            (SMALL, 8, rows, (1.2, 1.0), &[sell]),
            (SMALL, 32, rows, (1.2, 1.0), &[sell, wide]),
            (SMALL, 33, rows, (1.2, 1.0), &[sell]),
            (long, 8, rows, (1.2, 1.0), &[sell]),
            (long, 8, rows, (9.0, 1.0), &[lanes, even]),
            (LARGE, 8, rows, (1.2, 1.2), &[sorted]),
            (LARGE, 8, rows, (1.2, 1.6), &[lanes, even]),
            (LARGE, 32, rows, (1.0, 1.0), &[sell, even, tiled]),
            (huge, 8, rows, (1.0, 1.0), &[sell, most]),
            (huge, 7, rows, (1.0, 1.0), &[sell]),
        ];
        for (number, &(a, k, layout, (unsorted, sorted), expected)) in cases.iter().enumerate() {
            let padded = |sigma: usize, most: f64| {
                assert!(sigma == 1 || sigma == SIGMA);
                (if sigma == 1 { unsorted } else { sorted }) <= most
            };
            let labels = candidates::<f64>(a, DenseShape { k, layout }, padded);
            assert_eq!(labels, expected, "case {number}: {a:?}, {k} {layout:?}");
            for label in labels {
                let (id, text) = split_label(&label);
                let kernel = find::<f64>(id).unwrap_or_else(|| panic!("{label}"));
                assert!(kernel.info.parse_parameters(text).is_ok(), "{label}");
            }
        }
    }

    /// The fastest by the clock, which looks twice at what is short.
    #[test]
    fn the_fastest_candidate_is_chosen() {
        let a = generate::named("uniform[rows=20000,cols=20000,entries=60000]").unwrap();
        let a = a.generate::<f64>().unwrap();
        let dense = DenseShape { k: 8, layout: Layout::ColumnMajor };
        let choice = |seconds: &[f64]| {
            let emulated = EmulatedDevice { seconds: seconds.to_vec(), ..Default::default() };
            let device = Device::emulated_as(Default::default(), emulated);
            let kernel = find::<f64>("auto").unwrap();
            let (defaults, options) = (kernel.info.defaults(), Default::default());
            let plan = kernel.plan(&device, a.view(), dense, &defaults, &options).unwrap();
            plan.choice().unwrap()
        };
        let labels =
            labels(&source("uniform[rows=20000,cols=20000,entries=60000]"), 8, dense.layout);
        let [first, second, third] = &labels[..] else { panic!("{labels:?}") };
        // Long runs are timed once.
        assert_eq!(choice(&[1e-3, 2e-3, 3e-3]), *first);
        assert_eq!(choice(&[3e-3, 1e-3, 2e-3]), *second);
        assert_eq!(choice(&[3e-3, 2e-3, 1e-3]), *third);
        // Short ones twice, unless they are far from the best.
        assert_eq!(choice(&[1e-5, 2e-5, 1.2e-5, 1e-5, 4e-5]), *second);
        assert_eq!(choice(&[1e-5, 1e-5, 1.2e-5, 2e-5, 1.4e-5, 0.5e-5]), *third);
    }
}
