//! Plan of `gpu-kernels/src/spmv/csr_warp_per_row_shared.rs`.

use spm_formats::CsrView;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::{CsrWarpPerRowShared, csr_warp_per_row_shared_bytes};

use super::parameters::{R0_BLOCKS, WARP, block, warps};
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::DeviceCsr;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-warp-per-row-shared",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "R0 3.3.1",
    summary: "CSR, a warp for each row, summed in shared memory; as many threads as rows",
    parameters: &[block(256, R0_BLOCKS)],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let block = warps(INFO.id, parameters)? * WARP;
    let launch = Launch::over(INFO.id, device, a.rows(), block, block)?;
    let launch = launch.with_shared_bytes(csr_warp_per_row_shared_bytes::<T>(launch.block.x));
    let a = DeviceCsr::new(device, a)?;
    Ok(product(device, a, move |a, x, y, stream| {
        let args = CsrWarpPerRowShared {
            rows: a.rows() as u32,
            pointers: a.pointers.ptr(),
            col_indices: a.col_indices.ptr(),
            values: a.values.ptr(),
            x: x.ptr(),
            y: y.ptr_mut(),
        };
        // SAFETY: verified CSR arrays, and vectors of the lengths of their shape; shared memory
        // for blocks of this size.
        unsafe { stream.device().launch::<CsrWarpPerRowShared<T>>(launch, stream, args) }
    }))
}
