//! Plan of `gpu-kernels/src/spmm/sell_row_split.rs`.

use spm_formats::Layout;
use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmm::{SellRowSplit1, SellRowSplit2, SellRowSplit4};

use super::KERNEL;
use super::columns::{COLUMNS, ColumnShape, SMALL_BLOCK, TILE};
use super::parameters::SIGMA;
use super::rearrange::{OrderedX, strides};
use crate::matrix::DeviceMatrix;
use crate::plan::DeviceScalar;
use crate::problem::{DeviceProblem, Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell-row-split",
    source: "own; Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014",
    summary: "SELL-32-sigma, threads across the columns of X in vector loads; X row-major, rearranged in the run if it is not",
    parameters: &[SMALL_BLOCK, COLUMNS, SIGMA, TILE],
    ..KERNEL
};

pub(super) fn on_device<T: DeviceScalar>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, dense, parameters, budget, .. } = problem;
    let shape = ColumnShape::new(INFO.id, dense.k, parameters)?;
    let launch = shape.launch(&problem, a.csr.rows(), shape.lanes)?;
    let a = a.sell(parameters.count(SIGMA.name), budget)?;
    let (rows, cols) = a.shape();
    let mut ordered = OrderedX::new(device, cols, dense, Layout::RowMajor)?;
    let workspace = ordered.bytes();
    Ok(problem.product_with_scratch(a, workspace, move |a, x, y, stream| {
        let x = ordered.enqueue(x, stream)?;
        macro_rules! launch {
            ($kernel:ident) => {{
                let args = $kernel {
                    rows: a.rows(),
                    k: dense.k as u32,
                    lanes: shape.lanes as u32,
                    sorted: u32::from(a.permutation.is_some()),
                    chunk_starts: a.chunk_starts.ptr(),
                    permutation: a.permutation.as_ref().unwrap_or(&a.row_lengths).ptr(),
                    row_lengths: a.row_lengths.ptr(),
                    col_indices: a.col_indices.ptr(),
                    values: a.values.ptr(),
                    x,
                    y: y.ptr_mut(),
                    y_strides: strides(rows, dense),
                };
                // SAFETY: a SELL-32 matrix made from verified CSR arrays, X row-major and Y of its
                // shape and k > 0 columns, even for more than one column per thread.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        match shape.columns {
            1 => launch!(SellRowSplit1),
            2 => launch!(SellRowSplit2),
            _ => launch!(SellRowSplit4),
        }
    }))
}
