//! Parameters that several kernels take.

use spm_formats::kernel::{ParameterSpec, Parameters, PlanError, Value};

/// Threads of a warp.
pub(super) const WARP: usize = 32;

/// Threads of a block.
pub(super) const fn block<const N: usize>(
    default: usize,
    studied: &'static [Value; N],
) -> ParameterSpec {
    ParameterSpec {
        name: "block",
        meaning: "threads of a block",
        default: Value::Count(default),
        studied,
    }
}

/// The warps of a block of the `block` that was asked for.
///
/// # Errors
/// A number of threads that is not a multiple of 32.
pub(super) fn warps(kernel: &'static str, parameters: &Parameters) -> Result<usize, PlanError> {
    let block = parameters.count("block");
    if block.is_multiple_of(WARP) {
        return Ok(block / WARP);
    }
    let reason =
        format!("block must be a multiple of {WARP}, the threads of a warp; found {block}");
    Err(PlanError::Unsupported { kernel, reason })
}
