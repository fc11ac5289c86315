//! Plans of `gpu-kernels/src/spmv/ell_thread_per_row_rowmajor.rs`.

use spm_formats::CsrView;
use spm_formats::convert::{EllOptions, csr_to_ell};
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::{EllThreadPerRowRowmajor, EllThreadPerRowRowmajorPadded};

use super::parameters::{R1_BLOCKS, ROW_LENGTHS, block};
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::DeviceEll;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-thread-per-row-rowmajor",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "R1 4.3.1, CUDA ELL 1",
    summary: "ELLPACK, row-major, a thread for each row",
    parameters: &[block(256, R1_BLOCKS), ROW_LENGTHS],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let block = parameters.count("block");
    let launch = Launch::over(INFO.id, device, a.rows(), block, block)?;
    let row_lengths = parameters.switch(ROW_LENGTHS.name);
    let a = csr_to_ell(a, EllOptions::ROW_MAJOR, &options.budget)?;
    let a = DeviceEll::new(device, &a, row_lengths)?;
    if row_lengths {
        return Ok(product(device, a, move |a, x, y, stream| {
            let args = EllThreadPerRowRowmajor {
                rows: a.rows(),
                pitch: a.pitch,
                row_lengths: a.row_lengths.ptr(),
                col_indices: a.col_indices.ptr(),
                values: a.values.ptr(),
                x: x.ptr(),
                y: y.ptr_mut(),
            };
            // SAFETY: an ELLPACK matrix of this layout, made from verified CSR arrays, and vectors
            // of the lengths of its shape.
            unsafe { stream.device().launch::<EllThreadPerRowRowmajor<T>>(launch, stream, args) }
        }));
    }
    Ok(product(device, a, move |a, x, y, stream| {
        let args = EllThreadPerRowRowmajorPadded {
            rows: a.rows(),
            width: a.width,
            pitch: a.pitch,
            row_lengths: a.row_lengths.ptr(),
            col_indices: a.col_indices.ptr(),
            values: a.values.ptr(),
            x: x.ptr(),
            y: y.ptr_mut(),
        };
        // SAFETY: as above.
        unsafe { stream.device().launch::<EllThreadPerRowRowmajorPadded<T>>(launch, stream, args) }
    }))
}
