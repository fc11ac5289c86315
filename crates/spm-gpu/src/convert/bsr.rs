//! CSR to sliced BSR: `gpu-kernels/src/convert/bsr.rs`.

use spm_formats::MemoryBudget;
use spm_formats::convert::{BLOCK_SIZES, DetectedBlocks, best_blocks};
use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{
    BSR_SAMPLES, BsrColumns, BsrCounts, BsrFullColumns, BsrOrder, BsrValues, MOST_BLOCK_SIZE,
};

use super::stats::Parts;
use super::{NEW_VALUES, NOT_PLANNED, scan, threads, warps};
use crate::error::GpuError;
use crate::launch::{Launch, WARP};
use crate::matrix::{DeviceCsr, DeviceMatrix};
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::DeviceScalar;
use crate::stream::Stream;

/// Warps that count blocks, at most, which fill any device: each adds to one number.
const MOST_WARPS: usize = 1 << 13;
/// Blocks of a block row, at most: the words of the order have 27 bits for them.
const MOST_BLOCKS: usize = 1 << 27;

/// The square blocks in which the matrix seems to take the fewest bytes, as
/// [`spm_formats::convert::detect_blocks`] finds it.
pub(crate) fn detect_blocks<T: DeviceScalar>(
    a: &DeviceCsr<T>,
) -> Result<Option<DetectedBlocks>, PlanError> {
    if a.entries() == 0 {
        return Ok(None);
    }
    let seen = Parts { blocks: true, ..Parts::default() }.look_at_pattern(a)?;
    Ok(BlockSample::best::<T>(seen.blocks()))
}

/// Blocks and entries of some block rows of each size.
pub(super) enum BlockSample {}

impl BlockSample {
    /// One for each of these.
    pub(super) const PAIRS: usize = BLOCK_SIZES.len() * BSR_SAMPLES as usize;

    /// The sizes, one in each byte.
    pub(super) fn sizes() -> u64 {
        const { assert!(BLOCK_SIZES.len() <= size_of::<u64>()) };
        BLOCK_SIZES.iter().rev().fold(0, |sizes, &size| sizes << 8 | size as u64)
    }

    /// The size of the fewest bytes.
    pub(super) fn best<T: DeviceScalar>(seen: &[[u32; 2]]) -> Option<DetectedBlocks> {
        let padding_ratio = |size: usize| {
            let of_size = BLOCK_SIZES.iter().zip(seen.chunks(BSR_SAMPLES as usize));
            let samples = of_size.filter(|(of, _)| **of == size).flat_map(|(_, samples)| samples);
            let [blocks, entries] = samples.fold([0, 0], |[blocks, entries], [b, e]| {
                [blocks + u64::from(*b), entries + u64::from(*e)]
            });
            (blocks * (size * size) as u64) as f64 / entries as f64
        };
        best_blocks::<T>(padding_ratio)
    }
}

/// BSR with square blocks, the block rows of a warp together.
#[derive(Debug)]
pub(crate) struct DeviceBsr<T> {
    pub(crate) shape: (usize, usize),
    entries: usize,
    /// Rows and columns of a block, 1 to 8.
    pub(crate) size: usize,
    pub(crate) log_lanes: u32,
    pub(crate) order: DeviceBuffer<u32>,
    pub(crate) starts: DeviceBuffer<u32>,
    /// Blocks of all lanes; there is room for more.
    blocks: usize,
    pub(crate) first_cols: DeviceBuffer<u32>,
    /// Empty where every element of a block is an entry.
    pub(crate) masks: DeviceBuffer<u64>,
    pub(crate) values: DeviceBuffer<T>,
    /// The launch that writes the values.
    of_values: Launch,
    /// Of the CSR matrix, for new values.
    row_ptr: Option<DeviceBuffer<u32>>,
}

/// How a matrix is to be converted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BsrOptions {
    /// Rows and columns of a block, 1 to 8.
    pub(crate) size: usize,
    /// Whether values can be replaced.
    pub(crate) new_values: bool,
}

/// The blocks of each block row of a matrix.
pub(crate) struct BsrBlocks<'a, T> {
    a: &'a DeviceCsr<T>,
    options: BsrOptions,
    counts: DeviceBuffer<u32>,
    /// Of all block rows.
    pub(crate) blocks: usize,
    stream: Stream,
}

