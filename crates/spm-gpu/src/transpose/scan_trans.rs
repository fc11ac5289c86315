//! Plan of `gpu-kernels/src/transpose/scan_trans.rs`.

use spm_formats::kernel::{
    Backend, KernelInfo, Operation, ParameterSpec, Parameters, PlanError, Value,
};
use spm_formats::{CsrArrays, CsrView};
use spm_gpu_kernels::transpose::{
    ITEMS, SEGMENT, ScanTransCount, ScanTransToColumns, ScanTransToRanges, VerticalScanRows,
    scan_trans_count_bytes, scan_trans_to_columns_bytes, scan_trans_to_ranges_bytes,
    vertical_scan_rows_bytes,
};

use super::parameters::{BLOCK, block, checked_over};
use super::{BoxedPlan, Procedure, boxed};
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceCsc, DeviceScalar, PlanOptions};
use crate::stream::Stream;

const RANGES: ParameterSpec = ParameterSpec {
    name: "ranges",
    meaning: "ranges of columns, at most; 0 takes one for 2048 entries, up to 4096",
    default: Value::Count(0),
    studied: &[Value::Count(0), Value::Count(512), Value::Count(1024), Value::Count(2048)],
};

const CHUNKS: ParameterSpec = ParameterSpec {
    name: "chunks",
    meaning: "parts of the entries, at most; 0 takes 8 for each multiprocessor",
    default: Value::Count(0),
    studied: &[Value::Count(0), Value::Count(264), Value::Count(528), Value::Count(2112)],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "scan-trans",
    operation: Operation::Transpose,
    backend: Backend::Gpu,
    source: "R3 III-C; Wang, Liu, Hou, Feng, ICS 2016, algorithm 1",
    summary: "counts of chunks by column range, scanned; then each range by column",
    parameters: &[BLOCK, RANGES, CHUNKS],
};

/// Entries for each range that is asked for.
const RANGE_ENTRIES: usize = 2048;
/// Ranges that are taken unless more are needed or asked for.
const MOST_RANGES: usize = 4096;
/// Columns of a range, as a power of two: the counters of a block must fit in its shared memory.
const WIDEST: u32 = 13;

/// How the columns are cut into ranges and the entries into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Columns of a range: 2^shift.
    shift: u32,
    ranges: usize,
    /// Entries of a chunk.
    chunk: usize,
    chunks: usize,
}

impl Cut {
    fn new(cols: usize, entries: usize, ranges: usize, chunks: usize, block: usize) -> Self {
        let shift = cols.div_ceil(ranges.max(1)).next_power_of_two().ilog2().min(WIDEST);
        let tile = block * ITEMS;
        let chunk = entries.div_ceil(chunks.max(1)).next_multiple_of(tile);
        Self {
            shift,
            ranges: cols.div_ceil(1 << shift).max(1),
            chunk,
            chunks: entries.div_ceil(chunk),
        }
    }
}

struct ScanTrans<T> {
    a: DeviceCsr<T>,
    cut: Cut,
    count: Launch,
    scan: Launch,
    to_ranges: Launch,
    to_columns: Launch,
    /// ranges x chunks.
    inter: DeviceBuffer<u32>,
    totals: DeviceBuffer<u32>,
    range_starts: DeviceBuffer<u32>,
    segment_rows: DeviceBuffer<u32>,
    records: DeviceBuffer<u64>,
}

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: &CsrView<'_, T>,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let a = CsrArrays::new(a)?;
    let block = block(INFO.id, parameters)?;
    let (cols, entries) = (a.cols(), a.entries());
    let or = |name, automatic| match parameters.count(name) {
        0 => automatic,
        count => count,
    };
    let ranges = or(RANGES.name, (entries / RANGE_ENTRIES).clamp(1, MOST_RANGES));
    let chunks = or(CHUNKS.name, 8 * device.info().multiprocessors as usize);
    let cut = Cut::new(cols, entries.max(1), ranges, chunks, block);
    let over = |items, shared| checked_over(INFO.id, device, items, 1, block, shared);
    let (count, threads) = (cut.ranges as u32, block as u32);
    Ok(boxed(ScanTrans {
        cut,
        count: over(cut.chunks, scan_trans_count_bytes(count))?,
        scan: over(cut.ranges, vertical_scan_rows_bytes())?,
        to_ranges: over(cut.chunks, scan_trans_to_ranges_bytes(count, threads))?,
        to_columns: over(cut.ranges, scan_trans_to_columns_bytes(1 << cut.shift, threads))?,
        inter: DeviceBuffer::uninitialized(device, cut.ranges * cut.chunks)?,
        totals: DeviceBuffer::uninitialized(device, cut.ranges)?,
        range_starts: DeviceBuffer::uninitialized(device, cut.ranges + 1)?,
        segment_rows: DeviceBuffer::uninitialized(device, entries.div_ceil(SEGMENT as usize))?,
        records: DeviceBuffer::uninitialized(device, 2 * entries)?,
        a: DeviceCsr::new(device, &a)?,
    }))
}

