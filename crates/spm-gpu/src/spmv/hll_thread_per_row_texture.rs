//! Plan of `gpu-kernels/src/spmv/hll_thread_per_row_texture.rs`.

use spm_formats::CsrView;
use spm_formats::convert::csr_to_hll;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::HllThreadPerRowTexture;

use super::parameters::{HACK, R2_BLOCKS, block};
use super::{BoxedPlan, product_with_scratch};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::DeviceHll;
use crate::plan::{DeviceScalar, PlanOptions};
use crate::texture::LinearTexture;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "hll-thread-per-row-texture",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "R2 VI-B, Alg. 7",
    summary: "HLL, a thread for each row, x through a texture",
    parameters: &[block(256, R2_BLOCKS), HACK],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let mut texture = LinearTexture::new(INFO.id, device, a.cols())?;
    let block = parameters.count("block");
    let launch = Launch::over(INFO.id, device, a.rows(), block, block)?;
    let a = csr_to_hll(a, parameters.count(HACK.name), &options.budget)?;
    let a = DeviceHll::new(device, &a)?;
    Ok(product_with_scratch(device, a, move |a, x, y, stream| {
        let args = HllThreadPerRowTexture {
            rows: a.rows(),
            hack_size: a.hack_size,
            block_offsets: a.block_offsets.ptr(),
            row_lengths: a.row_lengths.ptr(),
            col_indices: a.col_indices.ptr(),
            values: a.values.ptr(),
            x: texture.over(x)?,
            y: y.ptr_mut(),
        };
        // SAFETY: an HLL matrix made from verified CSR arrays, and vectors of the lengths of its
        // shape.
        unsafe { stream.device().launch::<HllThreadPerRowTexture<T>>(launch, stream, args) }
    }))
}
