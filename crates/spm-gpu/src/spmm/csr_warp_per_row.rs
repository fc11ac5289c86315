//! Plan of `gpu-kernels/src/spmm/csr_warp_per_row.rs`.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrView, DenseShape, Layout};
use spm_gpu_kernels::spmm::CsrWarpPerRow;

use super::parameters::{BLOCK, WARP, whole_warps, with_sums};
use super::rearrange::{OrderedX, strides};
use super::{BoxedPlan, product_with_scratch};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::DeviceCsr;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-warp-per-row",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "R4 3.3, CSR_Vector_by_row",
    summary: "CSR, a warp for each row of Y, 8 sub-warps of 4 threads over the columns; X column-major, rearranged in the run if it is not",
    parameters: &[BLOCK],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    dense: DenseShape,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let block = whole_warps(INFO.id, parameters)?;
    let launch = Launch::over(INFO.id, device, a.rows(), block / WARP, block)?;
    let launch = with_sums::<T>(launch);
    let a = DeviceCsr::new(device, a)?;
    let mut ordered = OrderedX::new(device, a.cols(), dense, Layout::ColumnMajor)?;
    let column_major = DenseShape { layout: Layout::ColumnMajor, ..dense };
    Ok(product_with_scratch(device, dense, a, ordered.bytes(), move |a, x, y, stream| {
        let args = CsrWarpPerRow {
            rows: a.rows() as u32,
            k: dense.k as u32,
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
        unsafe { stream.device().launch::<CsrWarpPerRow<T>>(launch, stream, args) }
    }))
}
