//! Plan of `gpu-kernels/src/spmv/csr_thread_per_row.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::CsrThreadPerRow;

use super::KERNEL;
use super::arrays::csr_plan;
use super::parameters::{R1_BLOCKS, block};
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-thread-per-row",
    source: "R1 2.1.1, CUDA CSR 0 (cudaSpMVRowsCSR)",
    summary: "CSR, a thread for each row",
    parameters: &[block(256, R1_BLOCKS)],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let block = problem.block();
    let launch = problem.launch(problem.a.rows(), block, block)?;
    csr_plan!(problem.product, launch, CsrThreadPerRow, |x| x.ptr())
}
