//! ELLPACK, HLL and SELL-C-sigma in device memory. Padding has a column index of its row, or column
//! 0, so every column index is inside x.

use spm_formats::kernel::PlanError;
use spm_formats::{Ell, Hll, Sell};

use super::DeviceMatrix;
use crate::convert::{NOT_PLANNED, ValuePositions};
use crate::device::Device;
use crate::error::GpuError;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::stream::Stream;

/// ELLPACK, in one of its layouts.
#[derive(Debug)]
pub(crate) struct DeviceEll<T> {
    rows: usize,
    cols: usize,
    pub(crate) width: u32,
    pub(crate) pitch: u64,
    /// Whether the product stops at the length of a row. Otherwise row lengths are read in rare
    /// cases.
    reads_row_lengths: bool,
    pub(crate) row_lengths: DeviceBuffer<u32>,
    pub(crate) col_ind: DeviceBuffer<u32>,
    pub(crate) values: DeviceBuffer<T>,
}

impl<T: DeviceScalar> DeviceEll<T> {
    pub(crate) fn new(
        device: &Device,
        a: &Ell<T>,
        reads_row_lengths: bool,
    ) -> Result<Self, GpuError> {
        Ok(Self {
            rows: a.rows(),
            cols: a.cols(),
            width: a.width() as u32,
            pitch: a.pitch() as u64,
            reads_row_lengths,
            row_lengths: DeviceBuffer::from_slice(device, a.row_lengths())?,
            col_ind: DeviceBuffer::from_slice(device, a.col_ind())?,
            values: DeviceBuffer::from_slice(device, a.values())?,
        })
    }

    pub(crate) fn rows(&self) -> u32 {
        self.rows as u32
    }
}

impl<T: DeviceScalar> DeviceMatrix for DeviceEll<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn bytes(&self) -> u64 {
        let lengths = if self.reads_row_lengths { self.row_lengths.bytes() } else { 0 };
        (lengths + self.col_ind.bytes() + self.values.bytes()) as u64
    }

    fn rarely_read_bytes(&self) -> u64 {
        if self.reads_row_lengths { 0 } else { self.row_lengths.bytes() as u64 }
    }
}

/// Hacked ELLPACK on a device; the layout is that of [`Hll`].
#[derive(Debug)]
pub struct DeviceHll<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// The requested hack size.
    pub(crate) given_hack_size: usize,
    /// The same, or the number of rows if that is less.
    pub(crate) hack_size: u32,
    pub(crate) block_offsets: DeviceBuffer<u64>,
    pub(crate) row_lengths: DeviceBuffer<u32>,
    pub(crate) col_ind: DeviceBuffer<u32>,
    pub(crate) values: DeviceBuffer<T>,
}

impl<T: DeviceScalar> DeviceHll<T> {
    /// Copies a matrix to the device.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn new(device: &Device, a: &Hll<T>) -> Result<Self, GpuError> {
        let block_offsets: Vec<u64> = a.block_offsets().iter().map(|&o| o as u64).collect();
        Ok(Self {
            rows: a.rows(),
            cols: a.cols(),
            given_hack_size: a.hack_size(),
            hack_size: a.hack_size().min(a.rows().max(1)) as u32,
            block_offsets: DeviceBuffer::from_slice(device, &block_offsets)?,
            row_lengths: DeviceBuffer::from_slice(device, a.row_lengths())?,
            col_ind: DeviceBuffer::from_slice(device, a.col_ind())?,
            values: DeviceBuffer::from_slice(device, a.values())?,
        })
    }

    /// Copies it to host memory.
    ///
    /// # Errors
    /// A device that fails.
    pub fn to_host(&self) -> Result<Hll<T>, PlanError> {
        let shape = (self.rows, self.cols);
        let [lengths, columns] = [&self.row_lengths, &self.col_ind].map(DeviceBuffer::to_vec);
        let values = self.values.to_vec()?;
        Ok(Hll::new(shape, self.given_hack_size, lengths?, columns?, values)?)
    }

    pub(crate) fn rows(&self) -> u32 {
        self.rows as u32
    }

    pub(crate) fn device(&self) -> &Device {
        self.row_lengths.device()
    }
}

