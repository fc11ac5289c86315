//! Plans of `gpu-kernels/src/spmv/ell_thread_per_row.rs`.

use spm_formats::convert::EllOptions;
use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::{EllThreadPerRow, EllThreadPerRowPadded};

use super::KERNEL;
use super::arrays::ell_plan;
use super::parameters::{R0_BLOCKS, ROW_LENGTHS, block};
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-thread-per-row",
    source: "R0 3.3.2; R1 2.1.2, CUDA ELL 0",
    summary: "ELLPACK, column-major and pitched, a thread for each row",
    parameters: &[block(256, R0_BLOCKS), ROW_LENGTHS],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let block = problem.block();
    let launch = problem.launch(problem.a.rows(), block, block)?;
    ell_plan!(problem, EllOptions::DEVICE, launch, EllThreadPerRow, EllThreadPerRowPadded)
}
