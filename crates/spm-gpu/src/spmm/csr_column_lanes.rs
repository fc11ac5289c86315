//! Plan of `gpu-kernels/src/spmm/csr_column_lanes.rs`.

use spm_formats::kernel::{
    Backend, KernelInfo, Operation, ParameterSpec, Parameters, PlanError, Value,
};
use spm_formats::{CsrArrays, CsrView, DenseShape, Layout};
use spm_gpu_kernels::spmm::{
    CsrColumnLanes1, CsrColumnLanes2, CsrColumnLanes4, SPLIT_SUM_BLOCK, SplitSum, split_sum_bytes,
};

use super::parameters::{BLOCK, WARP, whole_warps};
use super::rearrange::{OrderedX, strides};
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, PlanOptions};
use crate::stream::Stream;

const COLUMNS: ParameterSpec = ParameterSpec {
    name: "columns",
    meaning: "columns of X for a thread; more than one take an even k",
    default: Value::Choice("auto"),
    studied: &[Value::Choice("auto"), Value::Choice("1"), Value::Choice("2"), Value::Choice("4")],
};

const ENTRY_LANES: ParameterSpec = ParameterSpec {
    name: "entry-lanes",
    meaning: "threads that share the entries of a row; as many as fit a warp beside the columns",
    default: Value::Choice("auto"),
    studied: &[
        Value::Choice("auto"),
        Value::Choice("1"),
        Value::Choice("2"),
        Value::Choice("4"),
        Value::Choice("8"),
    ],
};

const SPLIT: ParameterSpec = ParameterSpec {
    name: "split",
    meaning: "entries beyond which a row is cut into parts of that size",
    default: Value::Count(512),
    studied: &[Value::Count(256), Value::Count(512), Value::Count(1024)],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-column-lanes",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "own",
    summary: "CSR, threads across the columns of X in vector loads and across the entries, long rows cut; X row-major, rearranged in the run if it is not",
    parameters: &[
        ParameterSpec { default: Value::Count(256), ..BLOCK },
        COLUMNS,
        ENTRY_LANES,
        SPLIT,
    ],
};

/// How the threads of a warp share rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    /// Columns of a thread: 1, 2 or 4.
    columns: usize,
    column_lanes: usize,
    entry_lanes: usize,
}

impl Shape {
    fn new<T: DeviceScalar>(
        a: &CsrArrays<'_, T>,
        dense: DenseShape,
        parameters: &Parameters,
    ) -> Result<Self, PlanError> {
        let k = dense.k.max(1);
        let columns = match parameters.choice(COLUMNS.name).parse() {
            Ok(columns) => columns,
            Err(_) if !k.is_multiple_of(2) => 1,
            // Four columns halve the loads of entries; too few lanes then share a line of X.
            Err(_) if k >= 32 => 4,
            Err(_) => 2,
        };
        if columns > 1 && !k.is_multiple_of(2) {
            let reason = format!("columns={columns} takes an even k; found {k}");
            return Err(PlanError::Unsupported { kernel: INFO.id, reason });
        }
        let column_lanes = k.div_ceil(columns).next_power_of_two().min(WARP);
        let entry_lanes = parameters.choice(ENTRY_LANES.name).parse().unwrap_or_else(|_| {
            let filled = a.pointers().windows(2).filter(|pair| pair[0] < pair[1]).count();
            let mean = a.entries() / filled.max(1);
            // Each lane two quads or more, before the lanes of a row are folded.
            (mean / 8).max(1).next_power_of_two().min(8)
        });
        Ok(Self { columns, column_lanes, entry_lanes: entry_lanes.min(WARP / column_lanes) })
    }

    /// Threads of a row.
    fn lanes(self) -> usize {
        self.column_lanes * self.entry_lanes
    }
}

/// The rows that are cut, and their parts.
struct Split<T> {
    chunks: u32,
    /// First entry and end of each chunk.
    chunk_bounds: DeviceBuffer<u32>,
    rows: DeviceBuffer<u32>,
    /// First chunk of each of these rows, and the number of chunks.
    row_chunks: DeviceBuffer<u32>,
    /// k sums for each chunk.
    partial: DeviceBuffer<T>,
}

impl<T: DeviceScalar> Split<T> {
    fn new(
        device: &Device,
        a: &CsrArrays<'_, T>,
        k: usize,
        longest: usize,
    ) -> Result<Self, GpuError> {
        let (mut bounds, mut rows, mut row_chunks) = (Vec::new(), Vec::new(), vec![0]);
        for (row, pair) in a.pointers().windows(2).enumerate() {
            let (start, end) = (pair[0] as usize, pair[1] as usize);
            if end - start > longest {
                for first in (start..end).step_by(longest) {
                    bounds.extend([first as u32, (first + longest).min(end) as u32]);
                }
                rows.push(row as u32);
                row_chunks.push((bounds.len() / 2) as u32);
            }
        }
        let chunks = bounds.len() / 2;
        Ok(Self {
            chunks: chunks as u32,
            chunk_bounds: DeviceBuffer::from_slice(device, &bounds)?,
            rows: DeviceBuffer::from_slice(device, &rows)?,
            row_chunks: DeviceBuffer::from_slice(device, &row_chunks)?,
            partial: DeviceBuffer::uninitialized(device, chunks * k)?,
        })
    }

