//! CSR.

use spm_formats::CsrArrays;

use super::DeviceMatrix;
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;

/// The three arrays of a CSR matrix on a device, copied from verified ones.
#[derive(Debug)]
pub(crate) struct DeviceCsr<T> {
    rows: usize,
    cols: usize,
    /// rows + 1, ascending from 0 to the number of entries.
    pub(crate) pointers: DeviceBuffer<u32>,
    /// Each below the number of columns.
    pub(crate) col_indices: DeviceBuffer<u32>,
    /// One for each column index.
    pub(crate) values: DeviceBuffer<T>,
}

impl<T: DeviceScalar> DeviceCsr<T> {
    /// Copies a matrix to the device.
    pub(crate) fn new(device: &Device, a: &CsrArrays<'_, T>) -> Result<Self, GpuError> {
        Ok(Self {
            rows: a.rows(),
            cols: a.cols(),
            pointers: DeviceBuffer::from_slice(device, a.pointers())?,
            col_indices: DeviceBuffer::from_slice(device, a.col_indices())?,
            values: DeviceBuffer::from_slice(device, a.values())?,
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    pub(crate) fn entries(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn device(&self) -> &Device {
        self.pointers.device()
    }

    /// Bytes of the three arrays.
    pub(crate) fn bytes(&self) -> u64 {
        (self.pointers.bytes() + self.col_indices.bytes() + self.values.bytes()) as u64
    }
}

impl<T: DeviceScalar> DeviceMatrix for DeviceCsr<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn bytes(&self) -> u64 {
        DeviceCsr::bytes(self)
    }
}

/// A CSR matrix whose entries all have one value, which is not stored for each.
#[derive(Debug)]
pub(crate) struct EqualCsr<T> {
    rows: usize,
    cols: usize,
    /// rows + 1, ascending from 0 to the number of entries.
    pub(crate) pointers: DeviceBuffer<u32>,
    /// Each below the number of columns.
    pub(crate) col_indices: DeviceBuffer<u32>,
    pub(crate) value: T,
}

impl<T: DeviceScalar> EqualCsr<T> {
    /// Copies a matrix to the device, if all its values have the same bits.
    pub(crate) fn new(device: &Device, a: &CsrArrays<'_, T>) -> Result<Option<Self>, GpuError> {
        let Some((&value, others)) = a.values().split_first() else { return Ok(None) };
        if others.iter().any(|other| other.to_bits64() != value.to_bits64()) {
            return Ok(None);
        }
        Ok(Some(Self {
            rows: a.rows(),
            cols: a.cols(),
            pointers: DeviceBuffer::from_slice(device, a.pointers())?,
            col_indices: DeviceBuffer::from_slice(device, a.col_indices())?,
            value,
        }))
    }
}

impl<T: DeviceScalar> DeviceMatrix for EqualCsr<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn bytes(&self) -> u64 {
        (self.pointers.bytes() + self.col_indices.bytes()) as u64
    }
}
