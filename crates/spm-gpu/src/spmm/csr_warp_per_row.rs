//! Plan of `gpu-kernels/src/spmm/csr_warp_per_row.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmm::CsrWarpPerRow;

use super::KERNEL;
use super::arrays::csr_plan_by_column;
use super::parameters::{BLOCK, with_sums};
use crate::launch::WARP;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-warp-per-row",
    source: "R4 3.3, CSR_Vector_by_row",
    summary: "CSR, a warp for each row of Y, 8 sub-warps of 4 threads over the columns; X column-major, rearranged in the run if it is not",
    parameters: &[BLOCK],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let warps = problem.warps()?;
    let launch = with_sums::<T>(problem.launch(problem.a.rows(), warps, warps * WARP)?);
    csr_plan_by_column!(problem, launch, 0, |a| CsrWarpPerRow {
        rows: a.rows() as u32,
        row_ptr: a.row_ptr.ptr()
    })
}
