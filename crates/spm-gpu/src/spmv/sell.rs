//! Plans of `gpu-kernels/src/spmv/sell.rs`.

use spm_formats::MemoryBudget;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::{SellSorted, SellUnsorted};

use super::on_device::Source;
use super::parameters::{R2_BLOCKS, SIGMA, block, warps_of};
use super::{BoxedPlan, product};
use crate::launch::Launch;
use crate::matrix::DeviceSell;
use crate::plan::DeviceScalar;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "own; Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014",
    summary: "SELL-32-sigma, a warp for each chunk of 32 rows",
    parameters: &[block(256, R2_BLOCKS), SIGMA],
};

pub(super) fn on_device<T: DeviceScalar>(
    a: &Source<T>,
    parameters: &Parameters,
    budget: &MemoryBudget,
) -> Result<BoxedPlan<T>, PlanError> {
    let tuning = (DeviceSell::<T>::CHUNK, parameters.count(SIGMA.name));
    plan(DeviceSell::from_csr(&a.csr, tuning, budget)?, parameters.count("block"))
}

/// The product with a matrix on the device.
pub(crate) fn plan<T: DeviceScalar>(
    a: DeviceSell<T>,
    block: usize,
) -> Result<BoxedPlan<T>, PlanError> {
    if a.chunk != DeviceSell::<T>::CHUNK {
        let reason = format!("chunks of {} rows; it takes {}", a.chunk, DeviceSell::<T>::CHUNK);
        return Err(PlanError::Unsupported { kernel: INFO.id, reason });
    }
    let device = a.device().clone();
    let warps = warps_of(INFO.id, block)?;
    let chunks = (a.rows() as usize).div_ceil(DeviceSell::<T>::CHUNK);
    let launch = Launch::over(INFO.id, &device, chunks, warps, block)?;
    Ok(product(&device, a, move |a, x, y, stream| match &a.permutation {
        Some(permutation) => {
            let args = SellSorted {
                rows: a.rows(),
                chunk_starts: a.chunk_starts.ptr(),
                permutation: permutation.ptr(),
                row_lengths: a.row_lengths.ptr(),
                col_indices: a.col_indices.ptr(),
                values: a.values.ptr(),
                x: x.ptr(),
                y: y.ptr_mut(),
            };
            // SAFETY: a SELL-32 matrix made from verified CSR arrays, and vectors of the lengths
            // of its shape.
            unsafe { stream.device().launch::<SellSorted<T>>(launch, stream, args) }
        }
        None => {
            let args = SellUnsorted {
                rows: a.rows(),
                chunk_starts: a.chunk_starts.ptr(),
                row_lengths: a.row_lengths.ptr(),
                col_indices: a.col_indices.ptr(),
                values: a.values.ptr(),
                x: x.ptr(),
                y: y.ptr_mut(),
            };
            // SAFETY: as above.
            unsafe { stream.device().launch::<SellUnsorted<T>>(launch, stream, args) }
        }
    }))
}
