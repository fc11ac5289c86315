//! `auto` for SpMV with a complex matrix, which is never compressed.

use spm_formats::kernel::{KernelInfo, Value};

use super::{INFO, LANE_CHOICES, REGULAR_PADDING, TIMING, in_blocks, is_large, is_skewed};
use crate::launch::WARP;
use crate::plan::DeviceScalar;
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::race::{Candidate, Race, Timed};
use crate::spmv::parameters::fitting_lanes;
use crate::spmv::{csr_segmented_sum, csr_subwarp_per_row, sell};

pub(crate) const COMPLEX: KernelInfo = KernelInfo {
    summary: "the fastest of the kernels that suit the structure of a complex matrix, found by timing them in planning",
    parameters: &[],
    ..INFO
};

/// The plan for [`COMPLEX`].
pub(crate) fn complex<T: DeviceScalar>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { a, budget, .. } = problem;
    let (skewed, large) = (is_skewed(a), is_large(&a.csr));
    let lanes = fitting_lanes(a.mean_row());
    let subwarp = |lanes: usize| {
        let lanes = Value::Choice(LANE_CHOICES[lanes.ilog2() as usize]);
        let set = [("threads-per-row", lanes)];
        Candidate::with(&csr_subwarp_per_row::COMPLEX, &set, csr_subwarp_per_row::stored)
    };
    if !skewed && !large {
        return subwarp(lanes).chosen(problem);
    }
    let mut race = Race::new(problem, Timed::Alike(TIMING));
    if large && matches!(a.sell_if(1, budget, |padding| padding <= REGULAR_PADDING), Ok(Some(_))) {
        race.enter(Candidate::with(&sell::INFO, &[("sigma", Value::Count(1))], sell::on_device));
    }
    if large
        && !skewed
        && let Some(blocks) = a.blocks()?
        && let Some((plan, label)) = in_blocks(problem, blocks)
    {
        race.enter_plan(label, Ok(plan));
    }
    // One long row among short ones holds up a launch that has a thread or a warp for it.
    if !(skewed && large) {
        let wider = (lanes < WARP).then_some(2 * lanes);
        for lanes in [Some(lanes), wider].into_iter().flatten() {
            race.enter(subwarp(lanes));
        }
    }
    if skewed {
        race.enter(Candidate::with(&csr_segmented_sum::COMPLEX, &[], csr_segmented_sum::complex));
    }
    if race.is_empty() {
        // More entries than the others number, or too little memory for one more format.
        race.enter(subwarp(lanes));
    }
    race.winner()
}
