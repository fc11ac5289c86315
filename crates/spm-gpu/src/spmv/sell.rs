//! Plans of `gpu-kernels/src/spmv/sell.rs`.

use std::sync::Arc;

use spm_formats::kernel::{KernelInfo, PlanError};
use spm_gpu_kernels::spmv::{SellSorted, SellUnsorted};

use super::KERNEL;
use super::parameters::{R2_BLOCKS, SIGMA, block};
use crate::launch::WARP;
use crate::matrix::DeviceSell;
use crate::plan::{BoxedPlan, DeviceScalar};
use crate::problem::{DeviceProblem, Planned, Problem, with_block};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell",
    source: "own; Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014",
    summary: "SELL-32-sigma, a warp for each chunk of 32 rows",
    parameters: &[block(256, R2_BLOCKS), SIGMA],
    ..KERNEL
};

pub(super) fn on_device<T: DeviceScalar>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let sigma = problem.parameters.count(SIGMA.name);
    product(problem, problem.a.sell(sigma, problem.budget)?)
}

impl<T: DeviceScalar> DeviceSell<T> {
    /// A plan of y = A x with this matrix, one warp for each chunk in blocks of `block` threads
    /// (`sell`).
    ///
    /// # Errors
    /// Chunks of other than [`DeviceSell::CHUNK`] rows, a block that the device does not take.
    pub fn into_spmv(self, block: usize) -> Result<BoxedPlan<T>, PlanError> {
        let device = self.device().clone();
        with_block(&INFO, &device, block, |problem| product(problem, Arc::new(self)))
    }
}

fn product<T: DeviceScalar, A>(problem: Problem<'_, A>, a: Arc<DeviceSell<T>>) -> Planned<T> {
    if a.chunk != DeviceSell::<T>::CHUNK {
        let reason = format!("chunks of {} rows; it takes {}", a.chunk, DeviceSell::<T>::CHUNK);
        return Err(problem.unsupported(reason));
    }
    let warps = problem.warps()?;
    let chunks = (a.rows() as usize).div_ceil(DeviceSell::<T>::CHUNK);
    let launch = problem.launch(chunks, warps, warps * WARP)?;
    Ok(problem.product(a, 0, move |a, x, y, stream| {
        macro_rules! launch {
            ($kernel:ident { $($permutation:ident)? }) => {{
                let args = $kernel {
                    rows: a.rows(),
                    chunk_starts: a.chunk_starts.ptr(),
                    $($permutation: $permutation.ptr(),)?
                    row_lengths: a.row_lengths.ptr(),
                    col_ind: a.col_ind.ptr(),
                    values: a.values.ptr(),
                    x: x.ptr(),
                    y: y.output(),
                };
                // SAFETY: a SELL-32 matrix made from verified CSR arrays, and vectors of the lengths
                // of its shape.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        match &a.permutation {
            Some(permutation) => launch!(SellSorted { permutation }),
            None => launch!(SellUnsorted {}),
        }
    }))
}
