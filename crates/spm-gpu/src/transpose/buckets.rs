//! Sort of entries by column in two steps: into buckets of consecutive columns, and then by column
//! inside each bucket (`gpu-kernels/src/transpose/buckets.rs`, `bucket_sort.rs`,
//! `bucket_pieces.rs`).

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::transpose::{
    BucketCount, BucketExtent, BucketMove, BucketMovePattern, BucketMoveTriplets, BucketScan,
    BucketSort, BucketSortPattern, SCAN_WARPS, bucket_count_bytes, bucket_move_bytes,
    bucket_scan_bytes, bucket_sort_bytes, bucket_sort_entries,
};

use super::cut::{Chunks, Cut, Wish};
use super::parameters::checked_over;
use super::pieces::{Moved, Pieces};
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::{Launch, WARP};
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceCsc, DeviceReal};
use crate::stream::Stream;

/// Threads of a block that counts.
const COUNT_BLOCK: usize = 512;
/// How often narrower buckets are tried until one block can sort each.
const NARROWINGS: usize = 3;
/// If some buckets stay too large, as those with a dense column do: the fraction of the entries in
/// them up to which narrower buckets do not pay, and the margin above the least such fraction.
const LARGE_SHARE: f64 = 0.05;
const NEAR_LEAST: f64 = 1.5;

/// The entries of a matrix on the device.
#[derive(Debug)]
pub(crate) enum Entries<'a, T> {
    /// Row row_ptr and column indices; a pattern has no values.
    Csr {
        row_ptr: &'a DeviceBuffer<u32>,
        columns: &'a DeviceBuffer<u32>,
        values: Option<&'a DeviceBuffer<T>>,
    },
    /// Row and column of each entry, in any order.
    Triplets {
        rows: &'a DeviceBuffer<u32>,
        columns: &'a DeviceBuffer<u32>,
        values: &'a DeviceBuffer<T>,
    },
}

impl<T> Entries<'_, T> {
    fn columns(&self) -> &DeviceBuffer<u32> {
        match self {
            Self::Csr { columns, .. } | Self::Triplets { columns, .. } => columns,
        }
    }

    /// Number of entries.
    pub(crate) fn length(&self) -> usize {
        self.columns().len()
    }

    fn is_pattern(&self) -> bool {
        matches!(self, Self::Csr { values: None, .. })
    }
}

/// A prepared stable sort of the entries of one matrix by column.
#[derive(Debug)]
pub(crate) struct ColumnSort<T> {
    cols: u32,
    cut: Cut,
    count: Launch,
    scan: Launch,
    to_buckets: Launch,
    /// The launch that sorts buckets in shared memory.
    sort: Option<Launch>,
    /// Chunks x digits.
    inter: DeviceBuffer<u32>,
    /// For each chunk the first bucket that it has entries of, and one after the last.
    windows: DeviceBuffer<u32>,
    /// The row of each chunk's first entry.
    chunk_rows: DeviceBuffer<u32>,
    /// The start of each bucket.
    starts: DeviceBuffer<u32>,
    ticket: DeviceBuffer<u32>,
    /// The column of each entry in its bucket.
    keys: DeviceBuffer<u16>,
    /// Buckets that several blocks sort together.
    pieces: Option<Pieces<T>>,
}

