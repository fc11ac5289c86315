//! Plan of `gpu-kernels/src/spmv/csr_column_blocks.rs`.

use spm_formats::kernel::{KernelInfo, ParameterSpec};
use spm_gpu_kernels::spmv::{
    COLUMN_BLOCK_IN_FLIGHT, CsrColumnBlocks, CsrColumnBlocksSingle, csr_column_blocks_shared_bytes,
};

use super::KERNEL;
use super::parameters::{SINGLE_VALUES, row_lanes};
use crate::convert::{ColumnBlockShape, DeviceColumnBlocks, DeviceReducedValues};
use crate::launch::WARP;
use crate::matrix::With;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::product::Zero;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-column-blocks",
    source: "own; after Im, Yelick, Vuduc, IJHPCA 18(1), 2004",
    summary: "CSR by column blocks, each block's part of x in shared memory, 16-bit columns",
    parameters: &[LANES, SINGLE_VALUES],
    ..KERNEL
};

const LANES: ParameterSpec = row_lanes(
    "threads of a row in a block of columns; auto takes an eighth of its mean length there, rounded up to \
     a power of two",
);

/// Threads of a block. One block, with its part of x in shared memory, fills a multiprocessor.
const BLOCK: usize = 1024;

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, parameters, budget, .. } = problem;
    let (rows, cols) = (a.csr.rows(), a.csr.cols());
    if a.csr.entries() == 0 {
        return Ok(problem.boxed(Zero(rows, cols)));
    }
    let Some(cut) = ColumnBlockShape::of::<T>(device, cols) else {
        let reason = format!("{cols} columns are more than shared memory holds in 32 blocks");
        return Err(problem.unsupported(reason));
    };
    let ColumnBlockShape { col_blocks, block_cols } = cut;
    let turn = COLUMN_BLOCK_IN_FLIGHT as usize * col_blocks;
    let fitting = a.mean_row().div_ceil(turn).next_power_of_two().min(WARP);
    let lanes: usize = parameters.choice("threads-per-row").parse().unwrap_or(fitting);
    let row_blocks = (device.info().multiprocessors as usize / col_blocks).max(1);
    let block_rows = rows.div_ceil(row_blocks).max(1);
    let row_blocks = rows.div_ceil(block_rows).max(1);
    let launch = problem
        .launch(col_blocks, 1, BLOCK)?
        .with_grid_y(row_blocks as u32)
        .with_shared_bytes(csr_column_blocks_shared_bytes::<T>(block_cols as u32));
    let single = parameters.switch(SINGLE_VALUES.name) && a.values()?.single;
    let matrix = DeviceColumnBlocks::new(&a.csr, cut, (single, a.new_values), budget)?;
    let mut sums = DeviceBuffer::<T>::uninitialized(device, rows * col_blocks)?;
    let mut arrivals = DeviceBuffer::<u32>::zeroed(device, row_blocks)?;
    let scratch_bytes = sums.bytes() + arrivals.bytes();
    let matrix = With { matrix, extra: (), extra_bytes: 0, scratch_bytes };
    // Pairs of x.
    let alignment = 2 * size_of::<T>();
    Ok(problem.product_aligned(alignment, matrix, 0, move |a, x, y, stream| {
        let a = &a.matrix;
        macro_rules! launch {
            ($kernel:ident { $values:expr }) => {{
                let args = $kernel {
                    rows: rows as u32,
                    cols: cols as u32,
                    block_rows: block_rows as u32,
                    block_cols: block_cols as u32,
                    col_blocks: col_blocks as u32,
                    log_lanes: lanes.trailing_zeros(),
                    ends: a.ends.ptr(),
                    col_offsets: a.col_offsets.ptr(),
                    values: $values,
                    x: x.ptr(),
                    sums: sums.ptr_mut(),
                    arrivals: arrivals.ptr_mut(),
                    y: y.output(),
                };
                // SAFETY: arrays made from verified CSR arrays for this cut, and vectors of the
                // lengths of their shape.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        match &a.values {
            DeviceReducedValues::Single(values) => launch!(CsrColumnBlocksSingle { values.ptr() }),
            DeviceReducedValues::Stored(values) => launch!(CsrColumnBlocks { values.ptr() }),
            DeviceReducedValues::Equal(_) => unreachable!("values are stored or single here"),
        }
    }))
}
