//! Plan of `gpu-kernels/src/spmv/csr_warp_per_row.rs`.

use spm_formats::CsrView;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::CsrWarpPerRow;

use super::parameters::{R1_WARP_BLOCKS, WARP, block, warps};
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::DeviceCsr;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-warp-per-row",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "R1 2.2, CUDA CSR 1",
    summary: "CSR, a warp for each row, summed by shuffles",
    parameters: &[block(256, R1_WARP_BLOCKS)],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let warps = warps(INFO.id, parameters)?;
    let launch = Launch::over(INFO.id, device, a.rows(), warps, (WARP, warps))?;
    let a = DeviceCsr::new(device, a)?;
    Ok(product(device, a, move |a, x, y, stream| {
        let args = CsrWarpPerRow {
            rows: a.rows() as u32,
            pointers: a.pointers.ptr(),
            col_indices: a.col_indices.ptr(),
            values: a.values.ptr(),
            x: x.ptr(),
            y: y.ptr_mut(),
        };
        // SAFETY: verified CSR arrays, and vectors of the lengths of their shape.
        unsafe { stream.device().launch::<CsrWarpPerRow<T>>(launch, stream, args) }
    }))
}
