//! Parameters and launches that several SpMM kernels share.

use spm_formats::kernel::{ParameterSpec, PlanError, Value};
use spm_gpu_kernels::spmm::shared_sum_bytes;

use crate::launch::{Launch, WARP};
use crate::plan::DeviceScalar;
use crate::problem::Problem;

/// Threads of a block; 512 in R4.
pub(super) const BLOCK: ParameterSpec = ParameterSpec {
    name: "block",
    meaning: "threads of a block",
    default: Value::Count(512),
    studied: &[Value::Count(128), Value::Count(256), Value::Count(512), Value::Count(1024)],
};

/// Threads of an element of Y; 2 in R4.
pub(super) const SUBWARP: ParameterSpec = ParameterSpec {
    name: "subwarp",
    meaning: "threads of an element of Y, a power of two up to 32",
    default: Value::Count(2),
    studied: &[Value::Count(2), Value::Count(4), Value::Count(8), Value::Count(16)],
};

/// Rows of a window that SELL sorts by length.
pub(super) const SIGMA: ParameterSpec = ParameterSpec {
    name: "sigma",
    meaning: "rows of a window that is sorted by length",
    default: Value::Count(1),
    studied: &[Value::Count(1), Value::Count(256), Value::Count(1024)],
};

impl<A> Problem<'_, A> {
    /// A parameter that is a power of two up to 32.
    ///
    /// # Errors
    /// Another number.
    pub(super) fn lanes(&self, name: &str) -> Result<usize, PlanError> {
        let lanes = self.parameters.count(name);
        if lanes.is_power_of_two() && lanes <= WARP {
            return Ok(lanes);
        }
        Err(self.unsupported(format!("{name} must be a power of two up to {WARP}; found {lanes}")))
    }

    /// A launch with `lanes` threads for each element of Y, which has `rows` rows.
    ///
    /// # Errors
    /// More elements than 32 bits number, blocks or a grid that the device cannot take.
    pub(super) fn launch_elements(
        &self,
        rows: usize,
        lanes: usize,
        block: usize,
    ) -> Result<Launch, PlanError> {
        let blocks = (block / lanes).max(1);
        let elements = rows.saturating_mul(self.dense.k);
        // A thread numbers its element, also in the last block, with 32 bits.
        if elements.saturating_add(block) > u32::MAX as usize {
            let reason = format!("{elements} elements of Y are more than 32 bits number");
            return Err(self.unsupported(reason));
        }
        // Threads may be more than 32 bits number: none has a number in the grid.
        let grid = elements.div_ceil(blocks).max(1) as u32;
        let launch = Launch { grid: grid.into(), ..self.launch(1, 1, block)? };
        let limits = &self.device.info().limits;
        launch.check(self.info.id, limits).map_err(|error| self.unsupported(error.to_string()))?;
        Ok(launch)
    }
}

/// The same with shared memory for a sum per thread.
pub(super) fn with_sums<T: DeviceScalar>(launch: Launch) -> Launch {
    launch.with_shared_bytes(shared_sum_bytes::<T>(launch.block.x))
}
