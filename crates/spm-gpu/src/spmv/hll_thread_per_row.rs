//! Plan of `gpu-kernels/src/spmv/hll_thread_per_row.rs`.

use spm_formats::MemoryBudget;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::HllThreadPerRow;

use super::on_device::Source;
use super::parameters::{HACK, R2_BLOCKS, block};
use super::{BoxedPlan, product};
use crate::launch::Launch;
use crate::matrix::DeviceHll;
use crate::plan::DeviceScalar;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "hll-thread-per-row",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "own; layout of R2 VI-B",
    summary: "HLL, a thread for each row, up to its length",
    parameters: &[block(256, R2_BLOCKS), HACK],
};

pub(super) fn on_device<T: DeviceScalar>(
    a: &Source<T>,
    parameters: &Parameters,
    budget: &MemoryBudget,
) -> Result<BoxedPlan<T>, PlanError> {
    plan(
        DeviceHll::from_csr(&a.csr, parameters.count(HACK.name), budget)?,
        parameters.count("block"),
    )
}

/// The product with a matrix on the device.
pub(crate) fn plan<T: DeviceScalar>(
    a: DeviceHll<T>,
    block: usize,
) -> Result<BoxedPlan<T>, PlanError> {
    let device = a.device().clone();
    let launch = Launch::over(INFO.id, &device, a.rows() as usize, block, block)?;
    Ok(product(&device, a, move |a, x, y, stream| {
        let args = HllThreadPerRow {
            rows: a.rows(),
            hack_size: a.hack_size,
            block_offsets: a.block_offsets.ptr(),
            row_lengths: a.row_lengths.ptr(),
            col_indices: a.col_indices.ptr(),
            values: a.values.ptr(),
            x: x.ptr(),
            y: y.ptr_mut(),
        };
        // SAFETY: an HLL matrix made from verified CSR arrays, and vectors of the lengths of its
        // shape.
        unsafe { stream.device().launch::<HllThreadPerRow<T>>(launch, stream, args) }
    }))
}
