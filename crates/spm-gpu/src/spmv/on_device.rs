//! Plans that are made on the device, from a matrix that lies there.

use std::sync::Arc;

use spm_formats::kernel::{Parameters, PlanError};
use spm_formats::{CsrArrays, CsrView, MemoryBudget};

use super::BoxedPlan;
use crate::convert::MatrixStats;
use crate::device::Device;
use crate::matrix::{DeviceCsr, check_counts};
use crate::plan::DeviceScalar;

/// A CSR matrix on the device, with what decides between kernels.
pub(crate) struct Source<T> {
    pub(crate) csr: Arc<DeviceCsr<T>>,
    pub(crate) stats: MatrixStats<T>,
}

impl<T: DeviceScalar> Source<T> {
    /// Looks at rows and values.
    pub(crate) fn new(csr: Arc<DeviceCsr<T>>) -> Result<Self, PlanError> {
        check_counts((csr.rows(), csr.cols()), csr.entries())?;
        let stats = MatrixStats::of(&csr)?;
        Ok(Self { csr, stats })
    }

    /// Verifies a matrix of the host and copies it to the device.
    pub(super) fn upload(device: &Device, a: &CsrView<'_, T>) -> Result<Self, PlanError> {
        Self::new(Arc::new(DeviceCsr::new(device, &CsrArrays::new(a)?)?))
    }

    /// Entries of a row that has some, on average; at least 1.
    pub(super) fn mean_row(&self) -> usize {
        let filled = self.csr.rows() - self.stats.empty_rows;
        (self.csr.entries() / filled.max(1)).max(1)
    }
}

/// Plans y = A x for a matrix on the device; the budget is for padding.
pub(super) type OnDevice<T> =
    fn(&Source<T>, &Parameters, &MemoryBudget) -> Result<BoxedPlan<T>, PlanError>;
