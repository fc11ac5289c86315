//! Memory sizes of a plan: what a product reads and what the plan holds.

use spm_formats::kernel::Footprint;
use spm_formats::{CsrView, Scalar};

/// Sizes in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// The arrays of the matrix that a product reads, whether the plan or the caller owns them.
    pub(crate) matrix: u64,
    /// The arrays that the plan owns.
    pub(crate) plan: u64,
}

impl Memory {
    /// The caller's CSR arrays, and `plan` bytes that the plan owns.
    pub(crate) fn borrowed<T: Scalar>(a: &CsrView<'_, T>, plan: usize) -> Self {
        Self { matrix: a.memory_bytes(), plan: plan as u64 }
    }

    /// A copy of the matrix in `matrix` bytes, and `rest` further bytes that the plan owns.
    pub(crate) fn owned(matrix: usize, rest: usize) -> Self {
        Self { matrix: matrix as u64, plan: (matrix + rest) as u64 }
    }

    /// The same where a product reads `bytes` bytes of the caller's arrays, too.
    pub(crate) fn and_borrowed(self, bytes: usize) -> Self {
        Self { matrix: self.matrix + bytes as u64, ..self }
    }

    /// The footprint of a product that reads or writes `elements` elements of x and y once each.
    pub(crate) fn footprint<T: Scalar>(self, elements: usize) -> Footprint {
        Footprint {
            bytes_moved: self.matrix + (elements * T::BYTES) as u64,
            plan_bytes: self.plan,
            matrix_bytes: self.matrix,
        }
    }
}
