//! Parameters of the kernels whose threads take different columns of a row-major X
//! (`gpu-kernels/src/spmm/columns.rs`).

use spm_formats::kernel::{ParameterSpec, Parameters, PlanError, Value};
use spm_gpu_kernels::device::Element;
use spm_gpu_kernels::spmm::COLUMN_THREADS;

use super::parameters::BLOCK;
use crate::launch::{Launch, WARP};
use crate::problem::Problem;

/// Threads of a block.
pub(super) const SMALL_BLOCK: ParameterSpec = ParameterSpec {
    default: Value::Count(128),
    studied: &[Value::Count(64), Value::Count(128), Value::Count(256), Value::Count(512)],
    ..BLOCK
};

/// Columns of X for a thread.
pub(super) const COLUMNS: ParameterSpec = ParameterSpec {
    name: "columns",
    meaning: "columns of X for a thread; more than one take an even k",
    default: Value::Choice("auto"),
    studied: &[Value::Choice("auto"), Value::Choice("1"), Value::Choice("2"), Value::Choice("4")],
};

/// Columns of X in one pass.
pub(super) const TILE: ParameterSpec = ParameterSpec {
    name: "tile",
    meaning: "columns of X in one pass over A, so that these columns of X stay in L2",
    default: Value::Choice("all"),
    studied: &[Value::Choice("all"), Value::Choice("8"), Value::Choice("16"), Value::Choice("32")],
};

impl<A> Problem<'_, A> {
    /// The threads of a block, whole warps.
    ///
    /// # Errors
    /// A number of threads that is not a multiple of 32 or more than these kernels take.
    fn small_block(&self) -> Result<usize, PlanError> {
        let block = self.warps()? * WARP;
        if block <= COLUMN_THREADS as usize {
            return Ok(block);
        }
        let reason =
            format!("block must be at most {COLUMN_THREADS}, not 1024 as others; found {block}");
        Err(self.unsupported(reason))
    }

    /// A launch with `lanes` threads for each of `items` items, for each group of `columns` columns.
    ///
    /// # Errors
    /// A block that these kernels do not take, a grid that the device does not.
    pub(super) fn launch_groups(
        &self,
        items: usize,
        lanes: usize,
        columns: usize,
    ) -> Result<Launch, PlanError> {
        let block = self.small_block()?;
        let launch = self.launch(items, block / lanes, block)?;
        let blocks = launch.grid.x as usize * self.dense.k.div_ceil(columns).max(1);
        let launch = Launch { grid: u32::try_from(blocks).unwrap_or(u32::MAX).into(), ..launch };
        launch.check(self.info.id, &self.device.info().limits)?;
        Ok(launch)
    }
}

/// The assignment of the threads of a warp to columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnShape {
    /// Columns of a thread: 1, 2 or 4.
    pub(super) columns: usize,
    /// Threads across the columns, a power of two up to 32.
    pub(super) lanes: usize,
    /// Passes over all columns.
    pub(super) passes: usize,
}

impl ColumnShape {
    /// For k columns, from [`COLUMNS`], without which a thread has one, and [`TILE`].
    ///
    /// # Errors
    /// Pairs of an odd k, a k beyond 2^28.
    pub(super) fn new(
        kernel: &'static str,
        k: usize,
        parameters: &Parameters,
    ) -> Result<Self, PlanError> {
        let unsupported = |reason| Err(PlanError::Unsupported { kernel, reason });
        let k = k.max(1);
        let asked = match parameters.get(COLUMNS.name) {
            Some(Value::Choice(columns)) => columns,
            _ => "1",
        };
        let columns = match asked.parse() {
            Ok(columns) => columns,
            Err(_) if !k.is_multiple_of(2) => 1,
            // Eight lanes share a line of X.
            Err(_) if k >= 32 => 4,
            Err(_) => 2,
        };
        if columns > 1 && !k.is_multiple_of(2) {
            return unsupported(format!("columns={columns} takes an even k; found {k}"));
        }
        // The kernels count the bytes of a row with 32 bits; the largest elements have 16.
        if k > u32::MAX as usize / 16 {
            return unsupported(format!("{k} columns"));
        }
        let tile = match parameters.get(TILE.name) {
            Some(Value::Choice(tile)) => tile.parse().unwrap_or(k).min(k),
            _ => k,
        };
        let lanes = tile.div_ceil(columns).next_power_of_two().min(WARP);
        Ok(Self { columns, lanes, passes: k.div_ceil(lanes * columns) })
    }

    /// What a kernel with vector loads of X and stores of Y needs: pairs of elements of `T`.
    pub(super) fn alignment<T: Element>(self) -> usize {
        T::ALIGNMENT as usize * self.columns.min(2)
    }

    /// A launch with `lanes` threads for each of `items` items, in each pass.
    ///
    /// # Errors
    /// A block that these kernels do not take, a grid that the device does not.
    pub(super) fn launch<A>(
        self,
        problem: &Problem<'_, A>,
        items: usize,
        lanes: usize,
    ) -> Result<Launch, PlanError> {
        let block = problem.small_block()?;
        let passes = u32::try_from(self.passes).unwrap_or(u32::MAX);
        let launch = problem.launch(items, block / lanes, block)?.with_grid_y(passes);
        launch.check(problem.info.id, &problem.device.info().limits)?;
        Ok(launch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spmm::csr_nonzero_split::INFO;

    #[test]
    fn lanes_and_passes_cover_the_columns() {
        for k in [1, 2, 3, 4, 8, 32, 33, 64, 1024] {
            for text in ["", "tile=8", "columns=1", "columns=1,tile=16"] {
                let parameters = INFO.parse_parameters(text).unwrap();
                let shape = ColumnShape::new(INFO.id, k, &parameters).unwrap();
                assert!(shape.lanes <= WARP, "{shape:?}");
                assert!(shape.columns * shape.lanes * shape.passes >= k, "{shape:?}");
                assert!(shape.columns * shape.lanes * (shape.passes - 1) < k, "{shape:?}");
            }
        }
    }

    #[test]
    fn pairs_of_an_odd_k_are_refused() {
        let parameters = INFO.parse_parameters("columns=2").unwrap();
        let error = ColumnShape::new(INFO.id, 3, &parameters).unwrap_err().to_string();
        assert!(error.contains("even k; found 3"), "{error}");
    }
}
