//! Matrices in device memory.

mod csr;
mod padded;

pub(crate) use csr::{DeviceCsr, DeviceValues, ReducedCsr};
pub(crate) use padded::{DeviceEll, DeviceHll, DeviceSell};

use spm_formats::kernel::PlanError;

/// A matrix in device memory, in one format or another.
pub(crate) trait DeviceMatrix: Send + 'static {
    /// (rows, columns).
    fn shape(&self) -> (usize, usize);

    /// Bytes of the arrays that a product reads.
    fn bytes(&self) -> u64;

    /// Bytes of the arrays that do not count as its traffic: read in rare cases only, or scratch.
    fn rarely_read_bytes(&self) -> u64 {
        0
    }
}

/// Refuses a size beyond a signed 32-bit number.
pub(crate) fn check_signed(
    kernel: &'static str,
    what: &'static str,
    size: usize,
) -> Result<(), PlanError> {
    if i32::try_from(size).is_ok() {
        return Ok(());
    }
    let reason = format!("{size} {what} are more than the {} that it can count", i32::MAX);
    Err(PlanError::Unsupported { kernel, reason })
}