impl<T: DeviceScalar> Procedure<T> for ScanTrans<T> {
    fn matrix(&self) -> &DeviceCsr<T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        let words =
            [&self.inter, &self.totals, &self.range_starts, &self.segment_rows].map(|b| b.bytes());
        (words.iter().sum::<usize>() + self.records.bytes()) as u64
    }

    fn enqueue(&mut self, output: &mut DeviceCsc<T>, stream: &Stream) -> Result<(), GpuError> {
        let (device, cut) = (stream.device(), self.cut);
        let (rows, cols) = (self.a.rows() as u32, self.a.cols() as u32);
        let (entries, chunk) = (self.a.entries() as u32, cut.chunk as u32);
        let (ranges, shift) = (cut.ranges as u32, cut.shift);
        let count = ScanTransCount {
            rows,
            entries,
            chunk,
            ranges,
            shift,
            pointers: self.a.pointers.ptr(),
            col_indices: self.a.col_indices.ptr(),
            inter: self.inter.ptr_mut(),
            segment_rows: self.segment_rows.ptr_mut(),
        };
        let scan = VerticalScanRows {
            width: cut.chunks as u32,
            matrix: self.inter.ptr_mut(),
            totals: self.totals.ptr_mut(),
        };
        let to_ranges = ScanTransToRanges {
            rows,
            entries,
            chunk,
            ranges,
            shift,
            pointers: self.a.pointers.ptr(),
            col_indices: self.a.col_indices.ptr(),
            values: self.a.values.ptr(),
            inter: self.inter.ptr(),
            totals: self.totals.ptr(),
            segment_rows: self.segment_rows.ptr(),
            range_starts: self.range_starts.ptr_mut(),
            records: self.records.ptr_mut(),
        };
        let to_columns = ScanTransToColumns {
            cols,
            shift,
            range_starts: self.range_starts.ptr(),
            records: self.records.ptr(),
            column_pointers: output.pointers.ptr_mut(),
            row_indices: output.indices.ptr_mut(),
            values: output.values.ptr_mut(),
        };
        // SAFETY: verified CSR arrays, an output of the sizes of their transpose, and a workspace of
        // the sizes of the cut, as the kernels' launches describe them.
        unsafe {
            device.launch::<ScanTransCount>(self.count, stream, count)?;
            device.launch::<VerticalScanRows>(self.scan, stream, scan)?;
            device.launch::<ScanTransToRanges<T>>(self.to_ranges, stream, to_ranges)?;
            device.launch::<ScanTransToColumns<T>>(self.to_columns, stream, to_columns)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cut;

    #[test]
    fn the_cut_covers_all_columns_and_entries() {
        for cols in [1, 2, 100, 1000, 1025, 500_000, 100_000_000] {
            for (ranges, chunks) in [(1, 1), (7, 3), (1024, 1000)] {
                let cut = Cut::new(cols, 12_345, ranges, chunks, 128);
                assert!(cut.ranges << cut.shift >= cols && (cut.ranges - 1) << cut.shift < cols);
                assert!(cut.ranges <= ranges || cut.shift == super::WIDEST, "{cut:?}");
                assert!(cut.chunks * cut.chunk >= 12_345 && (cut.chunks - 1) * cut.chunk < 12_345);
            }
        }
    }
}
