//! Plan of `gpu-kernels/src/spmm/ell_subwarp_per_element.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmm::EllSubwarpPerElement;

use super::KERNEL;
use super::arrays::ell_plan;
use super::parameters::{BLOCK, SUBWARP, with_sums};
use crate::launch::WARP;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};
use crate::spmv::ROW_LENGTHS;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-subwarp-per-element",
    source: "R4 4.3, ELLPACK_Sub_warp",
    summary: "ELLPACK, row-major, a part of a warp for each element of Y, summed in shared memory",
    parameters: &[BLOCK, SUBWARP, ROW_LENGTHS],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let block = problem.warps()? * WARP;
    let lanes = problem.lanes(SUBWARP.name)?;
    let launch = with_sums::<T>(problem.launch_elements(problem.a.rows(), lanes, block)?);
    ell_plan!(problem, launch, EllSubwarpPerElement { lanes: lanes as u32 })
}
