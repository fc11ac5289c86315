//! Conversion of CSR to the column blocks of `csr-column-blocks`
//! (`gpu-kernels/src/convert/column_blocks.rs`).

use spm_formats::kernel::PlanError;
use spm_formats::{MemoryBudget, partition};
use spm_gpu_kernels::convert::{
    ColumnBlockColumns, ColumnBlockCounts, ColumnBlockEnds, ColumnBlockEntries,
    ColumnBlockEntriesSingle,
};
use spm_gpu_kernels::spmv::{COLUMN_BLOCK_QUAD, csr_column_blocks_shared_bytes};

use super::{DeviceReducedValues, ValueKind, ValuePositions, threads, warps};
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::WARP;
use crate::matrix::{DeviceCsr, DeviceMatrix};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::stream::Stream;
use crate::transpose::Scan;

/// Maximum number of column blocks: every row has a sum for each of them.
const MOST_BLOCKS: usize = 256;
/// Entries of a row that a warp converts, about, and most warps of a row.
const ENTRIES_OF_A_WARP: usize = 1024;
const MOST_WARPS: usize = 16;
/// Entries of a quad.
const QUAD: usize = COLUMN_BLOCK_QUAD as usize;

/// The division of the columns into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnBlockShape {
    pub(crate) col_blocks: usize,
    /// Columns of a block; even, so that each block of x is aligned for loads of pairs.
    pub(crate) block_cols: usize,
}

impl ColumnBlockShape {
    /// As few blocks as shared memory and 16-bit columns allow; `None` for more than 256.
    pub(crate) fn of<T: DeviceReal>(device: &Device, cols: usize) -> Option<Self> {
        let room = device.info().limits.shared_bytes;
        let fixed = csr_column_blocks_shared_bytes::<T>(0);
        let most = ((room - fixed) as usize / size_of::<T>()).min((1 << 16) - 2) & !1;
        let col_blocks = cols.div_ceil(most).max(1);
        let block_cols = cols.div_ceil(col_blocks).max(1).next_multiple_of(2);
        (col_blocks <= MOST_BLOCKS).then_some(Self { col_blocks, block_cols })
    }

    /// Parts of a matrix with so many rows.
    pub(crate) fn parts(self, rows: usize) -> usize {
        rows * self.col_blocks
    }

    /// Bytes that a product is expected to move beside x and y, with values of `value_bytes`: half of a quad of each part is
    /// padding, and its sum is written and read.
    pub(crate) fn expected_bytes<T>(self, rows: usize, entries: usize, value_bytes: u64) -> u64 {
        let parts = self.parts(rows);
        let elements = (entries + QUAD / 2 * parts) as u64;
        elements * (size_of::<u16>() as u64 + value_bytes) + (2 * parts * size_of::<T>()) as u64
    }
}

/// The arrays of `csr-column-blocks`.
#[derive(Debug)]
pub(crate) struct DeviceColumnBlocks<T> {
    pub(crate) shape: (usize, usize),
    /// For each block of the grid: its column block, where its chunk of the quads begins and ends, and the number of all quads.
    pub(crate) chunks: DeviceBuffer<[u32; 4]>,
    /// A bit for each quad: whether it ends a part.
    pub(crate) ends: DeviceBuffer<u32>,
    /// The part that each 32 quads begin in.
    pub(crate) parts: DeviceBuffer<u32>,
    pub(crate) col_offsets: DeviceBuffer<u16>,
    pub(crate) values: DeviceReducedValues<T>,
    /// For new values.
    positions: Option<ValuePositions>,
}

