//! Plan of `gpu-kernels/src/spmm/csr_adaptive_subblocks.rs`.

use spm_formats::kernel::{
    Backend, KernelInfo, Operation, ParameterSpec, Parameters, PlanError, Value,
};
use spm_formats::{CsrView, DenseShape, Layout};
use spm_gpu_kernels::spmm::{CsrAdaptiveSubblocks, csr_adaptive_subblocks_bytes};

use super::parameters::{BLOCK, lanes, whole_warps};
use super::rearrange::{OrderedX, strides};
use super::row_blocks::row_blocks;
use super::{BoxedPlan, product_with_scratch};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, PlanOptions};

const SUBBLOCK: ParameterSpec = ParameterSpec {
    name: "subblock",
    meaning: "threads of an element of Y, a power of two up to 32",
    default: Value::Count(4),
    studied: &[Value::Count(2), Value::Count(4), Value::Count(8), Value::Count(32)],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-adaptive-subblocks",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "R4 3.3, CSR_Adaptive_sub_blocks",
    summary: "CSR, a block for each row block with all columns, cut into sub-blocks; X column-major, rearranged in the run if it is not",
    parameters: &[BLOCK, SUBBLOCK],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    dense: DenseShape,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let block = whole_warps(INFO.id, parameters)?;
    let lanes = lanes(INFO.id, SUBBLOCK.name, parameters)?;
    let row_blocks = row_blocks(a, block);
    // A thread numbers the elements of its row block with 32 bits.
    let most_rows = row_blocks.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    if (most_rows as usize).saturating_mul(dense.k).saturating_add(block) > u32::MAX as usize {
        let reason = format!("{most_rows} rows of {} columns in a row block", dense.k);
        return Err(PlanError::Unsupported { kernel: INFO.id, reason });
    }
    let launch = Launch::over(INFO.id, device, row_blocks.len() - 1, 1, block)?;
    let launch = launch.with_shared_bytes(csr_adaptive_subblocks_bytes::<T>(launch.block.x));
    let row_blocks = DeviceBuffer::from_slice(device, &row_blocks)?;
    let a = DeviceCsr::new(device, a)?;
    let mut ordered = OrderedX::new(device, a.cols(), dense, Layout::ColumnMajor)?;
    let column_major = DenseShape { layout: Layout::ColumnMajor, ..dense };
    let workspace = ordered.bytes() + row_blocks.bytes() as u64;
    Ok(product_with_scratch(device, dense, a, workspace, move |a, x, y, stream| {
        let args = CsrAdaptiveSubblocks {
            k: dense.k as u32,
            lanes: lanes as u32,
            row_blocks: row_blocks.ptr(),
            pointers: a.pointers.ptr(),
            col_indices: a.col_indices.ptr(),
            values: a.values.ptr(),
            x: ordered.enqueue(x, stream)?,
            x_strides: strides(a.cols(), column_major),
            y: y.ptr_mut(),
            y_strides: strides(a.rows(), dense),
        };
        // SAFETY: verified CSR arrays, X and Y of their shape and k > 0 columns, shared memory for
        // blocks of this size.
        unsafe { stream.device().launch::<CsrAdaptiveSubblocks<T>>(launch, stream, args) }
    }))
}
