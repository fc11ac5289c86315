//! Plan of `gpu-kernels/src/spmm/csr_segmented_sum.rs`.

use spm_formats::Layout;
use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmm::{CsrSegmentedSum4, CsrSegmentedSum8};
use spm_gpu_kernels::spmv::{SEGMENT_THREADS, csr_segmented_sum_shared_bytes};

use super::KERNEL;
use super::rearrange::Ordered;
use crate::convert::{DeviceReducedValues, DeviceSegments};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::product::Zero;
use crate::spmv::{SEGMENT_ENTRIES, segment_entries};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-segmented-sum",
    source: "own; after Liu and Vinter, ICS'15",
    summary: "CSR by segmented sum over equal numbers of entries, column by column; X and Y column-major, rearranged in the run if they are not",
    parameters: &[SEGMENT_ENTRIES],
    ..KERNEL
};

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, dense, parameters, .. } = problem;
    let (rows, cols) = (a.csr.rows(), a.csr.cols());
    if a.csr.entries() == 0 {
        return Ok(problem.boxed(Zero(rows, cols)));
    }
    let entries = segment_entries(a, parameters);
    let a = DeviceSegments::new(&a.csr, a.stats, entries)?;
    let pieces = a.headers.len() - 1;
    let blocks = pieces.saturating_mul(dense.k);
    let launch = problem
        .launch(blocks, 1, SEGMENT_THREADS as usize)?
        .with_shared_bytes(csr_segmented_sum_shared_bytes::<T>(entries as u32));
    let mut parts = DeviceBuffer::<T>::zeroed(device, 2 * blocks)?;
    let mut arrivals = DeviceBuffer::<u64>::zeroed(device, blocks)?;
    let mut ordered = Ordered::new(device, cols, dense, Layout::ColumnMajor)?;
    let mut ordered_y = Ordered::new(device, rows, dense, Layout::ColumnMajor)?;
    let scratch = (parts.bytes() + arrivals.bytes()) as u64;
    let workspace = ordered.bytes() + ordered_y.bytes() + scratch;
    Ok(problem.product_with_scratch(a, workspace, move |a, x, y, stream| {
        let x = ordered.load(x, stream)?;
        let mut column_major_y = ordered_y.target(y);
        if a.row_ids.is_some() {
            a.scale_empty_rows(dense.k, &mut column_major_y, stream)?;
        }
        let DeviceReducedValues::Stored(values) = &a.values else { unreachable!("as asked for") };
        macro_rules! launch {
            ($kernel:ident) => {{
                let args = $kernel {
                    rows: rows as u32,
                    cols: cols as u32,
                    k: dense.k as u32,
                    pieces: pieces as u32,
                    listed: a.row_ids.is_some().into(),
                    row_ids: a.row_ids.as_ref().unwrap_or(&a.row_ptr).ptr(),
                    headers: a.headers.ptr(),
                    warp_ranks: a.warp_ranks.ptr(),
                    flags: a.flags.ptr(),
                    col_ind: a.col_ind.ptr(),
                    values: values.ptr(),
                    x,
                    parts: parts.ptr_mut(),
                    arrivals: arrivals.ptr_mut(),
                    y: column_major_y.output(),
                };
                // SAFETY: arrays made from verified CSR arrays for this number of entries, X and Y
                // column-major of their shape and k > 0 columns, scratch for each piece and column.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args)? }
            }};
        }
        match entries {
            4 => launch!(CsrSegmentedSum4),
            _ => launch!(CsrSegmentedSum8),
        }
        ordered_y.store(y, stream)
    }))
}
