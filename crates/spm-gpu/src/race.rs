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

/// The comparison of plans for one problem. Of plans with the same time the last one wins: on the
/// emulator all have, and the last candidate moves the fewest bytes.
pub(crate) struct Race<'a, T> {
    problem: DeviceProblem<'a, T>,
    time: Timed<T>,
    /// Created for the first candidate.
    clock: Option<Clock<T>>,
    best: Option<(f64, BoxedPlan<T>, String)>,
    /// Why a candidate has no plan or no time.
    refused: Option<PlanError>,
}

impl<'a, T: DeviceScalar> Race<'a, T> {
    pub(crate) fn new(problem: DeviceProblem<'a, T>, time: Timed<T>) -> Self {
        Self { problem, time, clock: None, best: None, refused: None }
    }

    /// Seconds of the best candidate so far, with its plan.
    pub(crate) fn best(&self) -> Option<(f64, &BoxedPlan<T>)> {
        self.best.as_ref().map(|(seconds, plan, _)| (*seconds, plan))
    }

    /// Plans and times a candidate; one that cannot be planned, or fails, is left out.
    pub(crate) fn enter(&mut self, candidate: Candidate<T>) {
        let plan = candidate.plan(self.problem);
        self.enter_plan(candidate.label, plan);
    }

    /// Times a plan, which `label` names; one that could not be made, or fails, is left out.
    pub(crate) fn enter_plan(&mut self, label: String, plan: Planned<T>) {
        if let Err(error) = plan.and_then(|plan| self.compare(label, plan)) {
            self.refused = Some(error);
        }
    }

    fn compare(&mut self, label: String, mut plan: BoxedPlan<T>) -> Result<(), PlanError> {
        let clock = match &mut self.clock {
            Some(clock) => clock,
            none => {
                let ((rows, cols), k) = (plan.shape(), self.problem.dense.k);
                match Clock::new(plan.device(), cols * k, rows * k) {
                    Ok(clock) => none.insert(clock),
                    // Without memory for the clock's operands the first candidate is taken.
                    Err(GpuError::OverBudget(_) | GpuError::OutOfMemory { .. }) => {
                        self.best.get_or_insert((f64::INFINITY, plan, label));
                        return Ok(());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let least = self.best.as_ref().map_or(f64::INFINITY, |(seconds, ..)| *seconds);
        let seconds = (self.time)(clock, least, &mut plan)?;
        if seconds <= least {
            self.best = Some((seconds, plan, label));
        }
        Ok(())
    }

    /// The plan of the fastest candidate.
    ///
    /// # Errors
    /// Why the last of the candidates was left out, if all of them were.
    pub(crate) fn winner(self) -> Planned<T> {
        match (self.best, self.refused) {
            (Some((_, plan, label)), _) => Ok(Chosen::boxed(plan, label)),
            (None, refused) => Err(refused.expect("there are candidates for every matrix")),
        }
    }
}
