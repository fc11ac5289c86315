//! Conversion of CSR to the nonzero split of `csr-segmented-sum`
//! (`gpu-kernels/src/convert/segments.rs`).

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{
    SegmentEntries, SegmentEntriesSingle, SegmentFlags, SegmentHeaders, SegmentRanks,
    SegmentRowMarks, SegmentRows, SegmentValues,
};
use spm_gpu_kernels::device::{DevicePtr, DevicePtrMut};
use spm_gpu_kernels::scale::ScaleEmptyRows;
use spm_gpu_kernels::spmv::SEGMENT_THREADS;

use super::{
    BLOCK, COMPRESSED, DeviceReducedValues, NEW_VALUES, RowStats, ValueKind, scan, threads,
};
use crate::error::GpuError;
use crate::launch::{Launch, WARP};
use crate::matrix::{DeviceCsr, DeviceMatrix};
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::{DeviceReal, DeviceScalar};
use crate::product::Target;
use crate::stream::Stream;

/// The arrays of `csr-segmented-sum`.
#[derive(Debug)]
pub(crate) struct DeviceSegments<T> {
    pub(crate) shape: (usize, usize),
    entries: usize,
    /// log2 of the entries of a thread.
    log_entries: u32,
    /// The rows that have entries, if some rows have none.
    pub(crate) row_ids: Option<DeviceBuffer<u32>>,
    /// The row pointers of the CSR matrix.
    pub(crate) row_ptr: DeviceBuffer<u32>,
    /// One for each block, and one more.
    pub(crate) headers: DeviceBuffer<[u32; 4]>,
    pub(crate) warp_ranks: DeviceBuffer<u32>,
    pub(crate) flags: DeviceBuffer<u32>,
    pub(crate) col_ind: DeviceBuffer<u32>,
    pub(crate) values: DeviceReducedValues<T>,
}

