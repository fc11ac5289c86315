//! Parameters that several transpositions share.

use spm_formats::kernel::{ParameterSpec, Parameters, PlanError, Value};

use crate::device::Device;
use crate::launch::{Launch, WARP};

/// Threads of a block.
pub(super) const BLOCK: ParameterSpec = ParameterSpec {
    name: "block",
    meaning: "threads of a block, a multiple of 32",
    default: Value::Count(256),
    studied: &[Value::Count(128), Value::Count(256), Value::Count(512)],
};

/// The requested threads of a block.
///
/// # Errors
/// 0, or a number of threads that is not a multiple of 32.
pub(super) fn block(kernel: &'static str, parameters: &Parameters) -> Result<usize, PlanError> {
    let block = parameters.count(BLOCK.name);
    if block > 0 && block.is_multiple_of(WARP) {
        return Ok(block);
    }
    let reason =
        format!("block must be a multiple of {WARP}, the threads of a warp; found {block}");
    Err(PlanError::Unsupported { kernel, reason })
}

/// Keys between two splitters of a merge.
pub(super) const SPLITTER_DISTANCE: ParameterSpec = ParameterSpec {
    name: "splitter-distance",
    meaning: "keys between two splitters, and threads of the block that merges there",
    default: Value::Count(128),
    studied: &[Value::Count(64), Value::Count(128), Value::Count(256)],
};

/// [`Launch::over`] with shared memory, which the device must have.
///
/// # Errors
/// [`PlanError::Unsupported`] for blocks or a grid that the device cannot take.
pub(super) fn checked_over(
    kernel: &'static str,
    device: &Device,
    items: usize,
    per_block: usize,
    block: usize,
    shared_bytes: u32,
) -> Result<Launch, PlanError> {
    let launch =
        Launch::over(kernel, device, items, per_block, block)?.with_shared_bytes(shared_bytes);
    launch
        .check(kernel, &device.info().limits)
        .map_err(|error| PlanError::Unsupported { kernel, reason: error.to_string() })?;
    Ok(launch)
}

/// The number of chunks of the entries.
pub(super) const CHUNKS: ParameterSpec = ParameterSpec {
    name: "chunks",
    meaning: "maximum number of chunks of the entries; 0 takes tiles, up to 4096",
    default: Value::Count(0),
    studied: &[Value::Count(0), Value::Count(528)],
};
