//! Plan of `gpu-kernels/src/spmm/bsr_row_split.rs`.

use spm_formats::Layout;
use spm_formats::convert::BLOCK_SIZES;
use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmm::{
    BsrRowSplit2x1, BsrRowSplit2x2, BsrRowSplit2x4, BsrRowSplit3x1, BsrRowSplit3x2, BsrRowSplit3x4,
    BsrRowSplit4x1, BsrRowSplit4x2, BsrRowSplit4x4, BsrRowSplit5x1, BsrRowSplit5x2, BsrRowSplit5x4,
    BsrRowSplit6x1, BsrRowSplit6x2, BsrRowSplit6x4, BsrRowSplit8x1, BsrRowSplit8x2, BsrRowSplit8x4,
};

use super::KERNEL;
use super::columns::{COLUMNS, ColumnShape, SMALL_BLOCK, TILE};
use super::rearrange::{Ordered, strides};
use crate::blocks::{SIZE, block_size, no_such_size};
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::product::Zero;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "bsr-row-split",
    source: "own; slices after Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014",
    summary: "BSR, dense square blocks, threads across the columns of X in vector loads, each for all rows of a block; X row-major, rearranged in the run if it is not",
    parameters: &[SMALL_BLOCK, SIZE, COLUMNS, TILE],
    ..KERNEL
};

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, dense, parameters, budget, .. } = problem;
    let (rows, cols) = (a.csr.rows(), a.csr.cols());
    let shape = ColumnShape::new(INFO.id, dense.k, parameters)?;
    if a.csr.entries() == 0 {
        return Ok(problem.boxed(Zero(rows, cols)));
    }
    let size = block_size(problem)?;
    if !BLOCK_SIZES.contains(&size) {
        return Err(no_such_size(problem, size));
    }
    let launch = shape.launch(&problem, rows.div_ceil(size), shape.lanes)?;
    let bsr = a.bsr_if(size, budget, |_| true)?;
    let bsr = bsr.expect("any number of stored elements is accepted");
    let mut ordered = Ordered::new(device, cols, dense, Layout::RowMajor)?;
    let workspace = ordered.bytes();
    let alignment = shape.alignment::<T>();
    Ok(problem.product_aligned(alignment, bsr, workspace, move |a, x, y, stream| {
        let x = ordered.load(x, stream)?;
        macro_rules! launch {
            ($kernel:ident) => {{
                let args = $kernel {
                    rows: rows as u32,
                    cols: cols as u32,
                    k: dense.k as u32,
                    lanes: shape.lanes as u32,
                    block_rows: a.block_rows() as u32,
                    full: a.is_full().into(),
                    order: a.order.ptr(),
                    starts: a.starts.ptr(),
                    first_cols: a.first_cols.ptr(),
                    masks: a.masks.ptr(),
                    values: a.values.ptr(),
                    x,
                    y: y.output(),
                    y_strides: strides(rows, dense),
                };
                // SAFETY: a BSR matrix made from verified CSR arrays, with an entry, one thread for each block row and
                // blocks of the size of the kernel, X row-major and Y of its shape, and k > 0 columns, even
                // where a thread of the kernel takes pairs.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        macro_rules! launch_columns {
            ($one:ident $two:ident $four:ident) => {
                match shape.columns {
                    1 => launch!($one),
                    2 => launch!($two),
                    _ => launch!($four),
                }
            };
        }
        match size {
            2 => launch_columns!(BsrRowSplit2x1 BsrRowSplit2x2 BsrRowSplit2x4),
            3 => launch_columns!(BsrRowSplit3x1 BsrRowSplit3x2 BsrRowSplit3x4),
            4 => launch_columns!(BsrRowSplit4x1 BsrRowSplit4x2 BsrRowSplit4x4),
            5 => launch_columns!(BsrRowSplit5x1 BsrRowSplit5x2 BsrRowSplit5x4),
            6 => launch_columns!(BsrRowSplit6x1 BsrRowSplit6x2 BsrRowSplit6x4),
            _ => launch_columns!(BsrRowSplit8x1 BsrRowSplit8x2 BsrRowSplit8x4),
        }
    }))
}