impl<T: DeviceScalar> DeviceSegments<T> {
    /// Enqueues Y = beta Z, for a column-major Y of `k` columns, in the rows that no block stores: those
    /// without entries, or all of them where nothing is added.
    pub(crate) fn scale_empty_rows(
        &self,
        k: usize,
        y: &mut Target<'_, T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        if let Some(y) = y.overwritten() {
            return y.enqueue_zero(stream);
        }
        let (rows, k) = (self.shape.0 as u32, k as u32);
        let launch = Launch::new(rows.div_ceil(BLOCK as u32), BLOCK as u32);
        let args = ScaleEmptyRows { rows, k, row_ptr: self.row_ptr.ptr(), y: y.output() };
        // SAFETY: row pointers of a verified matrix, k columns of that many rows.
        unsafe { stream.device().launch::<ScaleEmptyRows<T>>(launch, stream, args) }
    }

    /// Converts a matrix that has entries; each thread gets `entries` (a power of two) entries.
    pub(crate) fn new(
        a: &DeviceCsr<T>,
        stats: RowStats,
        entries: usize,
    ) -> Result<Self, PlanError> {
        Self::converted(a, stats, entries, |entries| entries.full(a, true))
    }

    /// The same with another storage of the values.
    pub(crate) fn with_values(
        a: &DeviceCsr<T>,
        stats: RowStats,
        entries: usize,
        values: ValueKind<T>,
    ) -> Result<Self, PlanError>
    where
        T: DeviceReal,
    {
        Self::converted(a, stats, entries, |entries| match values {
            ValueKind::Stored => entries.full(a, true),
            ValueKind::Single => entries.single(a),
            ValueKind::Equal(value) => {
                entries.full(a, false)?;
                Ok(DeviceReducedValues::Equal(value))
            }
        })
    }

    /// `convert` writes the columns, and returns the values.
    fn converted(
        a: &DeviceCsr<T>,
        stats: RowStats,
        entries: usize,
        convert: impl FnOnce(Elements<'_>) -> Result<DeviceReducedValues<T>, PlanError>,
    ) -> Result<Self, PlanError> {
        let device = a.device();
        let stream = Stream::of_planning(device)?;
        let piece = SEGMENT_THREADS as usize * entries;
        let mean_row = a.entries() / (a.rows() - stats.empty_rows).max(1);
        let slack = slack(piece, stats.longest_row, mean_row);
        let step = piece - slack;
        let blocks = blocks(a.entries(), step, piece)?;
        let elements = blocks * piece;
        let (rows, row_ptr) = (a.rows() as u32, a.row_ptr.ptr());
        let row_ids =
            if stats.empty_rows == 0 { None } else { Some(filled_rows(a, stats, &stream)?) };
        let listed = u32::from(row_ids.is_some());
        let ids = row_ids.as_ref().unwrap_or(&a.row_ptr).ptr();
        let count = rows - stats.empty_rows as u32;
        let log_entries = entries.trailing_zeros();

        let pieces = elements / (WARP * entries);
        let mut headers = DeviceBuffer::uninitialized(device, blocks + 1)?;
        let args = SegmentHeaders {
            blocks: blocks as u32,
            log_entries,
            step: step as u32,
            slack: slack as u32,
            entries: a.entries() as u32,
            count,
            listed,
            row_ids: ids,
            row_ptr,
            headers: headers.ptr_mut(),
        };
        // SAFETY: verified CSR arrays, arrays of the sizes that the kernels say.
        unsafe { device.launch::<SegmentHeaders>(threads(device, blocks + 1)?, &stream, args)? };
        let mut warp_ranks = DeviceBuffer::uninitialized(device, pieces)?;
        let args = SegmentRanks {
            blocks: blocks as u32,
            warp_entries: (WARP * entries) as u32,
            count,
            listed,
            row_ids: ids,
            row_ptr,
            headers: headers.ptr(),
            warp_ranks: warp_ranks.ptr_mut(),
        };
        // SAFETY: as above.
        unsafe { device.launch::<SegmentRanks>(threads(device, pieces)?, &stream, args)? };
        let mut flags = DeviceBuffer::uninitialized(device, elements / entries / 2)?;
        flags.enqueue_zero(&stream)?;
        let args = SegmentFlags {
            count,
            log_entries,
            step: step as u32,
            listed,
            row_ids: ids,
            row_ptr,
            headers: headers.ptr(),
            flags: flags.ptr_mut(),
        };
        // SAFETY: as above.
        unsafe { device.launch::<SegmentFlags>(threads(device, count as usize)?, &stream, args)? };

        let mut col_ind = DeviceBuffer::uninitialized(device, elements)?;
        let values = convert(Elements {
            elements,
            log_entries,
            headers: headers.ptr(),
            to_columns: col_ind.ptr_mut(),
            stream: &stream,
        })?;
        let mut kept = DeviceBuffer::uninitialized(device, a.rows() + 1)?;
        kept.copy_from_on(&a.row_ptr, &stream)?;
        stream.synchronize()?;
        let shape = (a.rows(), a.cols());
        let (entries, row_ptr) = (a.entries(), kept);
        Ok(Self {
            shape,
            entries,
            log_entries,
            row_ids,
            row_ptr,
            headers,
            warp_ranks,
            flags,
            col_ind,
            values,
        })
    }
}

/// The stored elements of a matrix that is converted: where they come from, and where they go.
struct Elements<'a> {
    elements: usize,
    log_entries: u32,
    headers: DevicePtr<[u32; 4]>,
    to_columns: DevicePtrMut<u32>,
    stream: &'a Stream,
}

impl Elements<'_> {
    /// Values at full width; none with `stored` off.
    fn full<T: DeviceScalar>(
        self,
        a: &DeviceCsr<T>,
        stored: bool,
    ) -> Result<DeviceReducedValues<T>, PlanError> {
        let device = a.device();
        let mut full = DeviceBuffer::uninitialized(device, if stored { self.elements } else { 0 })?;
        let args = SegmentEntries {
            elements: self.elements as u32,
            log_entries: self.log_entries,
            with_values: stored.into(),
            headers: self.headers,
            col_ind: a.col_ind.ptr(),
            values: a.values.ptr(),
            to_columns: self.to_columns,
            to_values: full.ptr_mut(),
        };
        let launch = threads(device, self.elements)?;
        // SAFETY: verified CSR arrays, arrays of the sizes that the kernel says.
        unsafe { device.launch::<SegmentEntries<T>>(launch, self.stream, args)? };
        Ok(DeviceReducedValues::Stored(full))
    }

    /// Values in single precision.
    fn single<T: DeviceReal>(self, a: &DeviceCsr<T>) -> Result<DeviceReducedValues<T>, PlanError> {
        let device = a.device();
        let mut single = DeviceBuffer::uninitialized(device, self.elements)?;
        let args = SegmentEntriesSingle {
            elements: self.elements as u32,
            log_entries: self.log_entries,
            headers: self.headers,
            col_ind: a.col_ind.ptr(),
            values: a.values.ptr(),
            to_columns: self.to_columns,
            to_values: single.ptr_mut(),
        };
        let launch = threads(device, self.elements)?;
        // SAFETY: as in `full`.
        unsafe { device.launch::<SegmentEntriesSingle<T>>(launch, self.stream, args)? };
        Ok(DeviceReducedValues::Single(single))
    }
}

