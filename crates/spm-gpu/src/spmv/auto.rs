//! The fastest plan for a matrix on this device: the kernels that suit the structure, by the clock.

use std::time::Duration;

use spm_formats::MemoryBudget;
use spm_formats::kernel::{
    Backend, Footprint, KernelInfo, Operation, ParameterSpec, Parameters, PlanError, Value,
};

use super::on_device::Source;
use super::parameters::{WARP, fitting_lanes};
use super::{BoxedPlan, csr_column_blocks, csr_segments, csr_subwarp_per_row, sellp};
use crate::convert::ColumnBlockShape;
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, DeviceSpmvPlan};
use crate::stream::Stream;
use crate::timing::{Clock, TimingOptions};

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
    meaning: "may leave out equal values, shorten columns and values where that changes nothing",
    default: Value::Switch(true),
    studied: &[Value::Switch(true), Value::Switch(false)],
};

/// Padding beyond which SELL-P cannot win, and up to which rows are as good as equally long.
const LARGEST_PADDING: f64 = 1.6;
const REGULAR_PADDING: f64 = 1.1;
/// A longest row of so many means stands out.
const SKEWED: f64 = 8.0;
/// Threads with fewer of which a launch leaves the device idle.
const FEW_THREADS: usize = 1 << 18;
/// Bytes of x that L1 holds; beyond, blocks of columns may win.
const L1_BYTES: usize = 192 << 10;
/// A product that takes longer than so often the time of its bytes, and the time of a launch, waits
/// for something else: gathers from x, or one row.
const FAR_FROM_BANDWIDTH: f64 = 2.0;
const LAUNCH_S: f64 = 5e-6;
/// Entries below which a launch, not its traffic, takes the time: reading CSR as it is is as good.
const FEW_ENTRIES: usize = 1 << 19;
/// Entries of rows that are too short to be worth more than one load each.
const SHORT_ROW: usize = 4;
/// Entries of a row in a block of columns, at least, and blocks, at most.
const BLOCK_ENTRIES: usize = 12;
const COL_BLOCKS: usize = 8;

/// How long each candidate is timed.
const TIMING: TimingOptions =
    TimingOptions { warm_up: 1, iterations: 6, min_time: Duration::ZERO, max_iterations: 6 };

struct Auto<T> {
    plan: BoxedPlan<T>,
    choice: String,
}

pub(super) fn on_device<T: DeviceScalar>(
    a: &Source<T>,
    parameters: &Parameters,
    budget: &MemoryBudget,
) -> Result<BoxedPlan<T>, PlanError> {
    let (rows, cols) = (a.csr.rows(), a.csr.cols());
    let compact = parameters.switch("compact");
    let mut race = Race { clock: Clock::new(a.csr.device(), cols, rows)?, best: None };

    let longest = a.stats.longest_row as f64;
    let skewed = longest > SKEWED * (a.csr.entries() as f64 / rows.max(1) as f64).max(4.0);
    let large = a.csr.entries() >= FEW_ENTRIES;
    // One long row among short ones holds up a launch that has a thread or a warp for it.
    if !(skewed && large) {
        let lanes = fitting_lanes(a.mean_row());
        let wider = (rows * lanes < FEW_THREADS && lanes < WARP).then_some(2 * lanes);
        for lanes in [Some(lanes), wider].into_iter().flatten() {
            let lanes = Value::Choice(LANE_CHOICES[lanes.ilog2() as usize]);
            let set = reduced(&csr_subwarp_per_row::INFO, compact).with("lanes", lanes);
            let plan = csr_subwarp_per_row::on_device(a, &set, budget);
            race.enter(&csr_subwarp_per_row::INFO, &set, plan)?;
        }
    }

    let mut padding = f64::INFINITY;
    if large || a.mean_row() <= SHORT_ROW {
        let set = reduced(&sellp::INFO, compact);
        let sellp = sellp::with_slots(a, &set, |slots| {
            padding = slots as f64 / a.csr.entries().max(1) as f64;
            Ok(padding <= LARGEST_PADDING)
        });
        if let Some(plan) = sellp.transpose() {
            race.enter(&sellp::INFO, &set, plan)?;
        }
    }

    if skewed || (large && padding > REGULAR_PADDING && race.is_far_from_bandwidth()) {
        let set = reduced(&csr_segments::INFO, compact);
        race.enter(&csr_segments::INFO, &set, csr_segments::on_device(a, &set, budget))?;
    }

    let cut = ColumnBlockShape::of::<T>(a.csr.device(), cols);
    let blocked = compact
        && cols * size_of::<T>() > L1_BYTES
        && cut.is_some_and(|cut| {
            cut.col_blocks <= COL_BLOCKS && a.mean_row() >= BLOCK_ENTRIES * cut.col_blocks
        });
    if blocked && race.is_far_from_bandwidth() {
        let set = csr_column_blocks::INFO.defaults();
        race.enter(&csr_column_blocks::INFO, &set, csr_column_blocks::on_device(a, &set, budget))?;
    }

    let (_, auto) = race.best.expect("the first candidate applies to every matrix");
    Ok(Box::new(auto))
}

/// The defaults, or those that move every array at full width.
fn reduced(info: &KernelInfo, compact: bool) -> Parameters {
    let defaults = info.defaults();
    let switches = info.parameters.iter().filter(|p| p.default == Value::Switch(true));
    switches.fold(defaults, |set, p| set.with(p.name, Value::Switch(compact)))
}

/// Powers of two as the parameter `lanes` spells them.
const LANE_CHOICES: [&str; 6] = ["1", "2", "4", "8", "16", "32"];

/// Candidates by the clock.
struct Race<T> {
    clock: Clock<T>,
    best: Option<(f64, Auto<T>)>,
}

impl<T: DeviceScalar> Race<T> {
    /// Whether the best so far leaves much of the device's bandwidth unused.
    fn is_far_from_bandwidth(&self) -> bool {
        let Some((seconds, auto)) = &self.best else { return true };
        let info = auto.plan.device().info();
        // Two transfers a clock.
        let clock = 2e3 * f64::from(info.memory_clock_khz);
        let bandwidth = clock * f64::from(info.memory_bus_bits) / 8.0;
        let bytes = auto.plan.footprint().bytes_moved as f64;
        bandwidth == 0.0 || *seconds > FAR_FROM_BANDWIDTH * bytes / bandwidth + LAUNCH_S
    }

    /// Times a plan; the first one has to be made, of others one too large is left out.
    fn enter(
        &mut self,
        info: &KernelInfo,
        parameters: &Parameters,
        plan: Result<BoxedPlan<T>, PlanError>,
    ) -> Result<(), PlanError> {
        let mut plan = match plan {
            Ok(plan) => plan,
            // Too little memory for one more format, or a format that does not apply.
            Err(_) if self.best.is_some() => return Ok(()),
            Err(error) => return Err(error),
        };
        // On the emulator the last candidate, which moves the fewest bytes, wins.
        let seconds = self.clock.time(TIMING, |x, y, stream| plan.launch(x, y, stream))?;
        if self.best.as_ref().is_none_or(|(least, _)| seconds <= *least) {
            self.best = Some((seconds, Auto { plan, choice: info.label(parameters) }));
        }
        Ok(())
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
