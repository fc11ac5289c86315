//! Plans of `gpu-kernels/src/spmv/sell.rs`.

use spm_formats::convert::csr_to_sell;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrArrays, CsrView};
use spm_gpu_kernels::spmv::{SellSorted, SellUnsorted};

use super::parameters::{R2_BLOCKS, SIGMA, WARP, block, warps};
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::DeviceSell;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "sell",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "own; Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014",
    summary: "SELL-32-sigma, a warp for each chunk of 32 rows",
    parameters: &[block(256, R2_BLOCKS), SIGMA],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: &CsrView<'_, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    CsrArrays::new(a)?;
    let warps = warps(INFO.id, parameters)?;
    let chunks = a.rows().div_ceil(DeviceSell::<T>::CHUNK);
    let launch = Launch::over(INFO.id, device, chunks, warps, warps * WARP)?;
    let sigma = parameters.count(SIGMA.name);
    let a = csr_to_sell(*a, DeviceSell::<T>::CHUNK, sigma, &options.budget)?;
    DeviceSell::check_slots(INFO.id, &a)?;
    let a = DeviceSell::new(device, &a)?;
    Ok(product(device, a, move |a, x, y, stream| match &a.permutation {
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
