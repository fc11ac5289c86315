//! Plan of `gpu-kernels/src/spmv/csr_subwarp_per_row.rs`.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrArrays, CsrView};
use spm_gpu_kernels::spmv::{CsrSubwarpPerRow, CsrSubwarpPerRowEqual};

use super::parameters::{DROP_EQUAL, LANES, R2_BLOCKS, WARP, block, lanes, warps};
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::{DeviceValues, ReducedCsr};
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-subwarp-per-row",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "own; after Bell and Garland, SC'09",
    summary: "CSR, 1 to 32 threads for each row",
    parameters: &[block(256, R2_BLOCKS), LANES, DROP_EQUAL],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: &CsrView<'_, T>,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let a = CsrArrays::new(a)?;
    let (rows, lanes) = (a.rows() as u32, lanes(&a, parameters));
    let block = warps(INFO.id, parameters)? * WARP;
    let launch = Launch::over(INFO.id, device, a.rows(), block / lanes, block)?;
    let lanes = lanes as u32;
    let a = ReducedCsr::new(device, &a, parameters.switch(DROP_EQUAL.name))?;
    Ok(product(device, a, move |a, x, y, stream| {
        let device = stream.device();
        let (pointers, col_indices) = (a.pointers.ptr(), a.col_indices.ptr());
        let (x, y) = (x.ptr(), y.ptr_mut());
        // SAFETY: verified CSR arrays, and vectors of the lengths of their shape.
        unsafe {
            match &a.values {
                DeviceValues::Stored(values) => {
                    let values = values.ptr();
                    let args =
                        CsrSubwarpPerRow { rows, lanes, pointers, col_indices, values, x, y };
                    device.launch::<CsrSubwarpPerRow<T>>(launch, stream, args)
                }
                &DeviceValues::Equal(value) => {
                    let args =
                        CsrSubwarpPerRowEqual { rows, lanes, pointers, col_indices, value, x, y };
                    device.launch::<CsrSubwarpPerRowEqual<T>>(launch, stream, args)
                }
            }
        }
    }))
}
