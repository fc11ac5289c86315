//! Plan of `gpu-kernels/src/spmm/csr_subwarp_per_element.rs`.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrView, DenseShape};
use spm_gpu_kernels::spmm::CsrSubwarpPerElement;

use super::parameters::{BLOCK, SUBWARP, lanes, over_elements, whole_warps, with_sums};
use super::rearrange::strides;
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::matrix::DeviceCsr;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-subwarp-per-element",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "R4 3.3, CSR_Vector_Sub_warp",
    summary: "CSR, a part of a warp for each element of Y, summed in shared memory",
    parameters: &[BLOCK, SUBWARP],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    dense: DenseShape,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let block = whole_warps(INFO.id, parameters)?;
    let lanes = lanes(INFO.id, SUBWARP.name, parameters)?;
    let launch = with_sums::<T>(over_elements(INFO.id, device, a.rows(), dense, lanes, block)?);
    let a = DeviceCsr::new(device, a)?;
    Ok(product(device, dense, a, 0, move |a, x, y, stream| {
        let args = CsrSubwarpPerElement {
            rows: a.rows() as u32,
            k: dense.k as u32,
            lanes: lanes as u32,
            pointers: a.pointers.ptr(),
            col_indices: a.col_indices.ptr(),
            values: a.values.ptr(),
            x: x.ptr(),
            x_strides: strides(a.cols(), dense),
            y: y.ptr_mut(),
            y_strides: strides(a.rows(), dense),
        };
        // SAFETY: verified CSR arrays, X and Y of their shape and k > 0 columns, shared memory for
        // blocks of this size.
        unsafe { stream.device().launch::<CsrSubwarpPerElement<T>>(launch, stream, args) }
    }))
}