impl<T: DeviceReal> ColumnSort<T> {
    /// Plans the sort for a matrix that has entries. The extents of the columns and the sizes of
    /// the buckets determine the bucket width and the buckets that one block cannot sort alone.
    ///
    /// # Errors
    /// A block that the device does not take, more columns than two steps can sort, too little
    /// memory.
    pub(crate) fn new(
        id: &'static str,
        device: &Device,
        (rows, cols): (usize, usize),
        entries: &Entries<'_, T>,
        wish: &Wish,
    ) -> Result<Self, PlanError> {
        let length = entries.length();
        let stream = Stream::of_planning(device)?;
        let chunks = Chunks::new(device, length, wish);
        let over = |items, per_block, block, shared| {
            checked_over(id, device, items, per_block, block, shared)
        };
        let mut extents = DeviceBuffer::<u32>::uninitialized(device, 2 * chunks.count)?;
        let extent = BucketExtent {
            entries: length as u32,
            chunk: chunks.chunk as u32,
            columns: entries.columns().ptr(),
            extents: extents.ptr_mut(),
        };
        let launch = over(chunks.count, 1, COUNT_BLOCK, bucket_count_bytes(0))?;
        // SAFETY: `length` columns, two words for each chunk.
        unsafe { device.launch::<BucketExtent>(launch, &stream, extent)? };
        let extents: Vec<[u32; 2]> = extents.to_vec()?.chunks(2).map(|p| [p[0], p[1]]).collect();
        let cut = Cut::new(id, device, cols, length, chunks, &extents, wish)?;
        let counted = |cut: &Cut| -> Result<_, PlanError> {
            let mut sort = Self::with_cut(id, device, (rows, cols), length, cut.clone())?;
            sort.enqueue_counts(entries, &stream)?;
            let starts = sort.starts.to_vec()?;
            Ok((sort, starts))
        };
        let (mut sort, mut starts) = counted(&cut)?;
        let pattern = entries.is_pattern();
        if !wish.sort_buckets {
            let all = Pieces::new(id, device, &cut, length, pattern, &starts, |_| true)?;
            sort.pieces = Some(all);
            return Ok(sort);
        }
        let most = bucket_sort_entries(cut.block as u32);
        let is_large = |entries: u32| entries > most;
        let share = |starts: &[u32]| {
            let entries = starts.windows(2).map(|pair| pair[1] - pair[0]);
            entries.filter(|&n| is_large(n)).map(f64::from).sum::<f64>() / length as f64
        };
        let mut tried = vec![(share(&starts), sort.cut.clone())];
        while tried[tried.len() - 1].0 > 0.0
            && tried.len() <= NARROWINGS
            && let Some(narrower) = sort.cut.narrower(&extents, wish)
        {
            (sort, starts) = counted(&narrower)?;
            tried.push((share(&starts), narrower));
        }
        let least = tried.iter().map(|&(share, _)| share).fold(1.0, f64::min);
        let enough = if least == 0.0 { 0.0 } else { LARGE_SHARE.max(NEAR_LEAST * least) };
        let (large, cut) =
            tried.into_iter().find(|&(share, _)| share <= enough).expect("the least share");
        if cut != sort.cut {
            (sort, starts) = counted(&cut)?;
        }
        let (buckets, block) = (sort.cut.buckets, sort.cut.block);
        let shared = bucket_sort_bytes(sort.cut.width, block as u32);
        sort.sort = Some(over(buckets, 1, block, shared)?);
        if large > 0.0 {
            let some = Pieces::new(id, device, &sort.cut, length, pattern, &starts, is_large)?;
            sort.pieces = Some(some);
        }
        Ok(sort)
    }

    fn with_cut(
        id: &'static str,
        device: &Device,
        (rows, cols): (usize, usize),
        length: usize,
        cut: Cut,
    ) -> Result<Self, PlanError> {
        let (chunks, digits) = (cut.chunks.count, cut.digits as u32);
        let over = |items, block, shared| checked_over(id, device, items, 1, block, shared);
        let strips = cut.buckets.div_ceil(WARP);
        let searches = if rows == 0 { 0 } else { chunks.div_ceil(SCAN_WARPS as usize) };
        let uninitialized = |length| DeviceBuffer::uninitialized(device, length);
        Ok(Self {
            cols: cols as u32,
            count: over(chunks, COUNT_BLOCK, bucket_count_bytes(digits))?,
            scan: over(strips + searches, SCAN_WARPS as usize * WARP, bucket_scan_bytes())?,
            to_buckets: over(chunks, cut.block, bucket_move_bytes(digits, cut.block as u32))?,
            sort: None,
            inter: uninitialized(chunks * cut.digits)?,
            windows: uninitialized(2 * chunks)?,
            chunk_rows: uninitialized(chunks)?,
            starts: uninitialized(cut.buckets + 1)?,
            ticket: DeviceBuffer::zeroed(device, 1)?,
            keys: DeviceBuffer::uninitialized(device, length)?,
            pieces: None,
            cut,
        })
    }

    /// The division into chunks and buckets.
    pub(crate) fn cut(&self) -> &Cut {
        &self.cut
    }

    /// Bytes of device memory.
    pub(crate) fn workspace_bytes(&self) -> u64 {
        let words =
            [&self.inter, &self.windows, &self.chunk_rows, &self.starts].map(DeviceBuffer::bytes);
        let pieces = self.pieces.as_ref().map_or(0, Pieces::workspace_bytes);
        (words.iter().sum::<usize>() + self.keys.bytes()) as u64 + pieces
    }

    /// Counts and scans: fills `inter`, `windows`, `chunk_rows` and `starts`.
    fn enqueue_counts(
        &mut self,
        entries: &Entries<'_, T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let (device, cut) = (stream.device(), &self.cut);
        let (length, chunk) = (entries.length() as u32, cut.chunks.chunk as u32);
        let count = BucketCount {
            entries: length,
            chunk,
            digits: cut.digits as u32,
            mask: cut.mask,
            width: cut.width,
            inverse: cut.inverse(),
            columns: entries.columns().ptr(),
            inter: self.inter.ptr_mut(),
            windows: self.windows.ptr_mut(),
        };
        // Triplets have their rows, and nobody looks for them.
        let (rows, row_ptr) = match entries {
            Entries::Csr { row_ptr, .. } => (row_ptr.len() as u32 - 1, row_ptr.ptr()),
            Entries::Triplets { columns, .. } => (0, columns.ptr()),
        };
        let scan = BucketScan {
            chunks: cut.chunks.count as u32,
            buckets: cut.buckets as u32,
            digits: cut.digits as u32,
            mask: cut.mask,
            windows: self.windows.ptr(),
            inter: self.inter.ptr_mut(),
            starts: self.starts.ptr_mut(),
            ticket: self.ticket.ptr_mut(),
            rows,
            chunk,
            row_ptr,
            chunk_rows: self.chunk_rows.ptr_mut(),
        };
        // SAFETY: the arrays have the sizes of the cut; columns are below the number of columns, and
        // the windows of the chunks, for which there are digits, are those of these columns.
        unsafe {
            device.launch::<BucketCount>(self.count, stream, count)?;
            device.launch::<BucketScan>(self.scan, stream, scan)
        }
    }

