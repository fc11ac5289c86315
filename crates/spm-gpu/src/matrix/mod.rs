//! Matrices in device memory.

mod csr;
mod padded;

pub use csr::DeviceCsr;
pub(crate) use csr::{DeviceValues, ReducedCsr};
pub(crate) use padded::{DeviceEll, DeviceHll, DeviceSell, permutation};

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

/// A matrix with what its kernel needs beside it.
pub(crate) struct With<M, E> {
    pub(crate) matrix: M,
    /// Read at each product.
    pub(crate) extra: E,
    /// Bytes of `extra`.
    pub(crate) extra_bytes: usize,
    /// Bytes of what the kernel writes and reads back.
    pub(crate) scratch_bytes: usize,
}

impl<M: DeviceMatrix, E: Send + 'static> DeviceMatrix for With<M, E> {
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn bytes(&self) -> u64 {
        self.matrix.bytes() + self.extra_bytes as u64
    }

    fn rarely_read_bytes(&self) -> u64 {
        self.matrix.rarely_read_bytes() + self.scratch_bytes as u64
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
