//! `auto` for SpMV outside the cache where all values are equal or few are distinct: column indices are most of what a
//! product reads, and gathers from x may take longer.

use super::blocked::Blocked;
use super::sliced::{Orders, sliced};
use super::{Forms, TIMING, long_row_holds_up, subwarp};
use crate::plan::{BoxedPlan, DeviceReal};
use crate::problem::{DeviceProblem, Problem};
use crate::race::{Race, Timed};
use crate::spmv::parameters::fitting_lanes;

/// Mean entries of a row below which SELL-P takes more time for its chunks than it saves, if most are not stored by diagonal:
/// of CSR a thread reads short rows near those of its neighbours.
const SHORT_ROWS: usize = 12;
/// Bytes that L2 delivers for one element of x, and the time that single sectors take over that of so many bytes in a row.
const SECTOR_BYTES: u64 = 32;
const OF_SECTORS: f64 = 2.0;

/// The fastest kernel, without a comparison of formats by rows: SELL-P in the order of the rows, which has the least to read
/// and the nearest gathers, CSR of equal values where rows are short or SELL-P takes more, or column blocks. `None` where a
/// long row may decide, or SELL-P would store too many elements with a value each.
pub(super) fn reduced<T: DeviceReal>(
    problem: DeviceProblem<'_, T>,
    forms: Forms,
    (value_bytes, skewed): (u64, bool),
) -> Option<BoxedPlan<T>> {
    let Problem { device, a, budget, .. } = problem;
    let lanes = fitting_lanes(a.mean_row());
    let is_short = !forms.codes && a.mean_row() < SHORT_ROWS;
    let mut race = Race::new(problem, Timed::Alike(TIMING));
    let csr_bytes = a.csr.bytes() - if forms.codes { 0 } else { a.csr.values.bytes() as u64 };
    let mut bytes = csr_bytes;
    let waits = skewed && long_row_holds_up(problem, lanes, 1.0);
    if is_short && !waits && a.pattern().ok()?.diagonals.is_none() {
        race.enter(subwarp(lanes, forms));
    } else if skewed {
        return None;
    } else {
        let most = if is_short { csr_bytes / 2 } else { csr_bytes };
        let in_order = sliced(problem, forms, Orders::SortedIfRefused).pop();
        match in_order.filter(|of| of.bytes() <= most) {
            Some(of) => {
                bytes = of.bytes();
                let (label, plan) = of.plan(problem);
                race.enter_plan(label, plan);
            }
            None if forms.codes => return None,
            None => race.enter(subwarp(lanes, forms)),
        }
    }
    if let Some(blocks) = Blocked::of(problem, value_bytes, (false, skewed)) {
        // What blocks cannot beat if each gather takes a sector is not timed.
        let at_worst = device.rates(budget).and_then(|rates| {
            let matrix = rates.time(bytes, device.info().l2_bytes)?;
            let sectors = (SECTOR_BYTES * a.csr.entries() as u64) as f64;
            Some(matrix.as_secs_f64() + OF_SECTORS * sectors / rates.l2)
        });
        if at_worst.is_none_or(|seconds| blocks.beats(seconds)) && blocks.beats_best(&mut race) {
            race.enter(Blocked::candidate(forms));
        }
    }
    race.winner().ok()
}
