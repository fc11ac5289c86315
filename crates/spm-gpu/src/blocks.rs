//! What the plans of SpMV and SpMM with dense square blocks share.

use spm_formats::convert::DetectedBlocks;
use spm_formats::kernel::{ParameterSpec, PlanError, Value};

use crate::plan::DeviceScalar;
use crate::problem::DeviceProblem;

/// Rows and columns of a block.
pub(crate) const SIZE: ParameterSpec = ParameterSpec {
    name: "size",
    meaning: "rows and columns of a block of the matrix; 0: the size in which it takes the fewest bytes",
    default: Value::Count(0),
    studied: &[
        Value::Count(0),
        Value::Count(2),
        Value::Count(3),
        Value::Count(4),
        Value::Count(5),
        Value::Count(6),
        Value::Count(8),
    ],
};

/// Stored elements of dense blocks, in units of those that a sample makes expect, up to which `auto` plans BSR.
const OF_ESTIMATE: f64 = 1.1;

/// The size of the blocks: [`SIZE`], or what is detected.
///
/// # Errors
/// No blocks are detected.
pub(crate) fn block_size<T: DeviceScalar>(
    problem: DeviceProblem<'_, T>,
) -> Result<usize, PlanError> {
    match problem.parameters.count(SIZE.name) {
        0 => match problem.a.blocks()? {
            Some(blocks) => Ok(blocks.size),
            None => Err(problem.unsupported("its entries do not form dense square blocks")),
        },
        size => Ok(size),
    }
}

/// The error for blocks of a size that the kernels do not take.
pub(crate) fn no_such_size<T: DeviceScalar>(
    problem: DeviceProblem<'_, T>,
    size: usize,
) -> PlanError {
    problem.unsupported(format!("blocks of {size} rows; it takes 2 to 6, and 8"))
}

/// Whether a matrix with these stored elements has about as many as the sample of its blocks made expect.
pub(crate) fn is_as_estimated(blocks: DetectedBlocks, elements: u64, entries: usize) -> bool {
    elements as f64 <= OF_ESTIMATE * blocks.padding_ratio * entries as f64
}
