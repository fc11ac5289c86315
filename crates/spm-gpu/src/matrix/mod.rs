//! Matrices in device memory.

mod csr;
mod padded;

pub use csr::DeviceCsr;
pub(crate) use csr::{DeviceValues, PlanCsr, ReducedCsr};
pub(crate) use padded::{DeviceEll, permutation};
pub use padded::{DeviceHll, DeviceSell};

use std::sync::Arc;

use spm_formats::FormatError;
use spm_formats::kernel::PlanError;

use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::product::NO_ORDER;
use crate::stream::Stream;

/// A matrix in device memory, in any format.
pub(crate) trait DeviceMatrix: Send + 'static {
    /// The type of its values.
    type Value;

    /// (rows, columns).
    fn shape(&self) -> (usize, usize);

    /// Bytes of the arrays that a product reads.
    fn bytes(&self) -> u64;

    /// Bytes of the arrays that do not count as traffic: those read in rare cases only, and
    /// scratch.
    fn rarely_read_bytes(&self) -> u64 {
        0
    }

    /// Enqueues the copy of new values, in CSR order and of the same device, into their places. After an
    /// error the matrix has its old values.
    fn set_values(
        &mut self,
        values: &DeviceBuffer<Self::Value>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let _ = (values, stream);
        Err(NO_ORDER)
    }
}

/// A matrix that several plans share.
impl<M: DeviceMatrix + Sync> DeviceMatrix for Arc<M> {
    type Value = M::Value;

    fn shape(&self) -> (usize, usize) {
        M::shape(self)
    }

    fn bytes(&self) -> u64 {
        M::bytes(self)
    }

    fn rarely_read_bytes(&self) -> u64 {
        M::rarely_read_bytes(self)
    }

    fn set_values(
        &mut self,
        values: &DeviceBuffer<Self::Value>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        Self::get_mut(self).ok_or(SHARED)?.set_values(values, stream)
    }
}

/// The refusal of new values for a matrix that is not the plan's alone.
pub(crate) const SHARED: GpuError =
    GpuError::Values("the plan shares the matrix; plan with `new_values`");

/// A matrix with additional arrays of its kernel.
pub(crate) struct With<M, E> {
    pub(crate) matrix: M,
    /// Read at each product.
    pub(crate) extra: E,
    /// Bytes of `extra`.
    pub(crate) extra_bytes: usize,
    /// Bytes that the kernel writes and reads back.
    pub(crate) scratch_bytes: usize,
}

impl<M: DeviceMatrix, E: Send + 'static> DeviceMatrix for With<M, E> {
    type Value = M::Value;

    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn bytes(&self) -> u64 {
        self.matrix.bytes() + self.extra_bytes as u64
    }

    fn rarely_read_bytes(&self) -> u64 {
        self.matrix.rarely_read_bytes() + self.scratch_bytes as u64
    }

    fn set_values(
        &mut self,
        values: &DeviceBuffer<Self::Value>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.matrix.set_values(values, stream)
    }
}

/// Maximum rows and entries that kernels index with 32 bits: an index may step 2^27 beyond the last
/// one (the warps of a grid with a thread for each row) before a thread detects the end.
const MOST: u64 = u32::MAX as u64 - (1 << 27);

/// Refuses a matrix in which a kernel would step beyond 32 bits.
pub(crate) fn check_counts(
    (rows, cols): (usize, usize),
    entries: usize,
) -> Result<(), FormatError> {
    let counts =
        [("number of rows", rows), ("number of columns", cols), ("number of entries", entries)];
    for (what, size) in counts {
        let size = size as u64;
        if size > MOST {
            return Err(FormatError::TooLarge { what, size, limit: MOST });
        }
    }
    Ok(())
}

/// Refuses a chunk with more stored elements for a lane than the kernels with compressed columns
/// can number in 32 bits: 32 offsets for each 4 of them.
pub(crate) fn check_stored_elements(
    kernel: &'static str,
    elements: usize,
) -> Result<(), PlanError> {
    if elements <= 1 << 29 {
        return Ok(());
    }
    let reason =
        format!("a chunk of {elements} stored elements for each row, at most 2^29 are possible");
    Err(PlanError::Unsupported { kernel, reason })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_beyond_which_a_step_wraps_are_refused() {
        let most = MOST as usize;
        assert_eq!(check_counts((most, most), most), Ok(()));
        assert!(u32::try_from(most + (1 << 27)).is_ok());
        for (shape, entries) in [((most + 1, 1), 1), ((1, most + 1), 1), ((1, 1), most + 1)] {
            let error = check_counts(shape, entries).unwrap_err();
            assert!(matches!(error, FormatError::TooLarge { limit: MOST, .. }), "{error}");
        }
        assert!(check_signed("k", "entries", i32::MAX as usize).is_ok());
        assert!(check_signed("k", "entries", 1 << 31).is_err());
        assert!(check_stored_elements("k", 1 << 29).is_ok());
        assert!(check_stored_elements("k", (1 << 29) + 1).is_err());
    }
}
