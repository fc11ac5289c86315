//! Plan of `gpu-kernels/src/spmv/csr_thread_per_row_texture.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::CsrThreadPerRowTexture;

use super::KERNEL;
use super::arrays::csr_plan;
use super::parameters::{R2_BLOCKS, block};
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};
use crate::texture::LinearTexture;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-thread-per-row-texture",
    source: "R2 VI-A, Alg. 6",
    summary: "CSR, a thread for each row, x through a texture",
    parameters: &[block(256, R2_BLOCKS)],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let mut texture = LinearTexture::new(INFO.id, problem.device, problem.a.cols())?;
    let block = problem.block();
    let launch = problem.launch(problem.a.rows(), block, block)?;
    let alignment = LinearTexture::ALIGNMENT;
    csr_plan!(problem.product_aligned[alignment], launch, CsrThreadPerRowTexture, |x| texture
        .over(x)?)
}
