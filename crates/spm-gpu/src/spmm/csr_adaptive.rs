//! Plan of `gpu-kernels/src/spmm/csr_adaptive.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmm::{CsrAdaptive, csr_adaptive_bytes};

use super::KERNEL;
use super::arrays::csr_plan_by_column;
use super::parameters::BLOCK;
use super::row_blocks::row_blocks;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-adaptive",
    source: "R4 3.3, CSR_Adaptive; after Greathouse and Daga, SC'14",
    summary: "CSR-Adaptive: row blocks x k blocks of threads, CSR-Stream and CSR-Vector; X column-major, rearranged in the run if it is not",
    parameters: &[BLOCK],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let block = problem.block();
    if !block.is_power_of_two() {
        return Err(problem.unsupported(format!("block must be a power of two; found {block}")));
    }
    let row_blocks = row_blocks(problem.a, block);
    // A block of threads for each row block and column.
    let launch = problem.launch_elements(row_blocks.len() - 1, block, block)?;
    let launch = launch.with_shared_bytes(csr_adaptive_bytes::<T>(launch.block.x));
    let row_blocks = DeviceBuffer::from_slice(problem.device, &row_blocks)?;
    csr_plan_by_column!(problem, launch, row_blocks.bytes(), |a| CsrAdaptive {
        row_blocks: row_blocks.ptr(),
        row_ptr: a.row_ptr.ptr()
    })
}
