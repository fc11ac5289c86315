//! CSR matrices in device memory.

use std::sync::Arc;

use spm_formats::CsrView;
use spm_formats::kernel::PlanError;
use spm_gpu_kernels::device::DevicePtr;

use super::DeviceMatrix;
use crate::convert::NEW_VALUES;
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::{DeviceCsc, DeviceReal, DeviceScalar, PlanOptions};
use crate::source::Source;
use crate::stream::Stream;
use crate::transpose;

/// A CSR matrix in device memory, copied from verified arrays.
#[derive(Debug)]
pub struct DeviceCsr<T> {
    rows: usize,
    cols: usize,
    /// rows + 1, ascending from 0 to the number of entries.
    pub(crate) row_ptr: DeviceBuffer<u32>,
    /// Each below the number of columns; those of a row ascend.
    pub(crate) col_ind: DeviceBuffer<u32>,
    /// One for each column index; none in a pattern.
    pub(crate) values: DeviceBuffer<T>,
}

impl<T: DeviceScalar> DeviceCsr<T> {
    /// Copies a matrix to the device.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn new(device: &Device, a: CsrView<'_, T>) -> Result<Self, GpuError> {
        Ok(Self {
            rows: a.rows(),
            cols: a.cols(),
            row_ptr: DeviceBuffer::from_slice(device, a.row_ptr())?,
            col_ind: DeviceBuffer::from_slice(device, a.col_ind())?,
            values: DeviceBuffer::from_slice(device, a.values())?,
        })
    }

    /// The transpose of a matrix in host memory, transposed on the device.
    ///
    /// # Errors
    /// As [`TransposeKernel::plan`](crate::transpose::TransposeKernel::plan); a device that fails.
    pub fn transposed(
        device: &Device,
        a: CsrView<'_, T>,
        options: &PlanOptions,
    ) -> Result<Self, PlanError> {
        let kernel = transpose::find::<T>("auto").expect("a registered kernel");
        let mut plan = kernel.plan(device, a, &kernel.info.defaults(), options)?;
        let mut output = DeviceCsc::new(device, a.cols(), a.nnz())?;
        let stream = Stream::new(device)?;
        plan.launch(&mut output, &stream)?;
        stream.synchronize()?;
        Ok(Self::from_arrays((a.cols(), a.rows()), output))
    }

    /// `shape` = (rows, columns) and the arrays of a sound matrix.
    pub(crate) fn from_arrays((rows, cols): (usize, usize), arrays: DeviceCsc<T>) -> Self {
        let DeviceCsc { col_ptr, row_ind, values } = arrays;
        debug_assert_eq!(col_ptr.len(), rows + 1);
        Self { rows, cols, row_ptr: col_ptr, col_ind: row_ind, values }
    }

    /// Copies a matrix without its values to the device.
    pub(crate) fn pattern(device: &Device, a: CsrView<'_, T>) -> Result<Self, GpuError> {
        Ok(Self {
            rows: a.rows(),
            cols: a.cols(),
            row_ptr: DeviceBuffer::from_slice(device, a.row_ptr())?,
            col_ind: DeviceBuffer::from_slice(device, a.col_ind())?,
            values: DeviceBuffer::uninitialized(device, 0)?,
        })
    }

    /// Whether there are entries without values.
    pub(crate) fn is_pattern(&self) -> bool {
        self.values.is_empty() && !self.col_ind.is_empty()
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    pub(crate) fn entries(&self) -> usize {
        self.col_ind.len()
    }

    pub(crate) fn device(&self) -> &Device {
        self.row_ptr.device()
    }

    /// Bytes of the three arrays.
    pub(crate) fn bytes(&self) -> u64 {
        (self.row_ptr.bytes() + self.col_ind.bytes() + self.values.bytes()) as u64
    }
}

impl<T: DeviceScalar> DeviceMatrix for DeviceCsr<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn bytes(&self) -> u64 {
        DeviceCsr::bytes(self)
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        check_operand(NEW_VALUES, self.device(), values, self.values.len())?;
        self.values.copy_from_on(values, stream)
    }
}

/// The CSR matrix of a plan, which others may share: new values for it are the plan's own.
#[derive(Debug)]
pub(crate) struct PlanCsr<T> {
    csr: Arc<DeviceCsr<T>>,
    /// A copy that stands in for the values of a shared matrix.
    own: Option<DeviceBuffer<T>>,
}

