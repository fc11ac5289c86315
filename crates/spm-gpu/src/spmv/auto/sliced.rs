//! SELL-P as a candidate: its padding and its bytes before it is made.

use spm_formats::kernel::{Parameters, Value};

use super::{Forms, REGULAR_PADDING};
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned};
use crate::spmv::sellp::{self, SORTED};

/// Rows of a window that SELL-P sorts: those of a block, so that its sums go to neighbouring rows.
const WINDOW: usize = 256;
/// Stored elements per entry above which it is not a candidate.
const LARGEST_PADDING: f64 = 1.6;

/// A matrix that may be made to SELL-P.
pub(super) struct Sliced<'a, T> {
    measured: sellp::Measured<'a, T>,
    parameters: Parameters,
    /// Stored elements per entry.
    pub(super) padding: f64,
}

impl<T: DeviceReal> Sliced<'_, T> {
    /// Of the matrix.
    pub(super) fn bytes(&self) -> u64 {
        self.measured.matrix.bytes()
    }

    /// Whether x is read almost in order.
    pub(super) fn is_regular(&self) -> bool {
        self.measured.matrix.is_regular()
    }

    /// The label and the plan.
    pub(super) fn plan(self, problem: DeviceProblem<'_, T>) -> (String, Planned<T>) {
        let label = sellp::INFO.label(&self.parameters);
        (label, self.measured.plan(problem.with_kernel(&sellp::INFO, &self.parameters)))
    }
}

/// SELL-P with rows in their order or sorted within windows: that of the fewer bytes, or both where x is read almost in
/// order, as sorted rows do not, and where values take a byte, so that x counts more; none that stores too many elements.
/// Without memory for it there are the other kernels.
pub(super) fn sliced<'a, T: DeviceReal>(
    problem: DeviceProblem<'a, T>,
    forms: Forms,
    cached: bool,
) -> Vec<Sliced<'a, T>> {
    let entries = problem.a.csr.entries().max(1) as f64;
    // Elements that take a byte for the value may be half empty.
    let most = if forms.codes { 2.0 * LARGEST_PADDING } else { LARGEST_PADDING };
    let stored_in = |padding: f64, sigma: usize| {
        let parameters = forms.of(&sellp::INFO).with(SORTED.name, Value::Count(sigma));
        let mut stored = f64::INFINITY;
        let of_sellp = problem.with_kernel(&sellp::INFO, &parameters);
        let measured = sellp::measured(problem.a, of_sellp, |elements| {
            stored = elements as f64 / entries;
            Ok(stored <= most && stored < padding)
        });
        let measured = measured.ok()??;
        Some(Sliced { measured, parameters, padding: stored })
    };
    let in_order = stored_in(f64::INFINITY, 1);
    let padding = in_order.as_ref().map_or(f64::INFINITY, |of| of.padding);
    if cached || padding <= REGULAR_PADDING {
        return in_order.into_iter().collect();
    }
    let sorted = stored_in(padding, WINDOW);
    match (in_order, sorted) {
        (Some(in_order), Some(sorted)) if in_order.is_regular() || forms.codes => {
            vec![in_order, sorted]
        }
        (in_order, sorted) => {
            in_order.into_iter().chain(sorted).min_by_key(Sliced::bytes).into_iter().collect()
        }
    }
}
