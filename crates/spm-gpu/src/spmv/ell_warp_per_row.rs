//! Plans of `gpu-kernels/src/spmv/ell_warp_per_row.rs`.

use spm_formats::convert::EllOptions;
use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::{EllWarpPerRow, EllWarpPerRowPadded};

use super::KERNEL;
use super::arrays::ell_plan;
use super::parameters::{R1_WARP_BLOCKS, ROW_LENGTHS, block};
use crate::launch::WARP;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-warp-per-row",
    source: "R1 2.2, CUDA ELL 2",
    summary: "ELLPACK, row-major, a warp for each row",
    parameters: &[block(256, R1_WARP_BLOCKS), ROW_LENGTHS],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let warps = problem.warps()?;
    let launch = problem.launch(problem.a.rows(), warps, (WARP, warps))?;
    ell_plan!(problem, EllOptions::ROW_MAJOR, launch, EllWarpPerRow, EllWarpPerRowPadded)
}
