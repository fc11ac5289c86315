//! Plan of `gpu-kernels/src/spmv/hll_thread_per_row.rs`.

use spm_formats::kernel::{KernelInfo, PlanError};
use spm_gpu_kernels::spmv::HllThreadPerRow;

use super::KERNEL;
use super::parameters::{HACK, R2_BLOCKS, block};
use crate::matrix::DeviceHll;
use crate::plan::{BoxedPlan, DeviceReal};
use crate::problem::{DeviceProblem, Planned, Problem, with_block};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "hll-thread-per-row",
    source: "own; layout of R2 VI-B",
    summary: "HLL, a thread for each row, up to its length",
    parameters: &[block(256, R2_BLOCKS), HACK],
    ..KERNEL
};

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let hack_size = problem.parameters.count(HACK.name);
    product(problem, DeviceHll::from_csr(&problem.a.csr, hack_size, problem.budget)?)
}

impl<T: DeviceReal> DeviceHll<T> {
    /// A plan of y = A x with this matrix, one thread for each row in blocks of `block` threads
    /// (`hll-thread-per-row`).
    ///
    /// # Errors
    /// A block that the device does not take.
    pub fn into_spmv(self, block: usize) -> Result<BoxedPlan<T>, PlanError> {
        let device = self.device().clone();
        with_block(&INFO, &device, block, |problem| product(problem, self))
    }
}

fn product<T: DeviceReal, A>(problem: Problem<'_, A>, a: DeviceHll<T>) -> Planned<T> {
    let block = problem.block();
    let launch = problem.launch(a.rows() as usize, block, block)?;
    Ok(problem.product(a, 0, move |a, x, y, stream| {
        let args = HllThreadPerRow {
            rows: a.rows(),
            hack_size: a.hack_size,
            block_offsets: a.block_offsets.ptr(),
            row_lengths: a.row_lengths.ptr(),
            col_ind: a.col_ind.ptr(),
            values: a.values.ptr(),
            x: x.ptr(),
            y: y.output(),
        };
        // SAFETY: an HLL matrix made from verified CSR arrays, and vectors of the lengths of its
        // shape.
        unsafe { stream.device().launch::<HllThreadPerRow<T>>(launch, stream, args) }
    }))
}
