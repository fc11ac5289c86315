//! CSR to SELL-P: `gpu-kernels/src/convert/sellp.rs`.

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{SellpColumns, SellpMeasure, SellpValues, SellpValuesNarrow};

use super::{DeviceReducedValues, ValueKind, scan, warps};
use crate::matrix::{DeviceCsr, DeviceMatrix};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::stream::Stream;

const WARP: usize = super::WARP;

/// What to make of a matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SellpOptions<T> {
    /// Threads of a row: a power of two up to 32.
    pub(crate) lanes: usize,
    /// Columns as short as a chunk allows.
    pub(crate) compact: bool,
    pub(crate) values: ValueKind<T>,
}

/// SELL-P with a warp for each chunk.
#[derive(Debug)]
pub(crate) struct DeviceSellp<T> {
    pub(crate) shape: (usize, usize),
    pub(crate) log_lanes: u32,
    pub(crate) headers: DeviceBuffer<[u32; 4]>,
    pub(crate) bases: DeviceBuffer<u32>,
    pub(crate) offsets: DeviceBuffer<u32>,
    /// Of the CSR matrix.
    pub(crate) pointers: DeviceBuffer<u32>,
    pub(crate) values: DeviceReducedValues<T>,
}

impl<T: DeviceScalar> DeviceSellp<T> {
    /// Converts; `None` when `accept` says no to the number of slots.
    pub(crate) fn new(
        a: &DeviceCsr<T>,
        options: &SellpOptions<T>,
        accept: impl FnOnce(u64) -> Result<bool, PlanError>,
    ) -> Result<Option<Self>, PlanError> {
        let device = a.device();
        let stream = Stream::new(device)?;
        let log_lanes = options.lanes.trailing_zeros();
        let chunks = a.rows().div_ceil(WARP >> log_lanes);
        let launch = warps(device, chunks)?;
        let mut sums = DeviceBuffer::<u32>::zeroed(device, 3 * chunks + 1)?;
        let mut modes = DeviceBuffer::<u32>::uninitialized(device, chunks)?;
        let (rows, pointers) = (a.rows() as u32, a.pointers.ptr());
        let col_indices = a.col_indices.ptr();
        let mut args = SellpMeasure {
            rows,
            chunks: chunks as u32,
            log_lanes,
            round: if options.values == ValueKind::Narrow { 4 } else { 1 },
            compact: 0,
            pointers,
            col_indices,
            measures: sums.ptr_mut(),
            modes: modes.ptr_mut(),
        };
        // SAFETY: verified CSR arrays, words for each chunk.
        unsafe { device.launch::<SellpMeasure>(launch, &stream, args)? };
        let mut measured = totals(&mut sums, chunks, &stream)?;
        let slots = measured[0] * WARP as u64;
        // Widths alone are cheap: where they are hopeless, columns are not looked at.
        if !accept(slots)? {
            return Ok(None);
        }
        if options.compact {
            args.compact = 1;
            // SAFETY: as above.
            unsafe { device.launch::<SellpMeasure>(launch, &stream, args)? };
            measured = totals(&mut sums, chunks, &stream)?;
        }
        let [_, quads, units] = measured;
        if quads >= 1 << 30 || units >= 1 << 30 {
            let reason = "column offsets of more than 2^37 bytes".to_owned();
            return Err(PlanError::Unsupported { kernel: super::ID, reason });
        }
        let mut headers = DeviceBuffer::uninitialized(device, chunks)?;
        let mut bases = DeviceBuffer::uninitialized(device, 4 * quads as usize)?;
        let mut offsets = DeviceBuffer::uninitialized(device, WARP * units as usize)?;
        let args = SellpColumns {
            rows,
            chunks: chunks as u32,
            log_lanes,
            pointers,
            col_indices,
            sums: sums.ptr(),
            modes: modes.ptr(),
            headers: headers.ptr_mut(),
            bases: bases.ptr_mut(),
            offsets: offsets.ptr_mut(),
        };
        // SAFETY: arrays of the sizes that were measured.
        unsafe { device.launch::<SellpColumns>(launch, &stream, args)? };
        let shape = (rows, chunks as u32, log_lanes);
        let values = match options.values {
            ValueKind::Equal(value) => DeviceReducedValues::Equal(value),
            ValueKind::Stored => {
                let mut values = DeviceBuffer::uninitialized(device, slots as usize)?;
                let args = SellpValues {
                    rows: shape.0,
                    chunks: shape.1,
                    log_lanes,
                    pointers,
                    sums: sums.ptr(),
                    values: a.values.ptr(),
                    slots: values.ptr_mut(),
                };
                // SAFETY: as above.
                unsafe { device.launch::<SellpValues<T>>(launch, &stream, args)? };
                DeviceReducedValues::Stored(values)
            }
            ValueKind::Narrow => {
                let mut values = DeviceBuffer::uninitialized(device, slots as usize)?;
                let args = SellpValuesNarrow {
                    rows: shape.0,
                    chunks: shape.1,
                    log_lanes,
                    pointers,
                    sums: sums.ptr(),
                    values: a.values.ptr(),
                    slots: values.ptr_mut(),
                };
                // SAFETY: as above.
                unsafe { device.launch::<SellpValuesNarrow<T>>(launch, &stream, args)? };
                DeviceReducedValues::Narrow(values)
            }
        };
        let mut kept = DeviceBuffer::uninitialized(device, a.rows() + 1)?;
        kept.copy_from_on(&a.pointers, &stream)?;
        stream.synchronize()?;
        let shape = (a.rows(), a.cols());
        Ok(Some(Self { shape, log_lanes, headers, bases, offsets, pointers: kept, values }))
    }
}

/// Replaces three times `chunks` measures, and one more word, by their exclusive sums; returns the
/// totals of the three.
fn totals(
    sums: &mut DeviceBuffer<u32>,
    chunks: usize,
    stream: &Stream,
) -> Result<[u64; 3], PlanError> {
    scan(sums, stream)?;
    let mut ends = [0; 4];
    for (i, end) in ends.iter_mut().enumerate() {
        *end = u64::from(sums.element(i * chunks)?);
    }
    Ok([ends[1] - ends[0], ends[2] - ends[1], ends[3] - ends[2]])
}

impl<T: DeviceScalar> DeviceMatrix for DeviceSellp<T> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn bytes(&self) -> u64 {
        let columns = self.headers.bytes() + self.bases.bytes() + self.offsets.bytes();
        // Without values only the row pointers tell what is padding.
        let pointers = match self.values {
            DeviceReducedValues::Equal(_) => self.pointers.bytes(),
            _ => 0,
        };
        (columns + pointers + self.values.bytes()) as u64
    }

    fn rarely_read_bytes(&self) -> u64 {
        match self.values {
            DeviceReducedValues::Equal(_) => 0,
            _ => self.pointers.bytes() as u64,
        }
    }
}
