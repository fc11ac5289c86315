//! Plan of `gpu-kernels/src/spmv/csr_thread_per_row.rs`.

use spm_formats::CsrView;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::CsrThreadPerRow;

use super::parameters::{R1_BLOCKS, block};
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::DeviceCsr;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-thread-per-row",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "R1 2.1.1, CUDA CSR 0 (cudaSpMVRowsCSR)",
    summary: "CSR, a thread for each row",
    parameters: &[block(256, R1_BLOCKS)],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let block = parameters.count("block");
    let launch = Launch::over(INFO.id, device, a.rows(), block, block)?;
    let a = DeviceCsr::new(device, a)?;
    Ok(product(device, a, move |a, x, y, stream| {
        let args = CsrThreadPerRow {
            rows: a.rows() as u32,
            pointers: a.pointers.ptr(),
            col_indices: a.col_indices.ptr(),
            values: a.values.ptr(),
            x: x.ptr(),
            y: y.ptr_mut(),
        };
        // SAFETY: verified CSR arrays, and vectors of the lengths of their shape.
        unsafe { stream.device().launch::<CsrThreadPerRow<T>>(launch, stream, args) }
    }))
}