impl<'a, T: DeviceScalar> BsrBlocks<'a, T> {
    /// Counts them.
    ///
    /// # Errors
    /// More blocks side by side than it can number; a device that fails.
    pub(crate) fn count(a: &'a DeviceCsr<T>, options: BsrOptions) -> Result<Self, PlanError> {
        let BsrOptions { size, .. } = options;
        debug_assert!((1..=MOST_BLOCK_SIZE as usize).contains(&size));
        let side_by_side = a.cols().div_ceil(size);
        if side_by_side >= MOST_BLOCKS {
            let reason = format!("{side_by_side} blocks side by side, it takes less than 2^27");
            return Err(PlanError::Unsupported { kernel: super::ID, reason });
        }
        let (device, block_rows) = (a.device(), a.rows().div_ceil(size));
        let stream = Stream::of_planning(device)?;
        let mut counts = DeviceBuffer::uninitialized(device, block_rows)?;
        let mut total = DeviceBuffer::<u32>::zeroed(device, 1)?;
        let args = BsrCounts {
            rows: a.rows() as u32,
            size: size as u32,
            block_rows: block_rows as u32,
            row_ptr: a.row_ptr.ptr(),
            col_ind: a.col_ind.ptr(),
            counts: counts.ptr_mut(),
            total: total.ptr_mut(),
        };
        // SAFETY: verified CSR arrays, a count for each block row.
        unsafe {
            device.launch::<BsrCounts>(warps(device, block_rows.min(MOST_WARPS))?, &stream, args)?
        };
        let blocks = total.element(0)? as usize;
        Ok(Self { a, options, counts, blocks, stream })
    }

    /// Number of block rows.
    pub(crate) fn block_rows(&self) -> usize {
        self.counts.len()
    }

    /// Stored elements of all blocks, padding of slices not counted.
    pub(crate) fn elements(&self) -> u64 {
        (self.blocks * self.options.size * self.options.size) as u64
    }

    /// The matrix with `lanes` lanes, a power of two up to 32, for each block row, with room for slices of equal
    /// rows.
    pub(crate) fn convert(
        self,
        lanes: usize,
        budget: &MemoryBudget,
    ) -> Result<DeviceBsr<T>, PlanError> {
        let elements = self.elements();
        let block_rows = self.block_rows();
        let Self { a, options: BsrOptions { size, new_values }, counts, blocks, stream } = self;
        let device = a.device();
        let log_lanes = lanes.trailing_zeros();
        let slices = block_rows.div_ceil(WARP / lanes);
        let mut order = DeviceBuffer::uninitialized(device, block_rows)?;
        let mut starts = DeviceBuffer::<u32>::zeroed(device, slices + 1)?;
        let args = BsrOrder {
            block_rows: block_rows as u32,
            log_lanes,
            counts: counts.ptr(),
            order: order.ptr_mut(),
            widths: starts.ptr_mut(),
        };
        // SAFETY: a count and a place for each block row, a warp and a width for each slice.
        unsafe { device.launch::<BsrOrder>(warps(device, slices)?, &stream, args)? };
        scan(&mut starts, &stream)?;
        let places = starts.element(slices)? as usize * WARP;
        let full = elements == a.entries() as u64;
        let of_block = size * size;
        let mask_bytes = if full { 0 } else { size_of::<u64>() };
        let element_bytes = T::BYTES + (size_of::<u32>() + mask_bytes).div_ceil(of_block);
        budget.check("BSR", a.entries(), places as u128 * of_block as u128, element_bytes, 0)?;
        if u32::try_from(places).is_err() {
            let reason = format!("{places} blocks of all lanes are more than 32 bits number");
            return Err(PlanError::Unsupported { kernel: super::ID, reason });
        }
        let mut first_cols = DeviceBuffer::uninitialized(device, places)?;
        let mask_places = if full { 0 } else { places };
        let mut masks = DeviceBuffer::uninitialized(device, mask_places)?;
        if full {
            let args = BsrFullColumns {
                size: size as u32,
                block_rows: block_rows as u32,
                log_lanes,
                row_ptr: a.row_ptr.ptr(),
                col_ind: a.col_ind.ptr(),
                order: order.ptr(),
                starts: starts.ptr(),
                first_cols: first_cols.ptr_mut(),
            };
            // SAFETY: verified CSR arrays, room for the blocks that were counted, each of size x size entries.
            unsafe { device.launch::<BsrFullColumns>(warps(device, block_rows)?, &stream, args)? };
        } else {
            let args = BsrColumns {
                rows: a.rows() as u32,
                size: size as u32,
                block_rows: block_rows as u32,
                log_lanes,
                row_ptr: a.row_ptr.ptr(),
                col_ind: a.col_ind.ptr(),
                order: order.ptr(),
                starts: starts.ptr(),
                first_cols: first_cols.ptr_mut(),
                masks: masks.ptr_mut(),
            };
            // SAFETY: verified CSR arrays, room for the blocks that were counted and their masks.
            unsafe { device.launch::<BsrColumns>(threads(device, block_rows)?, &stream, args)? };
        }
        let values = DeviceBuffer::uninitialized(device, places * of_block)?;
        let shape = (a.rows(), a.cols());
        let of_values = threads(device, block_rows * lanes)?.with_grid_y(size as u32);
        let mut bsr = DeviceBsr {
            shape,
            entries: a.entries(),
            size,
            log_lanes,
            blocks,
            order,
            starts,
            first_cols,
            masks,
            values,
            of_values,
            row_ptr: None,
        };
        bsr.enqueue_values(&a.row_ptr, &a.values, &stream)?;
        if new_values {
            let mut kept = DeviceBuffer::uninitialized(device, a.rows() + 1)?;
            kept.copy_from_on(&a.row_ptr, &stream)?;
            bsr.row_ptr = Some(kept);
        }
        stream.synchronize()?;
        Ok(bsr)
    }
}

