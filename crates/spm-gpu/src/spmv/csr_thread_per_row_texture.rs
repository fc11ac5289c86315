//! Plan of `gpu-kernels/src/spmv/csr_thread_per_row_texture.rs`.

use spm_formats::CsrView;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::CsrThreadPerRowTexture;

use super::parameters::{R2_BLOCKS, block};
use super::{BoxedPlan, product_with_scratch};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::DeviceCsr;
use crate::plan::{DeviceScalar, PlanOptions};
use crate::texture::LinearTexture;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-thread-per-row-texture",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "R2 VI-A, Alg. 6",
    summary: "CSR, a thread for each row, x through a texture",
    parameters: &[block(256, R2_BLOCKS)],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let mut texture = LinearTexture::new(INFO.id, device, a.cols())?;
    let block = parameters.count("block");
    let launch = Launch::over(INFO.id, device, a.rows(), block, block)?;
    let a = DeviceCsr::new(device, a)?;
    Ok(product_with_scratch(device, a, move |a, x, y, stream| {
        let args = CsrThreadPerRowTexture {
            rows: a.rows() as u32,
            pointers: a.pointers.ptr(),
            col_indices: a.col_indices.ptr(),
            values: a.values.ptr(),
            x: texture.over(x)?,
            y: y.ptr_mut(),
        };
        // SAFETY: verified CSR arrays, a texture and a vector of the lengths of their shape.
        unsafe { stream.device().launch::<CsrThreadPerRowTexture<T>>(launch, stream, args) }
    }))
}
