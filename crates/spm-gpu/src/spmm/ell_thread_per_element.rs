//! Plan of `gpu-kernels/src/spmm/ell_thread_per_element.rs`.

use spm_formats::convert::{EllOptions, csr_to_ell};
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrView, DenseShape};
use spm_gpu_kernels::spmm::EllThreadPerElement;

use super::parameters::{BLOCK, ROW_LENGTHS, over_elements};
use super::rearrange::strides;
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::matrix::{DeviceEll, DeviceMatrix};
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-thread-per-element",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "R4 4.3, ELLPACK_kernel",
    summary: "ELLPACK, row-major, a thread for each element of Y",
    parameters: &[BLOCK, ROW_LENGTHS],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    dense: DenseShape,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let block = parameters.count(BLOCK.name);
    let launch = over_elements(INFO.id, device, a.rows(), dense, 1, block)?;
    let row_lengths = parameters.switch(ROW_LENGTHS.name);
    let a = csr_to_ell(a, EllOptions::ROW_MAJOR, &options.budget)?;
    let a = DeviceEll::new(device, &a, row_lengths)?;
    Ok(product(device, dense, a, 0, move |a, x, y, stream| {
        let (rows, cols) = a.shape();
        let args = EllThreadPerElement {
            rows: a.rows(),
            k: dense.k as u32,
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
        unsafe { stream.device().launch::<EllThreadPerElement<T>>(launch, stream, args) }
    }))
}
