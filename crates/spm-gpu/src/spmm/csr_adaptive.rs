//! Plan of `gpu-kernels/src/spmm/csr_adaptive.rs`.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrView, DenseShape, Layout};
use spm_gpu_kernels::spmm::{CsrAdaptive, csr_adaptive_bytes};

use super::parameters::{BLOCK, over_elements};
use super::rearrange::{OrderedX, strides};
use super::row_blocks::row_blocks;
use super::{BoxedPlan, product_with_scratch};
use crate::device::Device;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-adaptive",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "R4 3.3, CSR_Adaptive; after Greathouse and Daga, SC'14",
    summary: "CSR-Adaptive: row blocks x k blocks of threads, CSR-Stream and CSR-Vector; X column-major, rearranged in the run if it is not",
    parameters: &[BLOCK],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    dense: DenseShape,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let block = parameters.count(BLOCK.name);
    if !block.is_power_of_two() {
        let reason = format!("block must be a power of two; found {block}");
        return Err(PlanError::Unsupported { kernel: INFO.id, reason });
    }
    let row_blocks = row_blocks(a, block);
    // A block of threads for each row block and column.
    let launch = over_elements(INFO.id, device, row_blocks.len() - 1, dense, block, block)?;
    let launch = launch.with_shared_bytes(csr_adaptive_bytes::<T>(launch.block.x));
    let row_blocks = DeviceBuffer::from_slice(device, &row_blocks)?;
    let a = DeviceCsr::new(device, a)?;
    let mut ordered = OrderedX::new(device, a.cols(), dense, Layout::ColumnMajor)?;
    let column_major = DenseShape { layout: Layout::ColumnMajor, ..dense };
    let workspace = ordered.bytes() + row_blocks.bytes() as u64;
    Ok(product_with_scratch(device, dense, a, workspace, move |a, x, y, stream| {
        let args = CsrAdaptive {
            k: dense.k as u32,
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
        unsafe { stream.device().launch::<CsrAdaptive<T>>(launch, stream, args) }
    }))
}
