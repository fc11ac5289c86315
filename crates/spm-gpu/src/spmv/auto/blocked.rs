//! Column blocks as a candidate: what they should take, and where they are worth a comparison.

use super::{Forms, is_far_from_bandwidth};
use crate::convert::ColumnBlockShape;
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Problem};
use crate::race::{Candidate, Race};
use crate::spmv::csr_column_blocks;

/// Minimum entries of a row in a column block, and maximum number of column blocks, where nothing else is timed.
const BLOCK_ENTRIES: usize = 12;
const COL_BLOCKS: usize = 8;
/// What blocks are expected to take of the time of the best so far, at most, if rows are not long in them: their loads wait
/// for each other.
pub(super) const OF_BEST: f64 = 0.85;

/// A matrix whose x does not fit into L1, and may be cut into column blocks.
pub(super) struct Blocked {
    /// Whether rows have so many entries in each of a few blocks that only gathers count.
    long_parts: bool,
    /// Seconds of a product by its bytes, outside the cache and where rows have an entry in each block, in the mean: infinity if
    /// the device's rates are not known.
    expected: Option<f64>,
}

impl Blocked {
    /// Of a matrix with values of `value_bytes`, which the cache holds or not, with rows of very different lengths or not.
    pub(super) fn of<T: DeviceReal>(
        problem: DeviceProblem<'_, T>,
        value_bytes: u64,
        (cached, skewed): (bool, bool),
    ) -> Option<Self> {
        let Problem { device, a, .. } = problem;
        let (rows, cols) = (a.csr.rows(), a.csr.cols());
        if cols * size_of::<T>() <= device.info().limits.shared_bytes as usize {
            return None;
        }
        let cut = ColumnBlockShape::of::<T>(device, cols)?;
        let long = cut.col_blocks <= COL_BLOCKS && a.mean_row() >= BLOCK_ENTRIES * cut.col_blocks;
        let short = !cached && a.csr.entries() >= cut.parts(rows);
        let expected = short.then(|| seconds(problem, cut, value_bytes));
        Some(Self { long_parts: long && !skewed, expected })
    }

    /// Whether only gathers count: the best so far leaves much of the bandwidth unused.
    pub(super) fn ends_gathers<T: DeviceReal>(
        &self,
        race: &mut Race<'_, T>,
        problem: DeviceProblem<'_, T>,
    ) -> bool {
        self.long_parts && is_far_from_bandwidth(race, problem.budget)
    }

    /// Whether they are expected to be faster than a product of so many seconds.
    pub(super) fn beats(&self, seconds: f64) -> bool {
        let of_best = if self.long_parts { 1.0 } else { OF_BEST };
        self.expected.is_some_and(|expected| expected < of_best * seconds)
    }

    /// The same, than the best so far.
    pub(super) fn beats_best<T: DeviceReal>(&self, race: &mut Race<'_, T>) -> bool {
        self.expected.is_some() && race.best().is_some_and(|(seconds, _)| self.beats(seconds))
    }

    pub(super) fn candidate<T: DeviceReal>(forms: Forms) -> Candidate<T> {
        forms.candidate(&csr_column_blocks::INFO, csr_column_blocks::on_device)
    }
}

/// Each multiprocessor fills its shared memory with x, and there are two launches.
fn seconds<T: DeviceReal>(
    problem: DeviceProblem<'_, T>,
    cut: ColumnBlockShape,
    value_bytes: u64,
) -> f64 {
    let Problem { device, a, budget, .. } = problem;
    let Some(rates) = device.rates(budget) else { return f64::INFINITY };
    let info = device.info();
    let x = u64::from(info.multiprocessors) * u64::from(info.limits.shared_bytes);
    let matrix = cut.expected_bytes::<T>(a.csr.rows(), a.csr.entries(), value_bytes);
    let time = rates.time(matrix + x, info.l2_bytes);
    time.map_or(f64::INFINITY, |time| time.as_secs_f64() + rates.launch_s)
}