impl<T: DeviceReal> DeviceColumnBlocks<T> {
    /// Converts a matrix that has entries, `longest` of them in its longest row; values that are stored at full width can be
    /// replaced with `new_values`.
    pub(crate) fn new(
        (a, longest): (&DeviceCsr<T>, usize),
        cut: ColumnBlockShape,
        (kind, new_values): (ValueKind<T>, bool),
        budget: &MemoryBudget,
    ) -> Result<Self, PlanError> {
        let device = a.device();
        let stream = Stream::of_planning(device)?;
        let launch = warps(device, a.rows())?;
        let ColumnBlockShape { col_blocks, block_cols } = cut;
        let parts = cut.parts(a.rows());
        check_parts(a.entries(), parts)?;
        let mut first_entries = DeviceBuffer::uninitialized(device, parts)?;
        let mut of_parts = DeviceBuffer::<u32>::uninitialized(device, parts + 1)?;
        of_parts.fill_zero()?;
        let (rows, row_ptr, col_ind) = (a.rows() as u32, a.row_ptr.ptr(), a.col_ind.ptr());
        let (block_cols, col_blocks) = (block_cols as u32, col_blocks as u32);
        let args = ColumnBlockCounts {
            rows,
            block_cols,
            col_blocks,
            row_ptr,
            col_ind,
            first_entries: first_entries.ptr_mut(),
            counts: of_parts.ptr_mut(),
        };
        // SAFETY: verified CSR arrays, two words for each row of each column block.
        unsafe { device.launch::<ColumnBlockCounts>(launch, &stream, args)? };
        // The first part of each column block, and the end of the last.
        let starts =
            Scan::fitting(device, of_parts.len())?.every(&mut of_parts, a.rows(), &stream)?;
        let quads = *starts.last().expect("a matrix with entries has a row") as usize;
        let padded = QUAD * quads;
        let value_bytes = match kind {
            ValueKind::Equal(_) => 0,
            ValueKind::Single => size_of::<f32>(),
            ValueKind::Stored => size_of::<T>(),
        };
        let element_bytes = size_of::<u16>() + value_bytes;
        budget.check("CSR by blocks of columns", a.entries(), padded as u128, element_bytes, 0)?;
        let most = device.info().multiprocessors as usize;
        let chunks = DeviceBuffer::from_slice(device, &chunks(&starts, most))?;
        let mut ends = DeviceBuffer::zeroed(device, quads.div_ceil(WARP))?;
        let mut firsts = DeviceBuffer::uninitialized(device, quads.div_ceil(WARP))?;
        let args = ColumnBlockEnds {
            parts: parts as u32,
            starts: of_parts.ptr(),
            ends: ends.ptr_mut(),
            firsts: firsts.ptr_mut(),
        };
        // SAFETY: ascending numbers of quads, a bit for each of them, a word for 32.
        unsafe { device.launch::<ColumnBlockEnds>(threads(device, parts)?, &stream, args)? };
        let mut col_offsets = DeviceBuffer::uninitialized(device, padded)?;
        let warps_of_row = (longest / ENTRIES_OF_A_WARP).clamp(1, MOST_WARPS);
        let launch = launch.with_grid_y(warps_of_row as u32);
        macro_rules! fill {
            ($entries:ident $(, $from:ident: $values:expr, $into:ident: $to:expr)?) => {{
                let args = $entries {
                    rows,
                    block_cols,
                    col_blocks,
                    row_ptr,
                    col_ind,
                    first_entries: first_entries.ptr(),
                    starts: of_parts.ptr(),
                    col_offsets: col_offsets.ptr_mut(),
                    $($from: $values, $into: $to.ptr_mut(),)?
                };
                // SAFETY: as many entries as before, the places that were counted, padding included.
                unsafe { device.launch::<fill!(@of $entries $($from)?)>(launch, &stream, args)? }
            }};
            (@of $entries:ident) => { $entries };
            (@of $entries:ident $from:ident) => { $entries<T> };
        }
        let mut positions = None;
        let values = match kind {
            ValueKind::Equal(value) => {
                fill!(ColumnBlockColumns);
                DeviceReducedValues::Equal(value)
            }
            ValueKind::Single => {
                let mut values = DeviceBuffer::uninitialized(device, padded)?;
                fill!(ColumnBlockEntriesSingle, values: a.values.ptr(), to_values: values);
                DeviceReducedValues::Single(values)
            }
            ValueKind::Stored => {
                let values;
                (values, positions) =
                    ValuePositions::convert(a, padded, new_values, &stream, |from, into| {
                        fill!(ColumnBlockEntries, values: from, to_values: into);
                        Ok(())
                    })?;
                DeviceReducedValues::Stored(values)
            }
        };
        stream.synchronize()?;
        let shape = (a.rows(), a.cols());
        Ok(Self { shape, chunks, ends, parts: firsts, col_offsets, values, positions })
    }
}

/// The chunks of column blocks whose quads begin at `starts`, with the number of all behind them: `most` chunks, or one for
/// each column block where those are more, the largest as small as it can be.
fn chunks(starts: &[u32], most: usize) -> Vec<[u32; 4]> {
    let sizes: Vec<u32> = starts.windows(2).map(|ends| ends[1] - ends[0]).collect();
    let mut counts = vec![1; sizes.len()];
    for _ in sizes.len()..most {
        let largest = (0..sizes.len()).max_by_key(|&block| sizes[block] / counts[block]);
        counts[largest.expect("a matrix with entries has a column")] += 1;
    }
    let all = starts.last().copied().unwrap_or(0);
    let of_block = |block: usize| {
        let (first, size, count) = (starts[block], sizes[block] as usize, counts[block]);
        (0..count as usize).map(move |chunk| {
            let quads = partition::even(size, count as usize, chunk);
            [block as u32, first + quads.start as u32, first + quads.end as u32, all]
        })
    };
    (0..sizes.len()).flat_map(of_block).collect()
}

/// Refuses a matrix whose padded entries 32 bits might not number: each of the parts has up to a quad of padding.
fn check_parts(entries: usize, parts: usize) -> Result<(), PlanError> {
    let padded = entries as u128 + (QUAD * parts) as u128;
    if u32::try_from(padded).is_ok() {
        return Ok(());
    }
    let reason = format!("up to {padded} entries with padding are more than 32 bits number");
    Err(PlanError::Unsupported { kernel: super::ID, reason })
}

impl<T: DeviceReal> DeviceMatrix for DeviceColumnBlocks<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn bytes(&self) -> u64 {
        let of_quads = self.ends.bytes() + self.parts.bytes() + self.col_offsets.bytes();
        (self.chunks.bytes() + of_quads + self.values.bytes()) as u64
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
    fn chunks_are_as_equal_as_they_can_be() {
        let expected =
            [[0, 0, 5, 17], [0, 5, 10, 17], [1, 10, 10, 17], [2, 10, 14, 17], [2, 14, 17, 17]];
        assert_eq!(chunks(&[0, 10, 10, 17], 5), expected);
        // More column blocks than chunks.
        assert_eq!(chunks(&[0, 2, 3], 1), [[0, 0, 2, 3], [1, 2, 3, 3]]);
    }

    #[test]
    fn parts_whose_padding_might_wrap_are_refused() {
        let most = u32::MAX as usize;
        assert!(check_parts(most - 8, 2).is_ok());
        assert!(check_parts(most - 7, 2).is_err());
        assert!(check_parts(1, most / 4).is_ok());
        assert!(check_parts(4, most / 4).is_err());
    }
}