    /// Enqueues the sort in the stream. The output is the rows (and values) of the entries of each
    /// column in their order, and the column pointers. The entries must be those of the plan, or
    /// have the same columns.
    pub(crate) fn enqueue(
        &mut self,
        entries: &Entries<'_, T>,
        output: &mut DeviceCsc<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.enqueue_counts(entries, stream)?;
        let (moved_rows, moved_values) = match &mut self.pieces {
            Some(pieces) => pieces.moved(),
            // Sorted where they lie.
            None => (output.row_ind.ptr_mut(), output.values.ptr_mut()),
        };
        self.enqueue_move(entries, (moved_rows, moved_values), stream)?;
        let (device, cols, width) = (stream.device(), self.cols, self.cut.width);
        let (starts, keys) = (self.starts.ptr(), self.keys.ptr());
        if let Some(launch) = self.sort {
            let (col_ptr, row_ind) = (output.col_ptr.ptr_mut(), output.row_ind.ptr_mut());
            // SAFETY: buckets as `enqueue_move` filled them; those that are sorted in place fit.
            unsafe {
                if entries.is_pattern() {
                    let args = BucketSortPattern {
                        cols,
                        width,
                        starts,
                        keys,
                        moved_rows,
                        col_ptr,
                        row_ind,
                    };
                    device.launch::<BucketSortPattern>(launch, stream, args)?;
                } else {
                    let args = BucketSort {
                        cols,
                        width,
                        starts,
                        keys,
                        moved_rows,
                        moved_values,
                        col_ptr,
                        row_ind,
                        values: output.values.ptr_mut(),
                    };
                    device.launch::<BucketSort<T>>(launch, stream, args)?;
                }
            }
        }
        match &mut self.pieces {
            Some(pieces) => {
                pieces.enqueue((cols, width), (&self.starts, &self.keys), output, stream)
            }
            None => Ok(()),
        }
    }

    fn enqueue_move(
        &mut self,
        entries: &Entries<'_, T>,
        (moved_rows, moved_values): Moved<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let (device, launch, cut) = (stream.device(), self.to_buckets, &self.cut);
        let (chunk, items) = (cut.chunks.chunk as u32, cut.chunks.items as u32);
        let (digits, mask) = (cut.digits as u32, cut.mask);
        let (width, inverse) = (cut.width, cut.inverse());
        let (inter, windows, starts) = (self.inter.ptr(), self.windows.ptr(), self.starts.ptr());
        let (chunk_rows, keys) = (self.chunk_rows.ptr(), self.keys.ptr_mut());
        let length = entries.length() as u32;
        macro_rules! launch {
            ($kernel:ident $(<$t:ident>)? { $($field:ident: $value:expr),* $(,)? }) => {{
                let args = $kernel {
                    entries: length,
                    chunk,
                    items,
                    digits,
                    mask,
                    width,
                    inverse,
                    inter,
                    windows,
                    starts,
                    keys,
                    moved_rows,
                    $($field: $value),*
                };
                // SAFETY: the counts of these entries, arrays of the sizes of the cut, room for
                // every entry at the target.
                unsafe { device.launch::<$kernel$(<$t>)?>(launch, stream, args) }
            }};
        }
        match entries {
            Entries::Csr { row_ptr, columns, values: Some(values) } => launch!(BucketMove<T> {
                rows: row_ptr.len() as u32 - 1,
                row_ptr: row_ptr.ptr(),
                columns: columns.ptr(),
                values: values.ptr(),
                chunk_rows: chunk_rows,
                moved_values: moved_values,
            }),
            Entries::Csr { row_ptr, columns, values: None } => launch!(BucketMovePattern {
                rows: row_ptr.len() as u32 - 1,
                row_ptr: row_ptr.ptr(),
                columns: columns.ptr(),
                chunk_rows: chunk_rows,
            }),
            Entries::Triplets { rows, columns, values } => launch!(BucketMoveTriplets<T> {
                rows: rows.ptr(),
                columns: columns.ptr(),
                values: values.ptr(),
                moved_values: moved_values,
            }),
        }
    }
}
