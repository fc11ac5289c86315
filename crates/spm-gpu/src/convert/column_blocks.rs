//! CSR to CSR by blocks of columns: `gpu-kernels/src/convert/column_blocks.rs`.

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{ColumnBlockCounts, ColumnBlockEntries, ColumnBlockEntriesNarrow};
use spm_gpu_kernels::spmv::csr_column_blocks_shared_bytes;

use super::{DeviceReducedValues, scan, warps};
use crate::device::Device;
use crate::matrix::{DeviceCsr, DeviceMatrix};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::stream::Stream;

/// Column blocks that the conversion counts at most.
const MOST_BLOCKS: usize = 32;

/// How the columns are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnBlockShape {
    pub(crate) col_blocks: usize,
    pub(crate) block_cols: usize,
}

impl ColumnBlockShape {
    /// As few blocks as shared memory and 16-bit columns allow; `None` for more than 32.
    pub(crate) fn of<T: DeviceScalar>(device: &Device, cols: usize) -> Option<Self> {
        let room = device.info().limits.shared_bytes;
        let fixed = csr_column_blocks_shared_bytes::<T>(0);
        let most = ((room - fixed) as usize / size_of::<T>()).min(1 << 16);
        let col_blocks = cols.div_ceil(most).max(1);
        (col_blocks <= MOST_BLOCKS)
            .then(|| Self { col_blocks, block_cols: cols.div_ceil(col_blocks).max(1) })
    }
}

/// The arrays of `csr-column-blocks`.
#[derive(Debug)]
pub(crate) struct DeviceColumnBlocks<T> {
    pub(crate) shape: (usize, usize),
    pub(crate) pointers: DeviceBuffer<u32>,
    pub(crate) col_offsets: DeviceBuffer<u16>,
    pub(crate) values: DeviceReducedValues<T>,
}

impl<T: DeviceScalar> DeviceColumnBlocks<T> {
    /// Converts; values are stored or narrow.
    pub(crate) fn new(
        a: &DeviceCsr<T>,
        cut: ColumnBlockShape,
        narrow: bool,
    ) -> Result<Self, PlanError> {
        let device = a.device();
        let stream = Stream::new(device)?;
        let launch = warps(device, a.rows())?;
        let ColumnBlockShape { col_blocks, block_cols } = cut;
        let words = a.rows() * col_blocks + 1;
        if u32::try_from(words).is_err() {
            let reason = format!("{words} parts of rows are more than 32 bits number");
            return Err(PlanError::Unsupported { kernel: super::ID, reason });
        }
        let mut starts = DeviceBuffer::<u32>::zeroed(device, words)?;
        let (rows, pointers, col_indices) =
            (a.rows() as u32, a.pointers.ptr(), a.col_indices.ptr());
        let (block_cols, col_blocks) = (block_cols as u32, col_blocks as u32);
        let counts = starts.ptr_mut();
        let args =
            ColumnBlockCounts { rows, block_cols, col_blocks, pointers, col_indices, counts };
        // SAFETY: verified CSR arrays, a word for each row of each column block.
        unsafe { device.launch::<ColumnBlockCounts>(launch, &stream, args)? };
        scan(&mut starts, &stream)?;
        let mut col_offsets = DeviceBuffer::uninitialized(device, a.entries())?;
        let values = if narrow {
            let mut values = DeviceBuffer::uninitialized(device, a.entries())?;
            let args = ColumnBlockEntriesNarrow {
                rows,
                block_cols,
                col_blocks,
                pointers,
                col_indices,
                values: a.values.ptr(),
                starts: starts.ptr(),
                col_offsets: col_offsets.ptr_mut(),
                to_values: values.ptr_mut(),
            };
            // SAFETY: as many entries as before, the places that were counted.
            unsafe { device.launch::<ColumnBlockEntriesNarrow<T>>(launch, &stream, args)? };
            DeviceReducedValues::Narrow(values)
        } else {
            let mut values = DeviceBuffer::uninitialized(device, a.entries())?;
            let args = ColumnBlockEntries {
                rows,
                block_cols,
                col_blocks,
                pointers,
                col_indices,
                values: a.values.ptr(),
                starts: starts.ptr(),
                col_offsets: col_offsets.ptr_mut(),
                to_values: values.ptr_mut(),
            };
            // SAFETY: as above.
            unsafe { device.launch::<ColumnBlockEntries<T>>(launch, &stream, args)? };
            DeviceReducedValues::Stored(values)
        };
        stream.synchronize()?;
        let shape = (a.rows(), a.cols());
        Ok(Self { shape, pointers: starts, col_offsets, values })
    }
}

impl<T: DeviceScalar> DeviceMatrix for DeviceColumnBlocks<T> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn bytes(&self) -> u64 {
        (self.pointers.bytes() + self.col_offsets.bytes() + self.values.bytes()) as u64
    }
}
