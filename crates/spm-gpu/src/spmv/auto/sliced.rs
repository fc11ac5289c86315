//! SELL-P as a candidate: its padding and its bytes before it is made.

use spm_formats::convert::DetectedBlocks;
use spm_formats::kernel::{Parameters, Value};

use super::{FULL_BLOCKS, Forms, REGULAR_PADDING};
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned};
use crate::source::Source;
use crate::spmv::sellp::{self, DIAGONALS, SORTED};

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

/// Whether no chunk can be stored by diagonal, which would be found out one diagonal after another: dense blocks of s rows
/// have 2 s - 1 of them for s entries of a row, if these are not those of a band.
fn has_many_diagonals<T: DeviceReal>(a: &Source<T>) -> bool {
    let is_dense = |blocks: DetectedBlocks| blocks.padding_ratio <= FULL_BLOCKS;
    let most = a.stats.longest_row + a.stats.longest_row / 4;
    a.blocks().is_ok_and(|blocks| blocks.is_some_and(is_dense))
        && a.pattern().is_ok_and(|of| of.diagonals.is_none_or(|of| of.count() > most))
}

/// Which orders of the rows may be candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Orders {
    /// That of the matrix, where it does not store too many elements.
    InOrder,
    /// That of the matrix, or sorted within windows where that one stores too many elements.
    SortedIfRefused,
    /// That of the fewer bytes, or both where x is read almost in order, as sorted rows do not.
    Both,
}

/// SELL-P, of these orders; none that stores too many elements. Without memory for it there are the other kernels.
pub(super) fn sliced<'a, T: DeviceReal>(
    problem: DeviceProblem<'a, T>,
    forms: Forms,
    orders: Orders,
) -> Vec<Sliced<'a, T>> {
    let entries = problem.a.csr.entries().max(1) as f64;
    let diagonals = Value::Switch(!has_many_diagonals(problem.a));
    // Elements that take a byte for the value may be half empty.
    let most = if forms.codes { 2.0 * LARGEST_PADDING } else { LARGEST_PADDING };
    let stored_in = |padding: f64, sigma: usize| {
        let parameters = forms.of(&sellp::INFO).with(SORTED.name, Value::Count(sigma));
        let parameters = parameters.with(DIAGONALS.name, diagonals);
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
    let is_enough = match orders {
        Orders::InOrder => true,
        Orders::SortedIfRefused => in_order.is_some(),
        Orders::Both => padding <= REGULAR_PADDING,
    };
    if is_enough {
        return in_order.into_iter().collect();
    }
    let sorted = stored_in(padding, WINDOW);
    match (in_order, sorted) {
        (Some(in_order), Some(sorted)) if in_order.is_regular() => vec![in_order, sorted],
        (in_order, sorted) => {
            in_order.into_iter().chain(sorted).min_by_key(Sliced::bytes).into_iter().collect()
        }
    }
}