/// How many entries before its regular position a block of `piece` entries may begin, in order to
/// begin with a row; the same number of elements is then free at its end. None where nearly every block
/// begins inside of a row all the same.
fn slack(piece: usize, longest_row: usize, mean_row: usize) -> usize {
    let most = piece / 32;
    if mean_row < most { longest_row.min(most) } else { 0 }
}

/// Number of blocks that begin `step` entries apart. Refuses more than 2^31 stored elements,
/// `piece` for each block.
fn blocks(entries: usize, step: usize, piece: usize) -> Result<usize, PlanError> {
    let blocks = entries.div_ceil(step);
    let elements = blocks * piece;
    if elements < 1 << 31 {
        return Ok(blocks);
    }
    let reason = format!("{elements} stored elements are more than it can count");
    Err(PlanError::Unsupported { kernel: super::ID, reason })
}

/// The rows that have entries.
fn filled_rows<T: DeviceScalar>(
    a: &DeviceCsr<T>,
    stats: RowStats,
    stream: &Stream,
) -> Result<DeviceBuffer<u32>, PlanError> {
    let device = a.device();
    let (rows, row_ptr) = (a.rows() as u32, a.row_ptr.ptr());
    let mut ranks = DeviceBuffer::uninitialized(device, a.rows())?;
    let launch = threads(device, a.rows())?;
    let args = SegmentRowMarks { rows, row_ptr, marks: ranks.ptr_mut() };
    // SAFETY: rows + 1 pointers, a mark for each row.
    unsafe { device.launch::<SegmentRowMarks>(launch, stream, args)? };
    scan(&mut ranks, stream)?;
    let mut row_ids = DeviceBuffer::uninitialized(device, a.rows() - stats.empty_rows)?;
    let args = SegmentRows { rows, row_ptr, ranks: ranks.ptr(), row_ids: row_ids.ptr_mut() };
    // SAFETY: as many as were counted.
    unsafe { device.launch::<SegmentRows>(launch, stream, args)? };
    Ok(row_ids)
}

impl<T: DeviceScalar> DeviceMatrix for DeviceSegments<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn bytes(&self) -> u64 {
        let rows = self.row_ids.as_ref().map_or(0, DeviceBuffer::bytes);
        let places = self.headers.bytes() + self.warp_ranks.bytes() + self.flags.bytes();
        (rows + places + self.col_ind.bytes() + self.values.bytes()) as u64
    }

    fn rarely_read_bytes(&self) -> u64 {
        self.row_ptr.bytes() as u64
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        let device = stream.device();
        check_operand(NEW_VALUES, device, values, self.entries)?;
        let DeviceReducedValues::Stored(stored) = &mut self.values else { return Err(COMPRESSED) };
        let args = SegmentValues {
            elements: stored.len() as u32,
            log_entries: self.log_entries,
            headers: self.headers.ptr(),
            values: values.ptr(),
            to_values: stored.ptr_mut(),
        };
        let launch = Launch::new(stored.len().div_ceil(BLOCK) as u32, BLOCK as u32);
        // SAFETY: the headers say which entries the stored elements have.
        unsafe { device.launch::<SegmentValues<T>>(launch, stream, args) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_beyond_31_bits_are_refused() {
        assert_eq!(blocks((1 << 31) - 2048, 2048, 2048), Ok((1 << 20) - 1));
        assert!(blocks((1 << 31) - 2047, 2048, 2048).is_err());
        // A slack costs as many stored elements again.
        assert!(blocks((1 << 31) - 2048, 2048 - slack(2048, 100, 10), 2048).is_err());
    }
}