impl<T: DeviceScalar> DeviceMatrix for DeviceHll<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn bytes(&self) -> u64 {
        let indices = self.block_offsets.bytes() + self.row_lengths.bytes();
        (indices + self.col_ind.bytes() + self.values.bytes()) as u64
    }
}

/// SELL-C-sigma on a device; the layout is that of [`Sell`].
#[derive(Debug)]
pub struct DeviceSell<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) chunk: usize,
    pub(crate) sigma: usize,
    /// Chunk offsets in chunk columns.
    pub(crate) chunk_starts: DeviceBuffer<u32>,
    /// The row at each position; `None` where every row is at its own.
    pub(crate) permutation: Option<DeviceBuffer<u32>>,
    pub(crate) row_lengths: DeviceBuffer<u32>,
    pub(crate) col_ind: DeviceBuffer<u32>,
    pub(crate) values: DeviceBuffer<T>,
    /// For new values.
    pub(crate) positions: Option<ValuePositions>,
}

impl<T: DeviceScalar> DeviceSell<T> {
    /// Rows of a chunk in the kernels: one for each thread of a warp.
    pub const CHUNK: usize = 32;

    /// Copies a matrix to the device.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`].
    pub fn new(device: &Device, a: &Sell<T>) -> Result<Self, GpuError> {
        let starts: Vec<u32> =
            a.chunk_offsets().iter().map(|&offset| (offset / a.chunk()) as u32).collect();
        Ok(Self {
            rows: a.rows(),
            cols: a.cols(),
            chunk: a.chunk(),
            sigma: a.sigma(),
            chunk_starts: DeviceBuffer::from_slice(device, &starts)?,
            permutation: permutation(device, a)?,
            row_lengths: DeviceBuffer::from_slice(device, a.row_lengths())?,
            col_ind: DeviceBuffer::from_slice(device, a.col_ind())?,
            values: DeviceBuffer::from_slice(device, a.values())?,
            positions: None,
        })
    }

    /// Copies it to host memory.
    ///
    /// # Errors
    /// A device that fails.
    pub fn to_host(&self) -> Result<Sell<T>, PlanError> {
        let permutation = match &self.permutation {
            Some(permutation) => permutation.to_vec()?,
            None => (0..self.rows as u32).collect(),
        };
        let [lengths, columns] = [&self.row_lengths, &self.col_ind].map(DeviceBuffer::to_vec);
        let (shape, tuning) = ((self.rows, self.cols), (self.chunk, self.sigma));
        let values = self.values.to_vec()?;
        Ok(Sell::new(shape, tuning, permutation, lengths?, columns?, values)?)
    }

    pub(crate) fn device(&self) -> &Device {
        self.row_lengths.device()
    }

    /// Refuses more stored elements than the kernels can count.
    pub(crate) fn check_stored_elements(
        kernel: &'static str,
        a: &Sell<T>,
    ) -> Result<(), PlanError> {
        if u32::try_from(a.stored_elements() / Self::CHUNK).is_ok() {
            return Ok(());
        }
        let reason = format!("{} stored elements are more than it can count", a.stored_elements());
        Err(PlanError::Unsupported { kernel, reason })
    }

    pub(crate) fn rows(&self) -> u32 {
        self.rows as u32
    }
}

/// The row at each position; `None` where every row is at its own.
pub(crate) fn permutation<T: DeviceScalar>(
    device: &Device,
    a: &Sell<T>,
) -> Result<Option<DeviceBuffer<u32>>, GpuError> {
    let sorted = a.permutation().iter().enumerate().any(|(i, &row)| i != row as usize);
    sorted.then(|| DeviceBuffer::from_slice(device, a.permutation())).transpose()
}

impl<T: DeviceScalar> DeviceMatrix for DeviceSell<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    fn bytes(&self) -> u64 {
        let permutation = self.permutation.as_ref().map_or(0, DeviceBuffer::bytes);
        let indices = self.chunk_starts.bytes() + permutation;
        (indices + self.col_ind.bytes() + self.values.bytes()) as u64
    }

    fn rarely_read_bytes(&self) -> u64 {
        let positions = self.positions.as_ref().map_or(0, ValuePositions::bytes);
        (self.row_lengths.bytes() + positions) as u64
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        let positions = self.positions.as_ref().ok_or(NOT_PLANNED)?;
        positions.set(values, &mut self.values, stream)
    }
}
