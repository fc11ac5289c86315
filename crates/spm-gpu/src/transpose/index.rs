//! Row pointers from row indices and back (`gpu-kernels/src/transpose/index_to_pointers.rs` and
//! `pointers_to_index.rs`).

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::transpose::{
    DENSE_TILE, Histogram, HistogramOfKeys, PointersToIndex, TransposeDense, VerticalScanColumns,
    VerticalScanRows, transpose_dense_bytes, vertical_scan_rows_bytes,
};

use super::parameters::checked_over;
use super::scan::Scan;
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::memory::{DeviceBuffer, check_operand};
use crate::stream::Stream;

const ID: &str = "index-to-pointers";
/// Maximum words of all partial histograms together, unless a single one is longer.
const PARTIAL_WORDS: usize = 1 << 24;
/// Threads of a block that scans.
const SCAN_BLOCK: usize = 256;

/// How the partial histograms are added (R3 IV-F).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VerticalScan {
    /// One thread scans each column.
    Columns,
    /// The matrix of histograms is transposed, and one block scans each row.
    Transposed,
}

/// The indices.
#[derive(Debug, Clone, Copy)]
pub(super) enum Indices<'a> {
    /// An array of indices.
    Plain(&'a DeviceBuffer<u32>),
    /// The high halves of an array of keys.
    OfKeys(&'a DeviceBuffer<u64>),
}

/// Counts how often each number below `width` occurs, and scans the counts to pointers (R3 IV-F).
#[derive(Debug)]
pub(super) struct IndexToPointers {
    length: usize,
    width: usize,
    part: usize,
    device: Device,
    histogram: Launch,
    vertical: Vertical,
    counts: DeviceBuffer<u32>,
    scan: Scan,
}

#[derive(Debug)]
enum Vertical {
    /// One part: nothing to add.
    None,
    Columns(Launch),
    Transposed {
        transpose: Launch,
        scan: Launch,
        transposed: DeviceBuffer<u32>,
    },
}

impl IndexToPointers {
    /// For `length` indices below `width`, counted by `parts` blocks at most.
    ///
    /// # Errors
    /// A block that the device does not take, too little memory for the partial histograms.
    pub(super) fn new(
        device: &Device,
        (length, width): (usize, usize),
        parts: usize,
        vertical: VerticalScan,
        block: usize,
    ) -> Result<Self, PlanError> {
        let parts = parts.clamp(1, (PARTIAL_WORDS / width.max(1)).max(1)).min(length.max(1));
        let part = length.div_ceil(parts).max(1);
        let parts = length.div_ceil(part).max(1);
        let vertical = match vertical {
            _ if parts == 1 => Vertical::None,
            VerticalScan::Columns => {
                Vertical::Columns(checked_over(ID, device, width, block, block, 0)?)
            }
            VerticalScan::Transposed => {
                let tile = DENSE_TILE as usize;
                let grid = (width.div_ceil(tile).max(1) as u32, parts.div_ceil(tile) as u32);
                let shared = vertical_scan_rows_bytes();
                Vertical::Transposed {
                    transpose: Launch::new(grid, (DENSE_TILE, 8))
                        .with_shared_bytes(transpose_dense_bytes()),
                    scan: checked_over(ID, device, width, 1, SCAN_BLOCK, shared)?,
                    transposed: DeviceBuffer::uninitialized(device, parts * width)?,
                }
            }
        };
        Ok(Self {
            length,
            width,
            part,
            device: device.clone(),
            histogram: checked_over(ID, device, parts, 1, block, 0)?,
            vertical,
            // With one part the counts go straight to the pointers.
            counts: DeviceBuffer::uninitialized(
                device,
                if parts == 1 { 0 } else { parts * width },
            )?,
            scan: Scan::new(device, width + 1, SCAN_BLOCK)?,
        })
    }

    /// Bytes of device memory.
    pub(super) fn workspace_bytes(&self) -> u64 {
        let transposed = match &self.vertical {
            Vertical::Transposed { transposed, .. } => transposed.bytes(),
            _ => 0,
        };
        (self.counts.bytes() + transposed) as u64 + self.scan.workspace_bytes()
    }

    /// Enqueues the computation of `pointers` (width + 1 words) in the stream.
    ///
    /// # Errors
    /// Another length or device; a device that fails.
    ///
    /// # Safety
    /// When the stream comes to it, the indices are below the width, and nothing else uses what
    /// `self` owns.
    pub(super) unsafe fn enqueue(
        &mut self,
        indices: Indices<'_>,
        pointers: &mut DeviceBuffer<u32>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        check_operand("pointers", &self.device, pointers, self.width + 1)?;
        match indices {
            Indices::Plain(indices) => {
                check_operand("indices", &self.device, indices, self.length)?;
            }
            Indices::OfKeys(keys) => check_operand("keys", &self.device, keys, self.length)?,
        }
        pointers.enqueue_zero(stream)?;
        if self.length == 0 || self.width == 0 {
            return Ok(());
        }
        let counts = match self.vertical {
            Vertical::None => pointers.ptr_mut(),
            _ => {
                self.counts.enqueue_zero(stream)?;
                self.counts.ptr_mut()
            }
        };
        let (length, part, width) = (self.length as u32, self.part as u32, self.width as u32);
        let (device, launch) = (&self.device, self.histogram);
        // SAFETY: `length` indices that the caller promises to be below `width`, a zeroed row of
        // counts for each block.
        unsafe {
            match indices {
                Indices::Plain(indices) => {
                    let args = Histogram { length, part, width, indices: indices.ptr(), counts };
                    device.launch::<Histogram>(launch, stream, args)?;
                }
                Indices::OfKeys(keys) => {
                    let args = HistogramOfKeys { length, part, width, keys: keys.ptr(), counts };
                    device.launch::<HistogramOfKeys>(launch, stream, args)?;
                }
            }
        }
        let (height, totals) = (launch.grid.x, pointers.ptr_mut());
        match &mut self.vertical {
            Vertical::None => {}
            Vertical::Columns(launch) => {
                let args = VerticalScanColumns { height, width, matrix: counts, totals };
                // SAFETY: a height x width matrix, a thread and a total for each column.
                unsafe { device.launch::<VerticalScanColumns>(*launch, stream, args)? };
            }
            Vertical::Transposed { transpose, scan, transposed } => {
                let matrix = self.counts.ptr();
                let turn =
                    TransposeDense { height, width, matrix, transposed: transposed.ptr_mut() };
                let rows = VerticalScanRows { width: height, matrix: transposed.ptr_mut(), totals };
                // SAFETY: as above, and a block for each row of the transposed matrix.
                unsafe {
                    device.launch::<TransposeDense>(*transpose, stream, turn)?;
                    device.launch::<VerticalScanRows>(*scan, stream, rows)?;
                }
            }
        }
        self.scan.enqueue(pointers, stream)
    }
}

/// Writes the number of its row to each entry (R3 IV-G).
#[derive(Debug)]
pub(super) struct ExpandPointers {
    rows: usize,
    device: Device,
    launch: Launch,
}

impl ExpandPointers {
    /// For `rows` rows, each by a block of `block` threads.
    ///
    /// # Errors
    /// A block that the device does not take.
    pub(super) fn new(device: &Device, rows: usize, block: usize) -> Result<Self, PlanError> {
        // Blocks take further rows where there are more than a grid has blocks or 32 bits threads.
        let blocks = rows.min(((1 << 31) / block.max(1)).min(i32::MAX as usize));
        let launch = checked_over("pointers-to-index", device, blocks, 1, block, 0)?;
        Ok(Self { rows, device: device.clone(), launch })
    }

    /// Enqueues the computation of `indices` in the stream.
    ///
    /// # Errors
    /// Another number of rows or another device; a device that fails.
    ///
    /// # Safety
    /// When the stream comes to it, `pointers` ascend, and the last one is at most the number of
    /// indices.
    pub(super) unsafe fn enqueue(
        &self,
        pointers: &DeviceBuffer<u32>,
        indices: &mut DeviceBuffer<u32>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        check_operand("pointers", &self.device, pointers, self.rows + 1)?;
        check_operand("indices", &self.device, indices, indices.len())?;
        let args = PointersToIndex {
            rows: self.rows as u32,
            row_ptr: pointers.ptr(),
            indices: indices.ptr_mut(),
        };
        // SAFETY: rows + 1 pointers, which the caller promises to lie inside of the indices.
        unsafe { self.device.launch::<PointersToIndex>(self.launch, stream, args) }
    }
}
