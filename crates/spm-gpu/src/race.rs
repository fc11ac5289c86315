//! The timed comparison of the candidates of `auto`.

use spm_formats::DenseShape;
use spm_formats::kernel::{Footprint, KernelInfo, Parameters, PlanError, Scaling, Value};

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::{BoxedPlan, DeviceProductPlan, DeviceScalar};
use crate::problem::{DeviceProblem, Planned};
use crate::stream::Stream;
use crate::timing::{Batches, Clock};

/// A plan that `auto` has chosen.
pub(crate) struct Chosen<T> {
    pub(crate) plan: BoxedPlan<T>,
    /// That of the caller: one column is the same in both layouts.
    pub(crate) dense: DenseShape,
    /// The label of the kernel.
    pub(crate) choice: String,
}

impl<T: DeviceScalar> Chosen<T> {
    pub(crate) fn boxed(plan: BoxedPlan<T>, choice: String) -> BoxedPlan<T> {
        Box::new(Self { dense: plan.dense(), plan, choice })
    }
}

impl<T: DeviceScalar> DeviceProductPlan<T> for Chosen<T> {
    fn device(&self) -> &Device {
        self.plan.device()
    }

    fn shape(&self) -> (usize, usize) {
        self.plan.shape()
    }

    fn dense(&self) -> DenseShape {
        self.dense
    }

    fn footprint(&self) -> Footprint {
        self.plan.footprint()
    }

    fn launch_scaled(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.plan.launch_scaled(scaling, x, y, stream)
    }

    fn launch_adding(
        &mut self,
        scaling: Scaling<T>,
        x: &DeviceBuffer<T>,
        z: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.plan.launch_adding(scaling, x, z, y, stream)
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        self.plan.set_values(values, stream)
    }

    fn choice(&self) -> Option<String> {
        Some(self.choice.clone())
    }
}