    fn bytes(&self) -> u64 {
        let indices = self.chunk_bounds.bytes() + self.rows.bytes() + self.row_chunks.bytes();
        (indices + self.partial.bytes()) as u64
    }

    /// Puts the sums over the chunks into the stream.
    fn enqueue_sums(
        &self,
        dense: DenseShape,
        rows: usize,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let tiles = dense.k.div_ceil(SPLIT_SUM_BLOCK.0 as usize) as u32;
        let launch = Launch::new((self.rows.len() as u32, tiles), SPLIT_SUM_BLOCK)
            .with_shared_bytes(split_sum_bytes::<T>());
        let args = SplitSum {
            k: dense.k as u32,
            split_rows: self.rows.ptr(),
            row_chunks: self.row_chunks.ptr(),
            partial: self.partial.ptr(),
            y: y.ptr_mut(),
            y_strides: strides(rows, dense),
        };
        // SAFETY: the rows lie in Y, the chunks in the workspace.
        unsafe { stream.device().launch::<SplitSum<T>>(launch, stream, args) }
    }
}

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: &CsrView<'_, T>,
    dense: DenseShape,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let a = CsrArrays::new(a)?;
    let block = whole_warps(INFO.id, parameters)?;
    let shape = Shape::new(&a, dense, parameters)?;
    let longest = parameters.count(SPLIT.name).min(u32::MAX as usize);
    let mut split = Split::new(device, &a, dense.k, longest)?;
    let groups = split.chunks as usize + a.rows();
    let launch = Launch::over(INFO.id, device, groups, block / shape.lanes(), block)?;
    let tiles = dense.k.div_ceil(shape.column_lanes * shape.columns).max(1);
    let grid = (launch.grid.x, u32::try_from(tiles).unwrap_or(u32::MAX)).into();
    let launch = Launch { grid, ..launch };
    launch.check(INFO.id, &device.info().limits)?;
    let a = DeviceCsr::new(device, &a)?;
    let mut ordered = OrderedX::new(device, a.cols(), dense, Layout::RowMajor)?;
    let workspace = ordered.bytes() + split.bytes();
    Ok(product(device, dense, a, workspace, move |a, x, y, stream| {
        let x = ordered.enqueue(x, stream)?;
        macro_rules! launch {
            ($kernel:ident) => {{
                let args = $kernel {
                    rows: a.rows() as u32,
                    k: dense.k as u32,
                    column_lanes: shape.column_lanes as u32,
                    entry_lanes: shape.entry_lanes as u32,
                    split: longest as u32,
                    chunks: split.chunks,
                    chunk_bounds: split.chunk_bounds.ptr(),
                    partial: split.partial.ptr_mut(),
                    pointers: a.pointers.ptr(),
                    col_indices: a.col_indices.ptr(),
                    values: a.values.ptr(),
                    x,
                    y: y.ptr_mut(),
                    y_strides: strides(a.rows(), dense),
                };
                // SAFETY: verified CSR arrays, X row-major and Y of their shape and k > 0 columns,
                // even for more than one column per thread; chunks of the matrix with room for k
                // sums each.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args)? }
            }};
        }
        match shape.columns {
            1 => launch!(CsrColumnLanes1),
            2 => launch!(CsrColumnLanes2),
            _ => launch!(CsrColumnLanes4),
        }
        split.enqueue_sums(dense, a.rows(), y, stream)
    }))
}

#[cfg(test)]
mod tests {
    use spm_formats::Csr;

    use super::*;

    fn shape(k: usize, length: usize, parameters: &str) -> Result<Shape, PlanError> {
        let columns = (0..length as u32).collect();
        let a = Csr::new((1, length), vec![0, length as u32], columns, vec![1.0; length]);
        let parameters = INFO.parse_parameters(parameters).unwrap();
        let dense = DenseShape { k, layout: Layout::RowMajor };
        Shape::new(&CsrArrays::new(&a.view()).unwrap(), dense, &parameters)
    }

    #[test]
    fn a_group_fits_a_warp_and_covers_the_columns() {
        for k in [1, 2, 3, 4, 8, 32, 33, 64, 1024] {
            for length in [1, 5, 27, 300] {
                let shape = shape(k, length, "").unwrap();
                assert!(shape.lanes() <= WARP, "{shape:?}");
                assert!(shape.column_lanes * shape.columns >= k.min(WARP), "{shape:?}");
            }
        }
    }

    #[test]
    fn pairs_of_an_odd_k_are_refused() {
        let error = shape(3, 5, "columns=2").unwrap_err().to_string();
        assert!(error.contains("even k; found 3"), "{error}");
    }
}
