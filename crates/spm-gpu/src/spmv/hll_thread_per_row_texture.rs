//! Plan of `gpu-kernels/src/spmv/hll_thread_per_row_texture.rs`.

use spm_formats::convert::csr_to_hll;
use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::HllThreadPerRowTexture;

use super::KERNEL;
use super::parameters::{HACK, R2_BLOCKS, block};
use crate::matrix::DeviceHll;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned, Problem};
use crate::texture::LinearTexture;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "hll-thread-per-row-texture",
    source: "R2 VI-B, Alg. 7",
    summary: "HLL, a thread for each row, x through a texture",
    parameters: &[block(256, R2_BLOCKS), HACK],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, parameters, budget, .. } = problem;
    let mut texture = LinearTexture::new(INFO.id, device, a.cols())?;
    let block = problem.block();
    let launch = problem.launch(a.rows(), block, block)?;
    let a = csr_to_hll(a, parameters.count(HACK.name), budget)?;
    let a = DeviceHll::new(device, &a)?;
    Ok(problem.product_aligned(LinearTexture::ALIGNMENT, a, 0, move |a, x, y, stream| {
        let args = HllThreadPerRowTexture {
            rows: a.rows(),
            hack_size: a.hack_size,
            block_offsets: a.block_offsets.ptr(),
            row_lengths: a.row_lengths.ptr(),
            col_ind: a.col_ind.ptr(),
            values: a.values.ptr(),
            x: texture.over(x)?,
            y: y.output(),
        };
        // SAFETY: an HLL matrix made from verified CSR arrays, and vectors of the lengths of its
        // shape.
        unsafe { stream.device().launch::<HllThreadPerRowTexture<T>>(launch, stream, args) }
    }))
}
