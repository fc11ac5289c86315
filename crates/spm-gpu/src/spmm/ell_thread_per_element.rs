//! Plan of `gpu-kernels/src/spmm/ell_thread_per_element.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmm::EllThreadPerElement;

use super::KERNEL;
use super::arrays::ell_plan;
use super::parameters::BLOCK;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};
use crate::spmv::ROW_LENGTHS;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-thread-per-element",
    source: "R4 4.3, ELLPACK_kernel",
    summary: "ELLPACK, row-major, a thread for each element of Y",
    parameters: &[BLOCK, ROW_LENGTHS],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let launch = problem.launch_elements(problem.a.rows(), 1, problem.block())?;
    ell_plan!(problem, launch, EllThreadPerElement {})
}
