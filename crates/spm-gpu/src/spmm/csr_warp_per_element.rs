//! Plan of `gpu-kernels/src/spmm/csr_warp_per_element.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmm::CsrWarpPerElement;

use super::KERNEL;
use super::arrays::csr_plan;
use super::parameters::{BLOCK, with_sums};
use crate::launch::WARP;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-warp-per-element",
    source: "R4 3.3, CSR_Vector",
    summary: "CSR, a warp for each element of Y, summed in shared memory",
    parameters: &[BLOCK],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let block = problem.warps()? * WARP;
    let launch = with_sums::<T>(problem.launch_elements(problem.a.rows(), WARP, block)?);
    csr_plan!(problem, launch, |a| CsrWarpPerElement {
        rows: a.rows() as u32,
        row_ptr: a.row_ptr.ptr()
    })
}
