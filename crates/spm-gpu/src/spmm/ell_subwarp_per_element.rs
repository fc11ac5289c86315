//! Plan of `gpu-kernels/src/spmm/ell_subwarp_per_element.rs`.

use spm_formats::convert::{EllOptions, csr_to_ell};
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrView, DenseShape};
use spm_gpu_kernels::spmm::EllSubwarpPerElement;

use super::parameters::{
    BLOCK, ROW_LENGTHS, SUBWARP, lanes, over_elements, whole_warps, with_sums,
};
use super::rearrange::strides;
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::matrix::{DeviceEll, DeviceMatrix};
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-subwarp-per-element",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "R4 4.3, ELLPACK_Sub_warp",
    summary: "ELLPACK, row-major, a part of a warp for each element of Y, summed in shared memory",
    parameters: &[BLOCK, SUBWARP, ROW_LENGTHS],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    dense: DenseShape,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let block = whole_warps(INFO.id, parameters)?;
    let lanes = lanes(INFO.id, SUBWARP.name, parameters)?;
    let launch = with_sums::<T>(over_elements(INFO.id, device, a.rows(), dense, lanes, block)?);
    let row_lengths = parameters.switch(ROW_LENGTHS.name);
    let a = csr_to_ell(a, EllOptions::ROW_MAJOR, &options.budget)?;
    let a = DeviceEll::new(device, &a, row_lengths)?;
    Ok(product(device, dense, a, 0, move |a, x, y, stream| {
        let (rows, cols) = a.shape();
        let args = EllSubwarpPerElement {
            rows: a.rows(),
            k: dense.k as u32,
            lanes: lanes as u32,
            width: a.width,
            pitch: a.pitch,
            padded: u32::from(!row_lengths),
            row_lengths: a.row_lengths.ptr(),
            col_indices: a.col_indices.ptr(),
            values: a.values.ptr(),
            x: x.ptr(),
            x_strides: strides(cols, dense),
            y: y.ptr_mut(),
            y_strides: strides(rows, dense),
        };
        // SAFETY: a row-major ELLPACK matrix made from verified CSR arrays, X and Y of its shape and
        // k > 0 columns.
        unsafe { stream.device().launch::<EllSubwarpPerElement<T>>(launch, stream, args) }
    }))
}
