//! Plan of `gpu-kernels/src/spmv/csr_column_blocks.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::{
    ColumnBlockSums, CsrColumnBlocks, CsrColumnBlocksEqual, CsrColumnBlocksSingle,
    csr_column_blocks_shared_bytes,
};

use super::KERNEL;
use super::parameters::{DROP_EQUAL, SINGLE_VALUES};
use crate::convert::{ColumnBlockShape, DeviceColumnBlocks, DeviceReducedValues, ValueKind};
use crate::matrix::With;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::product::Zero;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-column-blocks",
    source: "own; after Im, Yelick, Vuduc, IJHPCA 18(1), 2004, and Liu, Vinter, ICS'15",
    summary: "CSR by column blocks, each block's part of x in shared memory, 16-bit columns, equal numbers of entries",
    parameters: &[DROP_EQUAL, SINGLE_VALUES],
    ..KERNEL
};

/// Threads of a block. One block, with its part of x in shared memory, fills a multiprocessor.
const BLOCK: usize = 1024;
/// Threads of a block that adds the sums of all column blocks.
const SUM_BLOCK: usize = 256;

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, parameters, budget, .. } = problem;
    let (rows, cols) = (a.csr.rows(), a.csr.cols());
    if a.csr.entries() == 0 {
        return Ok(problem.boxed(Zero(rows, cols)));
    }
    let Some(cut) = ColumnBlockShape::of::<T>(device, cols) else {
        let reason = format!("{cols} columns are more than shared memory holds in 256 blocks");
        return Err(problem.unsupported(reason));
    };
    let ColumnBlockShape { col_blocks, block_cols } = cut;
    let of_sums = problem.launch(rows, SUM_BLOCK, SUM_BLOCK)?;
    let (drop_equal, single) =
        (parameters.switch(DROP_EQUAL.name), parameters.switch(SINGLE_VALUES.name));
    let kind = match ValueKind::choose(a.values()?, drop_equal, single) {
        // Times the 0 of padding it is not 0.
        ValueKind::Equal(value) if !value.to_f64().is_finite() => ValueKind::Stored,
        kind => kind,
    };
    let matrix =
        DeviceColumnBlocks::new((&a.csr, a.stats.longest_row), cut, (kind, a.new_values), budget)?;
    let launch = problem
        .launch(matrix.chunks.len(), 1, BLOCK)?
        .with_shared_bytes(csr_column_blocks_shared_bytes::<T>(block_cols as u32));
    let mut sums = DeviceBuffer::<T>::uninitialized(device, cut.parts(rows))?;
    let matrix = With { matrix, extra: (), extra_bytes: 0, scratch_bytes: sums.bytes() };
    // Pairs of x.
    let alignment = 2 * size_of::<T>();
    Ok(problem.product_aligned(alignment, matrix, 0, move |a, x, y, stream| {
        let a = &a.matrix;
        macro_rules! launch {
            ($kernel:ident { $field:ident: $value:expr }) => {{
                let args = $kernel {
                    cols: cols as u32,
                    block_cols: block_cols as u32,
                    chunks: a.chunks.ptr(),
                    ends: a.ends.ptr(),
                    parts: a.parts.ptr(),
                    col_offsets: a.col_offsets.ptr(),
                    $field: $value,
                    x: x.ptr(),
                    sums: sums.ptr_mut(),
                };
                // SAFETY: arrays made from verified CSR arrays for this cut, an x of their columns, and a sum for each
                // row of each column block.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args)? }
            }};
        }
        match &a.values {
            DeviceReducedValues::Single(of) => launch!(CsrColumnBlocksSingle { values: of.ptr() }),
            DeviceReducedValues::Stored(of) => launch!(CsrColumnBlocks { values: of.ptr() }),
            DeviceReducedValues::Equal(value) => launch!(CsrColumnBlocksEqual { value: *value }),
        }
        let args = ColumnBlockSums {
            rows: rows as u32,
            col_blocks: col_blocks as u32,
            sums: sums.ptr(),
            y: y.output(),
        };
        // SAFETY: the sums of all column blocks, a y of as many rows.
        unsafe { stream.device().launch::<ColumnBlockSums<T>>(of_sums, stream, args) }
    }))
}
