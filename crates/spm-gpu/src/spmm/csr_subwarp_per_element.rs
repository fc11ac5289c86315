//! Plan of `gpu-kernels/src/spmm/csr_subwarp_per_element.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmm::CsrSubwarpPerElement;

use super::KERNEL;
use super::arrays::csr_plan;
use super::parameters::{BLOCK, SUBWARP, with_sums};
use crate::launch::WARP;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-subwarp-per-element",
    source: "R4 3.3, CSR_Vector_Sub_warp",
    summary: "CSR, a part of a warp for each element of Y, summed in shared memory",
    parameters: &[BLOCK, SUBWARP],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let block = problem.warps()? * WARP;
    let lanes = problem.lanes(SUBWARP.name)?;
    let launch = with_sums::<T>(problem.launch_elements(problem.a.rows(), lanes, block)?);
    csr_plan!(problem, launch, |a| CsrSubwarpPerElement {
        rows: a.rows() as u32,
        lanes: lanes as u32,
        row_ptr: a.row_ptr.ptr()
    })
}