impl<T: DeviceScalar> DeviceBsr<T> {
    /// Number of block rows.
    pub(crate) fn block_rows(&self) -> usize {
        self.order.len()
    }

    /// Whether every element of a block is an entry.
    pub(crate) fn is_full(&self) -> bool {
        self.masks.is_empty()
    }

    /// Enqueues the values of the blocks, from as many in CSR order as there are entries.
    fn enqueue_values(
        &mut self,
        row_ptr: &DeviceBuffer<u32>,
        from: &DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let device = stream.device();
        let args = BsrValues {
            rows: self.shape.0 as u32,
            size: self.size as u32,
            block_rows: self.block_rows() as u32,
            log_lanes: self.log_lanes,
            full: self.is_full().into(),
            row_ptr: row_ptr.ptr(),
            order: self.order.ptr(),
            starts: self.starts.ptr(),
            masks: self.masks.ptr(),
            values: from.ptr(),
            to_values: self.values.ptr_mut(),
        };
        // SAFETY: the pointers that the blocks were made from, a value for each entry.
        unsafe { device.launch::<BsrValues<T>>(self.of_values, stream, args) }
    }
}

impl<T: DeviceScalar> DeviceMatrix for DeviceBsr<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// Lanes stop at their last block: room behind it is not read.
    fn bytes(&self) -> u64 {
        let of_block = self.size * self.size * T::BYTES + size_of::<u32>();
        (self.blocks * of_block + self.order.bytes() + self.starts.bytes()) as u64
    }

    fn rarely_read_bytes(&self) -> u64 {
        let held = [self.order.bytes(), self.starts.bytes(), self.first_cols.bytes()];
        let pointers = self.row_ptr.as_ref().map_or(0, DeviceBuffer::bytes);
        let other = self.masks.bytes() + self.values.bytes() + pointers;
        (held.iter().sum::<usize>() + other) as u64 - self.bytes()
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        check_operand(NEW_VALUES, stream.device(), values, self.entries)?;
        let row_ptr = self.row_ptr.take().ok_or(NOT_PLANNED)?;
        let enqueued = self.enqueue_values(&row_ptr, values, stream);
        self.row_ptr = Some(row_ptr);
        enqueued
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::convert;
    use spm_testing::edge_cases;

    use super::*;
    use crate::device::Device;

    /// A sample reads the first entries of long rows, and only the columns that those of all of its rows reach: every fourth
    /// row has a gap, so that its first entries are elsewhere.
    #[test]
    fn long_rows_are_sampled_in_the_same_columns() {
        let entries = (0..96).flat_map(|row: u32| {
            let cols = (0..if row % 4 == 3 { 24 } else { 96 }).chain(1000..1960);
            cols.map(move |col| (row, col))
        });
        let a = convert::coo_to_csr(&edge_cases::with_entries::<f64>((96, 1960), entries));
        let a = DeviceCsr::new(&Device::emulated(Default::default()), a.view()).unwrap();
        assert_eq!(detect_blocks(&a).unwrap().unwrap().size, 4);
    }
}
