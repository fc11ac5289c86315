//! Parameters of the kernels whose threads take different columns of a row-major X
//! (`gpu-kernels/src/spmm/columns.rs`).

use spm_formats::kernel::{ParameterSpec, Parameters, PlanError, Value};

use super::parameters::{BLOCK, WARP, whole_warps};
use crate::device::Device;
use crate::launch::Launch;

/// Threads of a block.
pub(super) const SMALL_BLOCK: ParameterSpec = ParameterSpec {
    default: Value::Count(128),
    studied: &[Value::Count(64), Value::Count(128), Value::Count(256), Value::Count(512)],
    ..BLOCK
};

/// Maximum threads of a block: the registers of these kernels do not allow 1024.
const LARGEST_BLOCK: usize = 512;

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

/// The threads of a block, whole warps.
///
/// # Errors
/// A number of threads that is not a multiple of 32 or more than these kernels take.
pub(super) fn small_block(
    kernel: &'static str,
    parameters: &Parameters,
) -> Result<usize, PlanError> {
    let block = whole_warps(kernel, parameters)?;
    if block <= LARGEST_BLOCK {
        return Ok(block);
    }
    let reason =
        format!("block must be at most {LARGEST_BLOCK}, not 1024 as others; found {block}");
    Err(PlanError::Unsupported { kernel, reason })
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
    /// For k columns, from [`COLUMNS`] and [`TILE`].
    ///
    /// # Errors
    /// Pairs of an odd k, a k beyond 2^29.
    pub(super) fn new(
        kernel: &'static str,
        k: usize,
        parameters: &Parameters,
    ) -> Result<Self, PlanError> {
        let k = k.max(1);
        let columns = match parameters.choice(COLUMNS.name).parse() {
            Ok(columns) => columns,
            Err(_) if !k.is_multiple_of(2) => 1,
            // Eight lanes share a line of X.
            Err(_) if k >= 32 => 4,
            Err(_) => 2,
        };
        if columns > 1 && !k.is_multiple_of(2) {
            let reason = format!("columns={columns} takes an even k; found {k}");
            return Err(PlanError::Unsupported { kernel, reason });
        }
        // The kernels count the bytes of a row with 32 bits.
        if k > u32::MAX as usize / size_of::<f64>() {
            let reason = format!("{k} columns");
            return Err(PlanError::Unsupported { kernel, reason });
        }
        let tile = match parameters.get(TILE.name) {
            Some(Value::Choice(tile)) => tile.parse().unwrap_or(k).min(k),
            _ => k,
        };
        let lanes = tile.div_ceil(columns).next_power_of_two().min(WARP);
        Ok(Self { columns, lanes, passes: k.div_ceil(lanes * columns) })
    }

    /// A launch with `lanes` threads for each of `items` items, in each pass.
    ///
    /// # Errors
    /// A block that these kernels do not take, a grid that the device does not.
    pub(super) fn launch(
        self,
        kernel: &'static str,
        device: &Device,
        parameters: &Parameters,
        items: usize,
        lanes: usize,
    ) -> Result<Launch, PlanError> {
        let block = small_block(kernel, parameters)?;
        let launch = Launch::over(kernel, device, items, block / lanes, block)?;
        let grid = (launch.grid.x, u32::try_from(self.passes).unwrap_or(u32::MAX)).into();
        let launch = Launch { grid, ..launch };
        launch.check(kernel, &device.info().limits)?;
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
