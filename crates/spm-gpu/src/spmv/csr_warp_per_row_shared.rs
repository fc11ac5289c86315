//! Plan of `gpu-kernels/src/spmv/csr_warp_per_row_shared.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::{CsrWarpPerRowShared, csr_warp_per_row_shared_bytes};

use super::KERNEL;
use super::arrays::csr_plan;
use super::parameters::{R0_BLOCKS, block};
use crate::launch::WARP;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-warp-per-row-shared",
    source: "R0 3.3.1",
    summary: "CSR, a warp for each row, summed in shared memory; as many threads as rows",
    parameters: &[block(256, R0_BLOCKS)],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let block = problem.warps()? * WARP;
    let launch = problem.launch(problem.a.rows(), block, block)?;
    let launch = launch.with_shared_bytes(csr_warp_per_row_shared_bytes::<T>(launch.block.x));
    csr_plan!(problem.product, launch, CsrWarpPerRowShared, |x| x.ptr())
}
