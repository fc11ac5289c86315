//! Plan of `gpu-kernels/src/spmm/csr_row_split.rs`.

use spm_formats::Layout;
use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, Value};
use spm_gpu_kernels::spmm::{CsrRowSplit1, CsrRowSplit2, CsrRowSplit4};

use super::KERNEL;
use super::columns::{COLUMNS, ColumnShape, SMALL_BLOCK, TILE};
use super::long_rows::{LongRows, Parts, SPLIT, busy_threads, longest};
use super::rearrange::{Ordered, strides};
use crate::error::GpuError;
use crate::launch::{Launch, WARP};
use crate::matrix::PlanCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceReal, DeviceScalar};
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::stream::Stream;

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

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-row-split",
    source: "own",
    summary: "CSR by row split: threads across the columns of X in vector loads and across the entries, long rows split; X row-major, rearranged in the run if it is not",
    parameters: &[SMALL_BLOCK, COLUMNS, ENTRY_LANES, SPLIT, TILE],
    ..KERNEL
};

/// Of a complex matrix, with one column of X for each thread.
pub(super) const COMPLEX: KernelInfo =
    KernelInfo { parameters: &[SMALL_BLOCK, ENTRY_LANES, SPLIT, TILE], ..INFO };

/// Threads that share the entries of a row, beside `column_lanes` for its columns; `busy` threads keep the
/// device busy.
fn entry_lanes(busy: usize, rows: usize, column_lanes: usize, parameters: &Parameters) -> usize {
    let lanes: usize = parameters.choice(ENTRY_LANES.name).parse().unwrap_or_else(|_| {
        // One, while there are rows for the whole device.
        (busy / (rows * column_lanes).max(1)).max(1).next_power_of_two()
    });
    lanes.min(WARP / column_lanes)
}

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    product(problem, |columns, args, launch, stream| {
        macro_rules! launch {
            ($kernel:ident) => {{
                let args = $kernel {
                    rows: args.rows,
                    entries: args.entries,
                    k: args.k,
                    column_lanes: args.column_lanes,
                    entry_lanes: args.entry_lanes,
                    split: args.split,
                    chunks: args.chunks,
                    chunk_bounds: args.chunk_bounds,
                    partial: args.partial,
                    row_ptr: args.row_ptr,
                    col_ind: args.col_ind,
                    values: args.values,
                    x: args.x,
                    y: args.y,
                    y_strides: args.y_strides,
                };
                // SAFETY: the arguments of `product`, which are those of all three; k is even.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        match columns {
            1 => launch!(CsrRowSplit1),
            2 => launch!(CsrRowSplit2),
            _ => launch!(CsrRowSplit4),
        }
    })
}

/// The plan for [`COMPLEX`].
pub(super) fn complex<T: DeviceScalar>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    product(problem, |_, args, launch, stream| {
        // SAFETY: the arguments of `product`.
        unsafe { stream.device().launch::<CsrRowSplit1<T>>(launch, stream, args) }
    })
}

/// The plan whose kernel `enqueue` launches, given the columns for each thread and the arguments.
fn product<T: DeviceScalar>(
    problem: DeviceProblem<'_, T>,
    enqueue: impl Fn(usize, CsrRowSplit1<T>, Launch, &Stream) -> Result<(), GpuError> + Send + 'static,
) -> Planned<T> {
    let Problem { device, a, dense, parameters, .. } = problem;
    let shape = ColumnShape::new(INFO.id, dense.k, parameters)?;
    let entry_lanes = entry_lanes(busy_threads(device), a.csr.rows(), shape.lanes, parameters);
    let lanes = shape.lanes * entry_lanes;
    let longest = longest(a, lanes, parameters);
    let parts = Parts::of(a, longest)?;
    let groups = parts.bounds.len() + a.csr.rows();
    let launch = shape.launch(&problem, groups, lanes)?;
    let chunks = parts.bounds.len() as u32;
    let chunk_bounds = DeviceBuffer::from_slice(device, &parts.bounds)?;
    let mut long = LongRows::new(device, &parts, dense.k)?;
    let a = PlanCsr::new(a)?;
    let mut ordered = Ordered::new(device, a.cols(), dense, Layout::RowMajor)?;
    let workspace = ordered.bytes() + chunk_bounds.bytes() as u64 + long.bytes();
    let alignment = shape.alignment::<T>();
    Ok(problem.product_aligned(alignment, a, workspace, move |a, x, y, stream| {
        let x = ordered.load(x, stream)?;
        // Verified CSR arrays, X row-major and Y of their shape and k > 0 columns, even for more than
        // one column for each thread; chunks of the matrix with room for k sums each.
        let args = CsrRowSplit1 {
            rows: a.rows() as u32,
            entries: a.entries() as u32,
            k: dense.k as u32,
            column_lanes: shape.lanes as u32,
            entry_lanes: entry_lanes as u32,
            split: longest as u32,
            chunks,
            chunk_bounds: chunk_bounds.ptr(),
            partial: long.sums(),
            row_ptr: a.row_ptr(),
            col_ind: a.col_ind(),
            values: a.values(),
            x,
            y: y.output(),
            y_strides: strides(a.rows(), dense),
        };
        enqueue(shape.columns, args, launch, stream)?;
        long.enqueue(dense, a.rows(), y, stream)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_fits_a_warp() {
        for k in [1, 2, 3, 4, 8, 32, 33, 64, 1024] {
            let parameters = INFO.defaults();
            let shape = ColumnShape::new(INFO.id, k, &parameters).unwrap();
            let lanes = entry_lanes(1 << 17, 1, shape.lanes, &parameters);
            assert_eq!(shape.lanes * lanes, WARP, "{shape:?}");
        }
    }
}
