//! Where the bytes of a plan are.

use spm_formats::kernel::Footprint;
use spm_formats::{CsrView, Scalar};

/// Sizes in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// The arrays that a product reads of the matrix, wherever they lie.
    pub(crate) matrix: u64,
    /// What the plan itself holds.
    pub(crate) plan: u64,
}

impl Memory {
    /// The caller's CSR arrays as they are, and `plan` bytes beside them.
    pub(crate) fn borrowed<T: Scalar>(a: &CsrView<'_, T>, plan: usize) -> Self {
        Self { matrix: a.memory_bytes(), plan: plan as u64 }
    }

    /// A copy of the matrix in `matrix` bytes, and `rest` bytes beside it.
    pub(crate) fn owned(matrix: usize, rest: usize) -> Self {
        Self { matrix: matrix as u64, plan: (matrix + rest) as u64 }
    }

    /// With `elements` elements of x and y that are read and written once.
    pub(crate) fn footprint<T: Scalar>(self, elements: usize) -> Footprint {
        Footprint {
            bytes_moved: self.matrix + (elements * T::BYTES) as u64,
            plan_bytes: self.plan,
            matrix_bytes: self.matrix,
        }
    }
}
