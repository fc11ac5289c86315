//! Large buckets that several blocks sort by column (`gpu-kernels/src/transpose/bucket_pieces.rs`).

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::device::DevicePtrMut;
use spm_gpu_kernels::transpose::{
    PieceCount, PieceMove, PieceMovePattern, PieceScan, PieceScanShort, SCAN_WARPS, TILE_ITEMS,
    bucket_scan_bytes, piece_count_bytes, piece_move_bytes,
};

use super::cut::Cut;
use super::parameters::checked_over;
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::{Launch, WARP};
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceCsc, DeviceReal};
use crate::stream::Stream;

/// Rows and values of the entries in their buckets.
pub(super) type Moved<T> = (DevicePtrMut<u32>, DevicePtrMut<T>);

/// Threads of a block that counts.
const COUNT_BLOCK: usize = 512;
/// Pieces of a bucket up to which one warp scans 32 columns; also the warps of its block.
const FEW_PIECES: u32 = 64;
const SHORT_SCAN_WARPS: usize = 8;

/// The large buckets of one plan, and a buffer for all entries in bucket order, because the output
/// cannot hold them while entries are moved to it.
#[derive(Debug)]
pub(super) struct Pieces<T> {
    count: Launch,
    scan: Launch,
    /// Whether no bucket has more than a few pieces.
    short: bool,
    to_columns: Launch,
    /// Four words for each piece or large bucket.
    pieces: DeviceBuffer<u32>,
    /// Four words for each piece or large bucket.
    large: DeviceBuffer<u32>,
    /// Pieces x columns of a bucket.
    inter: DeviceBuffer<u32>,
    /// Large buckets x columns of a bucket.
    totals: DeviceBuffer<u32>,
    rows: DeviceBuffer<u32>,
    /// None in a pattern.
    values: DeviceBuffer<T>,
    pattern: bool,
}

impl<T: DeviceReal> Pieces<T> {
    /// Splits the buckets whose number of entries `is_large` into pieces of one tile; `starts` is
    /// the start of each bucket.
    pub(super) fn new(
        id: &'static str,
        device: &Device,
        cut: &Cut,
        length: usize,
        pattern: bool,
        starts: &[u32],
        is_large: impl Fn(u32) -> bool,
    ) -> Result<Self, PlanError> {
        let (block, width) = (cut.block, cut.width);
        let tile = (block * TILE_ITEMS) as u32;
        let (mut pieces, mut large, mut most) = (Vec::new(), Vec::new(), 0);
        for (bucket, pair) in (0_u32..).zip(starts.windows(2)) {
            let (begin, end) = (pair[0], pair[1]);
            if !is_large(end - begin) {
                continue;
            }
            let (index, first) = ((large.len() / 4) as u32, (pieces.len() / 4) as u32);
            // An empty bucket has a piece too, which writes its column pointers.
            let count = (end - begin).div_ceil(tile).max(1);
            most = count.max(most);
            let part = (end - begin).div_ceil(count).next_multiple_of(WARP as u32);
            for piece in 0..count {
                let from = begin + (piece * part).min(end - begin);
                pieces.extend([from, from + part.min(end - from), index, 0]);
            }
            large.extend([bucket, first, first + count, 0]);
        }
        let over = |items, block, shared| checked_over(id, device, items, 1, block, shared);
        let (count, buckets) = (pieces.len() / 4, large.len() / 4);
        let (strips, short) = (width.div_ceil(WARP as u32), most <= FEW_PIECES);
        let scan = if short {
            let warps = buckets * strips as usize;
            checked_over(id, device, warps, SHORT_SCAN_WARPS, SHORT_SCAN_WARPS * WARP, 0)?
        } else {
            let scan = over(1, SCAN_WARPS as usize * WARP, bucket_scan_bytes())?;
            Launch { grid: (buckets as u32, strips).into(), ..scan }
        };
        let words = |length: usize| DeviceBuffer::uninitialized(device, length);
        Ok(Self {
            count: over(count, COUNT_BLOCK, piece_count_bytes(width))?,
            scan,
            short,
            to_columns: over(count, block, piece_move_bytes(width, block as u32))?,
            inter: words(count * width as usize)?,
            totals: words(buckets * width as usize)?,
            pieces: DeviceBuffer::from_slice(device, &pieces)?,
            large: DeviceBuffer::from_slice(device, &large)?,
            rows: words(length)?,
            values: DeviceBuffer::uninitialized(device, if pattern { 0 } else { length })?,
            pattern,
        })
    }

    pub(super) fn workspace_bytes(&self) -> u64 {
        let words = [&self.pieces, &self.large, &self.inter, &self.totals, &self.rows];
        (words.map(DeviceBuffer::bytes).iter().sum::<usize>() + self.values.bytes()) as u64
    }

    /// The entries in bucket order.
    pub(super) fn moved(&mut self) -> Moved<T> {
        (self.rows.ptr_mut(), self.values.ptr_mut())
    }

    pub(super) fn enqueue(
        &mut self,
        (cols, width): (u32, u32),
        (starts, keys): (&DeviceBuffer<u32>, &DeviceBuffer<u16>),
        output: &mut DeviceCsc<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let device = stream.device();
        let (pieces, large, starts) = (self.pieces.ptr(), self.large.ptr(), starts.ptr());
        let (keys, moved_rows) = (keys.ptr(), self.rows.ptr());
        let (col_ptr, row_ind) = (output.col_ptr.ptr_mut(), output.row_ind.ptr_mut());
        let count = PieceCount { width, pieces, keys, inter: self.inter.ptr_mut() };
        let (inter, totals) = (self.inter.ptr_mut(), self.totals.ptr_mut());
        let buckets = (self.large.len() / 4) as u32;
        let scan = PieceScan { width, large, inter, totals };
        let short_scan = PieceScanShort { width, buckets, large, inter, totals };
        let (inter, totals) = (self.inter.ptr(), self.totals.ptr());
        // SAFETY: pieces and buckets inside of the entries, keys below the width, counts and totals
        // for each of them.
        unsafe {
            device.launch::<PieceCount>(self.count, stream, count)?;
            if self.short {
                device.launch::<PieceScanShort>(self.scan, stream, short_scan)?;
            } else {
                device.launch::<PieceScan>(self.scan, stream, scan)?;
            }
            if self.pattern {
                let args = PieceMovePattern {
                    cols,
                    width,
                    pieces,
                    large,
                    inter,
                    totals,
                    starts,
                    keys,
                    moved_rows,
                    col_ptr,
                    row_ind,
                };
                device.launch::<PieceMovePattern>(self.to_columns, stream, args)
            } else {
                let args = PieceMove {
                    cols,
                    width,
                    pieces,
                    large,
                    inter,
                    totals,
                    starts,
                    keys,
                    moved_rows,
                    moved_values: self.values.ptr(),
                    col_ptr,
                    row_ind,
                    values: output.values.ptr_mut(),
                };
                device.launch::<PieceMove<T>>(self.to_columns, stream, args)
            }
        }
    }
}
