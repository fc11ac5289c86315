//! CSR to DIA: `gpu-kernels/src/convert/diagonals.rs`.

use std::sync::Arc;

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{
    DIAGONAL_BLOCK, DIAGONAL_TABLE, DiagonalPlaces, DiagonalPlacesSingle, FindDiagonals,
    NO_DIAGONAL, diagonal_shared_bytes,
};
use spm_gpu_kernels::spmv::MOST_DIAGONALS;

use super::{COMPRESSED, DeviceReducedValues, NEW_VALUES, threads};
use crate::error::GpuError;
use crate::launch::Launch;
use crate::matrix::{DeviceCsr, DeviceMatrix};
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::{DeviceReal, DeviceScalar};
use crate::stream::Stream;

/// The distance between diagonals in the value array is a multiple of this.
const PITCH_ROWS: usize = 32;

/// The diagonals of some rows, in a hash table: where they are many, all rows at once would wait for each other at the
/// full table, and where they are few, at free places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiagonalSample([u32; DIAGONAL_TABLE as usize]);

impl DiagonalSample {
    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().filter(|&&distance| distance != NO_DIAGONAL).count()
    }

    /// As ascending signed numbers: which place a distance has depends on the order of the threads.
    #[cfg(test)]
    pub(super) fn distances(self) -> Vec<u32> {
        ascending(self.0.to_vec())
    }

    /// `None` for a matrix of too large a size.
    pub(super) fn from_table<T: DeviceScalar>(
        a: &DeviceCsr<T>,
        table: [u32; DIAGONAL_TABLE as usize],
    ) -> Option<Self> {
        let signed = |size: usize| i32::try_from(size).is_ok();
        (signed(a.rows()) && signed(a.cols())).then_some(Self(table))
    }
}

/// A matrix in DIA, and the CSR matrix that it was made from, which keeps its values when others come.
#[derive(Debug)]
pub(crate) struct DeviceDia<T> {
    pub(crate) csr: Arc<DeviceCsr<T>>,
    /// Diagonal offsets (column - row) as ascending signed numbers.
    pub(crate) distances: Vec<u32>,
    /// The same on the device.
    pub(crate) offsets: DeviceBuffer<u32>,
    pub(crate) pitch: u32,
    /// Never `Equal`.
    pub(crate) values: DeviceReducedValues<T>,
}

impl<T: DeviceReal> DeviceDia<T> {
    /// Converts. `None` for a matrix with more diagonals than the kernel takes or without any, or of
    /// too large a size, or if `accept` refuses the number of stored elements, or that of the sampled diagonals alone.
    pub(crate) fn new(
        csr: Arc<DeviceCsr<T>>,
        sample: DiagonalSample,
        single: bool,
        accept: impl Fn(u64) -> Result<bool, PlanError>,
    ) -> Result<Option<Self>, PlanError> {
        let pitch = csr.rows().next_multiple_of(PITCH_ROWS);
        let places = |diagonals: usize| pitch as u64 * diagonals as u64;
        if !accept(places(sample.count()))? {
            return Ok(None);
        }
        let Some(distances) = distances(&csr, sample)? else { return Ok(None) };
        let places = places(distances.len());
        if u32::try_from(places).is_err() || !accept(places)? {
            return Ok(None);
        }
        let device = csr.device();
        let stream = Stream::of_planning(device)?;
        let offsets = DeviceBuffer::from_slice(device, &distances)?;
        let values = if single {
            DeviceReducedValues::Single(DeviceBuffer::uninitialized(device, places as usize)?)
        } else {
            DeviceReducedValues::Stored(DeviceBuffer::uninitialized(device, places as usize)?)
        };
        let mut dia =
            Self { csr: Arc::clone(&csr), distances, offsets, pitch: pitch as u32, values };
        dia.enqueue_values(&csr.values, &stream)?;
        stream.synchronize()?;
        Ok(Some(dia))
    }

    /// Enqueues the values of the diagonals, from as many in CSR order as there are entries.
    fn enqueue_values(&mut self, from: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        let Self { csr, offsets, pitch, values, .. } = self;
        check_operand(NEW_VALUES, csr.device(), from, csr.entries())?;
        let device = csr.device();
        let blocks = (csr.rows() as u32).div_ceil(DIAGONAL_BLOCK);
        let launch = Launch::new(blocks, DIAGONAL_BLOCK)
            .with_shared_bytes(diagonal_shared_bytes::<T>(offsets.len() as u32));
        macro_rules! places {
            ($kernel:ident, $places:ident) => {{
                let args = $kernel {
                    rows: csr.rows() as u32,
                    diagonals: offsets.len() as u32,
                    pitch: *pitch,
                    distances: offsets.ptr(),
                    row_ptr: csr.row_ptr.ptr(),
                    col_ind: csr.col_ind.ptr(),
                    values: from.ptr(),
                    places: $places.ptr_mut(),
                };
                // SAFETY: a verified pattern, a value for each entry, a place for each row on each diagonal.
                unsafe { device.launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        match values {
            DeviceReducedValues::Stored(places) => places!(DiagonalPlaces, places),
            DeviceReducedValues::Single(places) => places!(DiagonalPlacesSingle, places),
            DeviceReducedValues::Equal(_) => unreachable!("places have values"),
        }
    }
}

/// The offsets of the diagonals that have entries, if they are few.
fn distances<T: DeviceReal>(
    csr: &DeviceCsr<T>,
    DiagonalSample(sample): DiagonalSample,
) -> Result<Option<Vec<u32>>, PlanError> {
    if csr.entries() == 0 {
        return Ok(None);
    }
    let device = csr.device();
    let stream = Stream::of_planning(device)?;
    let mut seen = [&sample[..], &[0]].concat();
    let mut table = DeviceBuffer::from_slice(device, &seen)?;
    let args = FindDiagonals {
        rows: csr.rows() as u32,
        row_ptr: csr.row_ptr.ptr(),
        col_ind: csr.col_ind.ptr(),
        table: table.ptr_mut(),
    };
    let launch = threads(device, csr.rows())?;
    // SAFETY: verified CSR arrays, a table with the word behind it.
    unsafe { device.launch::<FindDiagonals>(launch, &stream, args)? };
    table.copy_to_slice(&mut seen)?;
    if seen.pop() != Some(0) {
        return Ok(None);
    }
    let distances = ascending(seen);
    Ok((distances.len() <= MOST_DIAGONALS as usize).then_some(distances))
}

/// The distances in a table, as ascending signed numbers.
fn ascending(mut table: Vec<u32>) -> Vec<u32> {
    table.retain(|&distance| distance != NO_DIAGONAL);
    table.sort_unstable_by_key(|&distance| distance.cast_signed());
    table
}

impl<T: DeviceReal> DeviceMatrix for DeviceDia<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        (self.csr.rows(), self.csr.cols())
    }

    fn bytes(&self) -> u64 {
        self.values.bytes() as u64
    }

    fn rarely_read_bytes(&self) -> u64 {
        self.csr.bytes() + self.offsets.bytes() as u64
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        if matches!(self.values, DeviceReducedValues::Single(_)) {
            return Err(COMPRESSED);
        }
        self.enqueue_values(values, stream)
    }
}
