//! The fastest transposition of a matrix on this machine, by the clock.

use std::hint::black_box;

use spm_formats::kernel::{
    Backend, KernelInfo, Operation, Parameters, PlanError, TransposeOutput, TransposePlan,
};
use spm_formats::{CsrArrays, CsrView, Scalar};

use super::plan::{Procedure, boxed};
use super::{BoxedPlan, find};
use crate::{PlanOptions, Threads, race};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    operation: Operation::Transpose,
    backend: Backend::Cpu,
    source: "own",
    summary: "the fastest of serial, counting and radix, found by timing them in planning",
    parameters: &[],
};

/// Entries up to which one thread is enough: waking another takes as long.
const TINY: usize = 1 << 10;
/// Entries from which one thread is no candidate beside a team.
const LARGE: usize = 1 << 19;
/// Columns below which the running places of all of them stay in a second-level cache.
const NEAR: usize = 1 << 16;

struct Auto<'a, T> {
    a: CsrArrays<'a, T>,
    plan: BoxedPlan<'a, T>,
    choice: String,
}

pub(super) fn plan<'a, T: Scalar>(
    view: &CsrView<'a, T>,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let a = CsrArrays::new(view)?;
    let alone = PlanOptions { threads: Threads::new(1), ..options.clone() };
    let kernels = if a.cols() < NEAR { &["counting"][..] } else { &["counting", "radix"] };
    let mut entrants = Vec::new();
    let team = options.threads.count() > 1 && a.entries() > TINY;
    if team {
        entrants.extend(kernels.iter().map(|id| (*id, options)));
    }
    if !team || a.entries() < LARGE {
        entrants.extend(kernels.iter().map(|id| (*id, &alone)));
        entrants.push(("serial", &alone));
    }

    let mut output = TransposeOutput::new(a.cols(), a.entries());
    let mut best: Option<(BoxedPlan<'a, T>, String, f64)> = None;
    for (id, options) in entrants {
        let kernel = find::<T>(id).expect("candidates are registered");
        let parameters = kernel.info.defaults();
        let mut plan = kernel.plan(view, &parameters, options)?;
        let limit = best.as_ref().map_or(f64::INFINITY, |&(.., seconds)| seconds);
        let seconds = race::seconds(limit, || {
            plan.run(black_box(&mut output)).expect("arrays of the plan's sizes");
        });
        if seconds < limit {
            let threads = options.threads.count();
            let choice = format!("{} on {threads}", kernel.info.label(&parameters));
            best = Some((plan, choice, seconds));
        }
    }
    let (plan, choice, _) = best.expect("there is always a candidate");
    Ok(boxed(Auto { a, plan, choice }))
}

impl<T: Scalar> Procedure<T> for Auto<'_, T> {
    fn matrix(&self) -> &CsrArrays<'_, T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        TransposePlan::footprint(&*self.plan).plan_bytes
    }

    fn transpose(&mut self, output: &mut TransposeOutput<T>) {
        self.plan.run(output).expect("the lengths are checked");
    }

    fn choice(&self) -> Option<String> {
        Some(self.choice.clone())
    }
}
