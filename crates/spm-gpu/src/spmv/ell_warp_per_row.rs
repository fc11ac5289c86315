//! Plans of `gpu-kernels/src/spmv/ell_warp_per_row.rs`.

use spm_formats::CsrView;
use spm_formats::convert::{EllOptions, csr_to_ell};
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::{EllWarpPerRow, EllWarpPerRowPadded};

use super::parameters::{R1_WARP_BLOCKS, ROW_LENGTHS, WARP, block, warps};
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::DeviceEll;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "ell-warp-per-row",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "R1 2.2, CUDA ELL 2",
    summary: "ELLPACK, row-major, a warp for each row",
    parameters: &[block(256, R1_WARP_BLOCKS), ROW_LENGTHS],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let warps = warps(INFO.id, parameters)?;
    let launch = Launch::over(INFO.id, device, a.rows(), warps, (WARP, warps))?;
    let row_lengths = parameters.switch(ROW_LENGTHS.name);
    let a = csr_to_ell(a, EllOptions::ROW_MAJOR, &options.budget)?;
    let a = DeviceEll::new(device, &a, row_lengths)?;
    if row_lengths {
        return Ok(product(device, a, move |a, x, y, stream| {
            let args = EllWarpPerRow {
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
            unsafe { stream.device().launch::<EllWarpPerRow<T>>(launch, stream, args) }
        }));
    }
    Ok(product(device, a, move |a, x, y, stream| {
        let args = EllWarpPerRowPadded {
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
        unsafe { stream.device().launch::<EllWarpPerRowPadded<T>>(launch, stream, args) }
    }))
}
