//! The fastest plan for a matrix and a width on this machine, by the clock.

use std::hint::black_box;

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, split_label};
use spm_formats::{CsrArrays, CsrView, DenseShape, Layout, Scalar};

use super::plan::{Memory, Product, boxed};
use super::{BoxedPlan, find, vector};
use crate::workspace::Workspace;
use crate::{PlanOptions, Threads, race};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "auto",
    operation: Operation::Spmm,
    backend: Backend::Cpu,
    source: "own",
    summary: "the fastest of serial and blocked kernels, found by timing them in planning",
    parameters: &[],
};

/// Multiplications up to which one thread is enough: waking another takes as long.
const TINY: usize = 1 << 12;
/// Multiplications from which one thread is no candidate beside a team.
const LARGE: usize = 1 << 22;
/// Bytes of Y from which writing past the caches may pay.
const LARGE_Y: usize = 4 << 20;
/// Bytes of X from which asking for its rows early may pay.
const LARGE_X: usize = 1 << 20;

struct Auto<'a, T> {
    plan: BoxedPlan<'a, T>,
    choice: String,
}

pub(super) fn plan<'a, T: Scalar>(
    view: &CsrView<'a, T>,
    dense: DenseShape,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    if dense.k == 1 {
        return vector::plan(view, dense, "auto", options);
    }
    let a = CsrArrays::new(view)?;
    let work = a.entries() * dense.k;
    let alone = PlanOptions { threads: Threads::new(1), ..options.clone() };
    let mut entrants = Vec::new();
    let team = options.threads.count() > 1 && work > TINY;
    if team {
        entrants.extend(candidates(&a, dense).into_iter().map(|label| (label, options)));
    }
    if !team || work < LARGE {
        entrants.extend(candidates(&a, dense).into_iter().map(|label| (label, &alone)));
        entrants.push(("csr-serial".to_owned(), &alone));
    }

    // Any numbers that are not special.
    let x = Workspace::new(a.cols() * dense.k, T::from_f64(0.75));
    let mut y = Workspace::zeros(a.rows() * dense.k);
    let mut best: Option<(BoxedPlan<'a, T>, String, f64)> = None;
    for (label, options) in entrants {
        let (id, text) = split_label(&label);
        let kernel = find::<T>(id).expect("candidates are registered");
        let parameters = kernel.info.parse_parameters(text).expect("candidates are well formed");
        let mut plan = kernel.plan(view, dense, &parameters, options)?;
        let limit = best.as_ref().map_or(f64::INFINITY, |&(.., seconds)| seconds);
        let seconds = race::seconds(limit, || {
            plan.run(black_box(&x), black_box(&mut y)).expect("matrices of the plan's shape");
        });
        if seconds < limit {
            let threads = options.threads.count();
            let choice = format!("{} on {threads}", kernel.info.label(&parameters));
            best = Some((plan, choice, seconds));
        }
    }
    let (plan, choice, _) = best.expect("there is always a candidate");
    Ok(boxed(Auto { plan, choice }, dense))
}

/// Labels of kernels that may be the fastest, the likeliest first.
fn candidates<T: Scalar>(a: &CsrArrays<'_, T>, dense: DenseShape) -> Vec<String> {
    let row = dense.k * T::BYTES;
    let streams = dense.layout == Layout::RowMajor && a.rows() * row >= LARGE_Y;
    let streams = if streams { &["on", "off"][..] } else { &["off"] };
    let ahead = if a.cols() * row >= LARGE_X { &[0, 8][..] } else { &[0] };
    let both = streams.iter().flat_map(|stream| ahead.iter().map(move |ahead| (stream, ahead)));
    both.map(|(stream, ahead)| format!("csr-blocked[prefetch={ahead},stream={stream}]")).collect()
}

impl<T: Scalar> Product<T> for Auto<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.plan.shape()
    }

    fn memory(&self) -> Memory {
        let footprint = self.plan.footprint();
        Memory { matrix: footprint.matrix_bytes, plan: footprint.plan_bytes }
    }

    fn multiply(&mut self, x: &[T], y: &mut [T]) {
        self.plan.run(x, y).expect("the lengths are checked");
    }

    fn choice(&self) -> Option<String> {
        Some(self.choice.clone())
    }
}
