//! Plans of `gpu-kernels/src/spmv/ell_thread_per_row_rowmajor.rs`.

use spm_formats::convert::EllOptions;
use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::{EllThreadPerRowRowmajor, EllThreadPerRowRowmajorPadded};

use super::KERNEL;
use super::arrays::ell_plan;
use super::parameters::{R1_BLOCKS, ROW_LENGTHS, block};
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-thread-per-row-rowmajor",
    source: "R1 4.3.1, CUDA ELL 1",
    summary: "ELLPACK, row-major, a thread for each row",
    parameters: &[block(256, R1_BLOCKS), ROW_LENGTHS],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let block = problem.block();
    let launch = problem.launch(problem.a.rows(), block, block)?;
    ell_plan!(
        problem,
        EllOptions::ROW_MAJOR,
        launch,
        EllThreadPerRowRowmajor,
        EllThreadPerRowRowmajorPadded
    )
}
