//! Parameters and launches that several SpMM kernels share.

use spm_formats::DenseShape;
use spm_formats::kernel::{ParameterSpec, Parameters, PlanError, Value};

use crate::device::Device;
use crate::launch::Launch;
use crate::plan::DeviceScalar;
use spm_gpu_kernels::spmm::shared_sum_bytes;

/// Threads of a warp.
pub(super) const WARP: usize = 32;

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

/// Whether a product stops at the length of a row of ELLPACK.
pub(super) const ROW_LENGTHS: ParameterSpec = ParameterSpec {
    name: "row-lengths",
    meaning: "stop at the length of a row; off multiplies the padding",
    default: Value::Switch(true),
    studied: &[Value::Switch(true), Value::Switch(false)],
};

/// The threads of a block, whole warps.
///
/// # Errors
/// A number of threads that is not a multiple of 32.
pub(super) fn whole_warps(
    kernel: &'static str,
    parameters: &Parameters,
) -> Result<usize, PlanError> {
    let block = parameters.count(BLOCK.name);
    if block.is_multiple_of(WARP) {
        return Ok(block);
    }
    let reason =
        format!("block must be a multiple of {WARP}, the threads of a warp; found {block}");
    Err(PlanError::Unsupported { kernel, reason })
}

/// A power of two up to 32.
///
/// # Errors
/// Another number.
pub(super) fn lanes(
    kernel: &'static str,
    name: &str,
    parameters: &Parameters,
) -> Result<usize, PlanError> {
    let lanes = parameters.count(name);
    if lanes.is_power_of_two() && lanes <= WARP {
        return Ok(lanes);
    }
    let reason = format!("{name} must be a power of two up to {WARP}; found {lanes}");
    Err(PlanError::Unsupported { kernel, reason })
}

/// A launch with `lanes` threads for each element of Y.
///
/// # Errors
/// More elements than 32 bits number, blocks or a grid that the device cannot take.
pub(super) fn over_elements(
    kernel: &'static str,
    device: &Device,
    rows: usize,
    dense: DenseShape,
    lanes: usize,
    block: usize,
) -> Result<Launch, PlanError> {
    let blocks = (block / lanes).max(1);
    let elements = rows.saturating_mul(dense.k);
    // A thread numbers its element, also in the last block, with 32 bits.
    if elements.saturating_add(block) > u32::MAX as usize {
        let reason = format!("{elements} elements of Y are more than 32 bits number");
        return Err(PlanError::Unsupported { kernel, reason });
    }
    // Threads may be more than 32 bits number: none has a number in the grid.
    let grid = elements.div_ceil(blocks).max(1) as u32;
    let launch = Launch::over(kernel, device, 1, 1, block)?;
    let launch = Launch { grid: grid.into(), ..launch };
    launch
        .check(kernel, &device.info().limits)
        .map_err(|error| PlanError::Unsupported { kernel, reason: error.to_string() })?;
    Ok(launch)
}

/// The same with shared memory for a sum per thread.
pub(super) fn with_sums<T: DeviceScalar>(launch: Launch) -> Launch {
    launch.with_shared_bytes(shared_sum_bytes::<T>(launch.block.x))
}
