//! Plan of `gpu-kernels/src/spmv/csr_warp_per_row.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::CsrWarpPerRow;

use super::KERNEL;
use super::arrays::csr_plan;
use super::parameters::{R1_WARP_BLOCKS, block};
use crate::launch::WARP;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-warp-per-row",
    source: "R1 2.2, CUDA CSR 1",
    summary: "CSR, a warp for each row, summed by shuffles",
    parameters: &[block(256, R1_WARP_BLOCKS)],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let warps = problem.warps()?;
    let launch = problem.launch(problem.a.rows(), warps, (WARP, warps))?;
    csr_plan!(problem.product, launch, CsrWarpPerRow, |x| x.ptr())
}