impl<T: DeviceScalar> PlanCsr<T> {
    pub(crate) fn new(a: &Source<T>) -> Result<Self, GpuError> {
        let mut own = None;
        if a.new_values && a.is_shared {
            let mut copy = DeviceBuffer::uninitialized(a.csr.device(), a.csr.values.len())?;
            copy.copy_from(&a.csr.values)?;
            own = Some(copy);
        }
        Ok(Self { csr: Arc::clone(&a.csr), own })
    }

    pub(crate) fn row_ptr(&self) -> DevicePtr<u32> {
        self.csr.row_ptr.ptr()
    }

    pub(crate) fn col_ind(&self) -> DevicePtr<u32> {
        self.csr.col_ind.ptr()
    }

    pub(crate) fn values(&self) -> DevicePtr<T> {
        self.own.as_ref().unwrap_or(&self.csr.values).ptr()
    }

    pub(crate) fn rows(&self) -> usize {
        self.csr.rows()
    }

    pub(crate) fn cols(&self) -> usize {
        self.csr.cols()
    }

    pub(crate) fn entries(&self) -> usize {
        self.csr.entries()
    }

    pub(crate) fn device(&self) -> &Device {
        self.csr.device()
    }

    /// Bytes of the row pointers.
    pub(crate) fn pointer_bytes(&self) -> u64 {
        self.csr.row_ptr.bytes() as u64
    }

    /// Bytes of the values.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.csr.values.bytes() as u64
    }
}

impl<T: DeviceScalar> DeviceMatrix for PlanCsr<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        (self.csr.rows(), self.csr.cols())
    }

    fn bytes(&self) -> u64 {
        self.csr.bytes()
    }

    fn rarely_read_bytes(&self) -> u64 {
        self.own.as_ref().map_or(0, |own| own.bytes() as u64)
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        match &mut self.own {
            Some(own) => {
                check_operand(NEW_VALUES, self.csr.device(), values, own.len())?;
                own.copy_from_on(values, stream)
            }
            None => self.csr.set_values(values, stream),
        }
    }
}

/// The values of a matrix: an array, or the one value that all entries have.
#[derive(Debug)]
pub(crate) enum DeviceValues<T> {
    Stored(DeviceBuffer<T>),
    Equal(T),
}

impl<T: DeviceReal> DeviceValues<T> {
    /// One value if `drop_equal` and all `entries` have the same bits. Otherwise a copy of
    /// `stored`, the values in the order of the format, padding included.
    pub(crate) fn new(
        device: &Device,
        entries: &[T],
        stored: &[T],
        drop_equal: bool,
    ) -> Result<Self, GpuError> {
        if drop_equal
            && let Some((&value, others)) = entries.split_first()
            && others.iter().all(|other| other.to_bits64() == value.to_bits64())
        {
            return Ok(Self::Equal(value));
        }
        Ok(Self::Stored(DeviceBuffer::from_slice(device, stored)?))
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Stored(values) => values.bytes(),
            Self::Equal(_) => 0,
        }
    }
}

/// A CSR matrix whose values may be reduced to one.
#[derive(Debug)]
pub(crate) struct ReducedCsr<T> {
    rows: usize,
    cols: usize,
    /// rows + 1, ascending from 0 to the number of entries.
    pub(crate) row_ptr: DeviceBuffer<u32>,
    /// Each below the number of columns.
    pub(crate) col_ind: DeviceBuffer<u32>,
    pub(crate) values: DeviceValues<T>,
}

impl<T: DeviceReal> ReducedCsr<T> {
    /// Copies a matrix to the device.
    pub(crate) fn new(
        device: &Device,
        a: CsrView<'_, T>,
        drop_equal: bool,
    ) -> Result<Self, GpuError> {
        Ok(Self {
            rows: a.rows(),
            cols: a.cols(),
            row_ptr: DeviceBuffer::from_slice(device, a.row_ptr())?,
            col_ind: DeviceBuffer::from_slice(device, a.col_ind())?,
            values: DeviceValues::new(device, a.values(), a.values(), drop_equal)?,
        })
    }
}

impl<T: DeviceReal> DeviceMatrix for ReducedCsr<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn bytes(&self) -> u64 {
        (self.row_ptr.bytes() + self.col_ind.bytes() + self.values.bytes()) as u64
    }
}
