//! Plan of `gpu-kernels/src/spmm/csr_adaptive_subblocks.rs`.

use spm_formats::kernel::{KernelInfo, ParameterSpec, Value};
use spm_gpu_kernels::spmm::{CsrAdaptiveSubblocks, csr_adaptive_subblocks_bytes};

use super::KERNEL;
use super::arrays::csr_plan_by_column;
use super::parameters::BLOCK;
use super::row_blocks::row_blocks;
use crate::launch::WARP;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

const SUBBLOCK: ParameterSpec = ParameterSpec {
    name: "subblock",
    meaning: "threads of an element of Y, a power of two up to 32",
    default: Value::Count(4),
    studied: &[Value::Count(2), Value::Count(4), Value::Count(8), Value::Count(32)],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-adaptive-subblocks",
    source: "R4 3.3, CSR_Adaptive_sub_blocks",
    summary: "CSR, a block for each row block with all columns, cut into sub-blocks; X column-major, rearranged in the run if it is not",
    parameters: &[BLOCK, SUBBLOCK],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let block = problem.warps()? * WARP;
    let lanes = problem.lanes(SUBBLOCK.name)? as u32;
    let row_blocks = row_blocks(problem.a, block);
    // A thread numbers the elements of its row block with 32 bits.
    let most_rows = row_blocks.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let k = problem.dense.k;
    if (most_rows as usize).saturating_mul(k).saturating_add(block) > u32::MAX as usize {
        let reason = format!("{most_rows} rows of {k} columns in a row block");
        return Err(problem.unsupported(reason));
    }
    let launch = problem.launch(row_blocks.len() - 1, 1, block)?;
    let launch = launch.with_shared_bytes(csr_adaptive_subblocks_bytes::<T>(launch.block.x));
    let row_blocks = DeviceBuffer::from_slice(problem.device, &row_blocks)?;
    csr_plan_by_column!(problem, launch, row_blocks.bytes(), |a| CsrAdaptiveSubblocks {
        lanes,
        row_blocks: row_blocks.ptr(),
        row_ptr: a.row_ptr.ptr()
    })
}