/// A kernel that may be the fastest.
pub(crate) struct Candidate<T> {
    info: &'static KernelInfo,
    parameters: Parameters,
    pub(crate) label: String,
    plan: fn(DeviceProblem<'_, T>) -> Planned<T>,
}

impl<T: DeviceScalar> Candidate<T> {
    /// A kernel with these parameters.
    pub(crate) fn new(
        info: &'static KernelInfo,
        parameters: Parameters,
        plan: fn(DeviceProblem<'_, T>) -> Planned<T>,
    ) -> Self {
        Self { info, label: info.label(&parameters), parameters, plan }
    }

    /// A kernel with its defaults but for some parameters, which alone are in its label.
    pub(crate) fn with(
        info: &'static KernelInfo,
        set: &[(&'static str, Value)],
        plan: fn(DeviceProblem<'_, T>) -> Planned<T>,
    ) -> Self {
        let label = info.label(&set.iter().copied().collect());
        Self { info, parameters: info.with(set), label, plan }
    }

    /// The plan for a problem of `auto`.
    pub(crate) fn plan(&self, problem: DeviceProblem<'_, T>) -> Planned<T> {
        (self.plan)(problem.with_kernel(self.info, &self.parameters))
    }

    /// The same as the plan that `auto` has chosen.
    pub(crate) fn chosen(self, problem: DeviceProblem<'_, T>) -> Planned<T> {
        Ok(Chosen::boxed(self.plan(problem)?, self.label))
    }
}

/// Seconds of a plan by the clock, given those of the best one so far.
pub(crate) type TimePlan<T> = fn(&mut Clock<T>, f64, &mut BoxedPlan<T>) -> Result<f64, GpuError>;

/// How the plans of a race are timed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Timed<T> {
    /// All alike, the first two of them together.
    Alike(Batches),
    /// Each by itself.
    Each(TimePlan<T>),
}

/// The comparison of plans for one problem. A plan that is never compared is never timed. Of plans with the same time the
/// last one wins: on the emulator all have, and the last candidate moves the fewest bytes.
pub(crate) struct Race<'a, T> {
    problem: DeviceProblem<'a, T>,
    time: Timed<T>,
    /// Created for the first plan that is timed.
    clock: Option<Clock<T>>,
    best: Option<Entrant<T>>,
    /// Why a candidate has no plan or no time.
    refused: Option<PlanError>,
}

/// A plan in a race.
struct Entrant<T> {
    plan: BoxedPlan<T>,
    label: String,
    /// Of a product, if it has been timed: infinity where there was no memory for it.
    seconds: Option<f64>,
}

impl<'a, T: DeviceScalar> Race<'a, T> {
    pub(crate) fn new(problem: DeviceProblem<'a, T>, time: Timed<T>) -> Self {
        Self { problem, time, clock: None, best: None, refused: None }
    }

    /// Whether no candidate has a plan.
    pub(crate) fn is_empty(&self) -> bool {
        self.best.is_none()
    }

    /// Seconds of the best candidate so far, with its plan. One that fails is left out.
    pub(crate) fn best(&mut self) -> Option<(f64, &BoxedPlan<T>)> {
        let mut best = self.best.take()?;
        let seconds = match best.seconds {
            Some(seconds) => seconds,
            None => match self.seconds(f64::INFINITY, &mut best.plan) {
                Ok(seconds) => seconds,
                Err(error) => {
                    self.refused = Some(error);
                    return None;
                }
            },
        };
        let best = self.best.insert(Entrant { seconds: Some(seconds), ..best });
        Some((seconds, &best.plan))
    }

    /// Plans a candidate and compares it with the best one so far; one that cannot be planned, or fails, is left out.
    pub(crate) fn enter(&mut self, candidate: Candidate<T>) {
        let plan = candidate.plan(self.problem);
        self.enter_plan(candidate.label, plan);
    }

    /// Compares a plan, which `label` names, with the best one so far; one that could not be made, or fails, is left
    /// out.
    pub(crate) fn enter_plan(&mut self, label: String, plan: Planned<T>) {
        if let Err(error) = plan.and_then(|plan| self.compare(label, plan)) {
            self.refused = Some(error);
        }
    }

    fn compare(&mut self, label: String, mut plan: BoxedPlan<T>) -> Result<(), PlanError> {
        let together = self.seconds_beside_first(&mut plan);
        let Some((least, _)) = self.best() else {
            self.best = Some(Entrant { plan, label, seconds: None });
            return Ok(());
        };
        let seconds = match together {
            Some(seconds) => seconds,
            None => self.seconds(least, &mut plan)?,
        };
        // Without memory for the clock's operands the first candidate is taken.
        if seconds <= least && seconds.is_finite() {
            self.best = Some(Entrant { plan, label, seconds: Some(seconds) });
        }
        Ok(())
    }

    /// Seconds of a plan, timed together with the first one, if that has not been timed and all are timed alike. If one of
    /// both fails, neither has a time.
    fn seconds_beside_first(&mut self, plan: &mut BoxedPlan<T>) -> Option<f64> {
        let Timed::Alike(batches) = self.time else { return None };
        let first = self.best.as_mut().filter(|first| first.seconds.is_none())?;
        let clock = clock(&mut self.clock, self.problem, plan).ok()?;
        let seconds = match clock {
            Some(clock) => clock.times(batches, [&mut first.plan, plan]).ok()?,
            None => [f64::INFINITY; 2],
        };
        first.seconds = Some(seconds[0]);
        Some(seconds[1])
    }

    /// Seconds of a plan by the clock, given those of the best one so far; infinity without memory for the clock's
    /// operands.
    fn seconds(&mut self, least: f64, plan: &mut BoxedPlan<T>) -> Result<f64, PlanError> {
        let Some(clock) = clock(&mut self.clock, self.problem, plan)? else {
            return Ok(f64::INFINITY);
        };
        Ok(match self.time {
            Timed::Alike(batches) => clock.time(batches, plan)?,
            Timed::Each(time) => time(clock, least, plan)?,
        })
    }

    /// The plan of the fastest candidate.
    ///
    /// # Errors
    /// Why the last of the candidates was left out, if all of them were.
    pub(crate) fn winner(self) -> Planned<T> {
        match (self.best, self.refused) {
            (Some(best), _) => Ok(Chosen::boxed(best.plan, best.label)),
            (None, refused) => Err(refused.expect("there are candidates for every matrix")),
        }
    }
}

/// The clock, created for the first plan; `None` without memory for its operands.
fn clock<'c, T: DeviceScalar>(
    clock: &'c mut Option<Clock<T>>,
    problem: DeviceProblem<'_, T>,
    plan: &BoxedPlan<T>,
) -> Result<Option<&'c mut Clock<T>>, GpuError> {
    if clock.is_none() {
        let ((rows, cols), k) = (plan.shape(), problem.dense.k);
        match Clock::new(plan.device(), cols * k, rows * k) {
            Ok(new) => *clock = Some(new),
            Err(GpuError::OverBudget(_) | GpuError::OutOfMemory { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(clock.as_mut())
}
