//! The timed comparison of the candidates of `auto`.

use spm_formats::DenseShape;
use spm_formats::kernel::{Footprint, KernelInfo, Parameters, PlanError, Scaling, Value};

use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::{BoxedPlan, DeviceProductPlan, DeviceScalar};
use crate::problem::{DeviceProblem, Planned};
use crate::stream::Stream;
use crate::timing::Clock;

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

/// Seconds of a candidate by the clock, given those of the best one so far.
pub(crate) type Timed<T> = fn(&mut Clock<T>, f64, &mut BoxedPlan<T>) -> Result<f64, GpuError>;

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
        let Some((least, _)) = self.best() else {
            self.best = Some(Entrant { plan, label, seconds: None });
            return Ok(());
        };
        let seconds = self.seconds(least, &mut plan)?;
        // Without memory for the clock's operands the first candidate is taken.
        if seconds <= least && seconds.is_finite() {
            self.best = Some(Entrant { plan, label, seconds: Some(seconds) });
        }
        Ok(())
    }

    /// Seconds of a plan by the clock, given those of the best one so far; infinity without memory for the clock's
    /// operands.
    fn seconds(&mut self, least: f64, plan: &mut BoxedPlan<T>) -> Result<f64, PlanError> {
        let clock = match &mut self.clock {
            Some(clock) => clock,
            none => {
                let ((rows, cols), k) = (plan.shape(), self.problem.dense.k);
                match Clock::new(plan.device(), cols * k, rows * k) {
                    Ok(clock) => none.insert(clock),
                    Err(GpuError::OverBudget(_) | GpuError::OutOfMemory { .. }) => {
                        return Ok(f64::INFINITY);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        Ok((self.time)(clock, least, plan)?)
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
