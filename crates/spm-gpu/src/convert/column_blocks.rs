//! Conversion of CSR to the column blocks of `csr-column-blocks`
//! (`gpu-kernels/src/convert/column_blocks.rs`).

use spm_formats::MemoryBudget;
use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{ColumnBlockCounts, ColumnBlockEntries, ColumnBlockEntriesSingle};
use spm_gpu_kernels::spmv::{
    COLUMN_BLOCK_IN_FLIGHT, COLUMN_BLOCK_QUAD, csr_column_blocks_shared_bytes,
};

use super::{DeviceReducedValues, ValuePositions, scan, warps};
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::WARP;
use crate::matrix::{DeviceCsr, DeviceMatrix};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::stream::Stream;

/// Maximum number of column blocks.
const MOST_BLOCKS: usize = 32;
/// Entries that a product may step beyond the end of a row segment: those of all lanes of a row.
const STEP: usize = COLUMN_BLOCK_IN_FLIGHT as usize * WARP;

/// The division of the columns into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnBlockShape {
    pub(crate) col_blocks: usize,
    /// Columns of a block; even, so that each block of x is aligned for loads of pairs.
    pub(crate) block_cols: usize,
}

impl ColumnBlockShape {
    /// As few blocks as shared memory and 16-bit columns allow; `None` for more than 32.
    pub(crate) fn of<T: DeviceReal>(device: &Device, cols: usize) -> Option<Self> {
        let room = device.info().limits.shared_bytes;
        let fixed = csr_column_blocks_shared_bytes::<T>(0);
        let most = ((room - fixed) as usize / size_of::<T>()).min(1 << 16) & !1;
        let col_blocks = cols.div_ceil(most).max(1);
        let block_cols = cols.div_ceil(col_blocks).max(1).next_multiple_of(2);
        (col_blocks <= MOST_BLOCKS).then_some(Self { col_blocks, block_cols })
    }
}

/// The arrays of `csr-column-blocks`.
#[derive(Debug)]
pub(crate) struct DeviceColumnBlocks<T> {
    pub(crate) shape: (usize, usize),
    /// 0, the end of each row segment of each column block, and the number of stored elements.
    pub(crate) ends: DeviceBuffer<u32>,
    pub(crate) col_offsets: DeviceBuffer<u16>,
    pub(crate) values: DeviceReducedValues<T>,
    /// For new values.
    positions: Option<ValuePositions>,
}

impl<T: DeviceReal> DeviceColumnBlocks<T> {
    /// Converts a matrix that has entries; values are stored at full width, and can then be replaced with
    /// `new_values`, or in single precision.
    pub(crate) fn new(
        a: &DeviceCsr<T>,
        cut: ColumnBlockShape,
        (single, new_values): (bool, bool),
        budget: &MemoryBudget,
    ) -> Result<Self, PlanError> {
        let device = a.device();
        let stream = Stream::of_planning(device)?;
        let launch = warps(device, a.rows())?;
        let ColumnBlockShape { col_blocks, block_cols } = cut;
        let parts = a.rows() * col_blocks;
        check_parts(a.entries(), parts)?;
        let mut ends = DeviceBuffer::<u32>::zeroed(device, parts + 2)?;
        let (rows, row_ptr, col_ind) = (a.rows() as u32, a.row_ptr.ptr(), a.col_ind.ptr());
        let (block_cols, col_blocks) = (block_cols as u32, col_blocks as u32);
        // Behind the 0, so that the sum has the start of each part where its end is to be.
        let places = ends.ptr_mut().offset(1_u32);
        let counts = places;
        let args = ColumnBlockCounts { rows, block_cols, col_blocks, row_ptr, col_ind, counts };
        // SAFETY: verified CSR arrays, a word for each row of each column block.
        unsafe { device.launch::<ColumnBlockCounts>(launch, &stream, args)? };
        scan(&mut ends, &stream)?;
        let padded = ends.element(parts + 1)? as usize;
        let value_bytes = if single { size_of::<f32>() } else { size_of::<T>() };
        let element_bytes = size_of::<u16>() + value_bytes;
        budget.check("CSR by blocks of columns", a.entries(), padded as u128, element_bytes, 0)?;
        let mut col_offsets = DeviceBuffer::uninitialized(device, padded)?;
        macro_rules! fill {
            ($entries:ident, $from:expr, $into:expr) => {{
                let args = $entries {
                    rows,
                    block_cols,
                    col_blocks,
                    row_ptr,
                    col_ind,
                    values: $from,
                    places,
                    col_offsets: col_offsets.ptr_mut(),
                    to_values: $into.ptr_mut(),
                };
                // SAFETY: as many entries as before, the places that were counted, padding included.
                unsafe { device.launch::<$entries<T>>(launch, &stream, args)? }
            }};
        }
        let mut positions = None;
        let values = if single {
            let mut values = DeviceBuffer::uninitialized(device, padded)?;
            fill!(ColumnBlockEntriesSingle, a.values.ptr(), values);
            DeviceReducedValues::Single(values)
        } else {
            let values;
            (values, positions) =
                ValuePositions::convert(a, padded, new_values, &stream, |from, into| {
                    fill!(ColumnBlockEntries, from, into);
                    Ok(())
                })?;
            DeviceReducedValues::Stored(values)
        };
        stream.synchronize()?;
        let shape = (a.rows(), a.cols());
        Ok(Self { shape, ends, col_offsets, values, positions })
    }
}

/// Refuses a matrix with so many row segments that a kernel might step beyond 32 bits.
fn check_parts(entries: usize, parts: usize) -> Result<(), PlanError> {
    let padding = u128::from(COLUMN_BLOCK_QUAD - 1) * entries.min(parts) as u128;
    let padded = entries as u128 + padding;
    let reason = if u32::try_from(parts + 2).is_err() {
        format!("{parts} parts of rows are more than 32 bits number")
    } else if u32::try_from(padded + STEP as u128).is_err() {
        format!("up to {padded} entries with padding are more than 32 bits number")
    } else {
        return Ok(());
    };
    Err(PlanError::Unsupported { kernel: super::ID, reason })
}

impl<T: DeviceReal> DeviceMatrix for DeviceColumnBlocks<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn bytes(&self) -> u64 {
        (self.ends.bytes() + self.col_offsets.bytes() + self.values.bytes()) as u64
    }

    fn rarely_read_bytes(&self) -> u64 {
        self.positions.as_ref().map_or(0, |positions| positions.bytes() as u64)
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        self.values.set(self.positions.as_ref(), values, stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_whose_padding_might_wrap_are_refused() {
        let most = u32::MAX as usize - STEP;
        assert!(check_parts(most - 3, 1).is_ok());
        assert!(check_parts(most - 2, 1).is_err());
        // An entry in each part, or fewer.
        assert!(check_parts(most / 4, most / 4).is_ok());
        assert!(check_parts(most / 4, u32::MAX as usize - 2).is_ok());
        assert!(check_parts(most / 4 + 1, most).is_err());
        assert!(check_parts(1, u32::MAX as usize - 1).is_err());
    }
}
