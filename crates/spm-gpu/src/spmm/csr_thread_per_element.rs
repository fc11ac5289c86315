//! Plans of `gpu-kernels/src/spmm/csr_thread_per_element.rs`.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::{CsrView, DenseShape};
use spm_gpu_kernels::device::DevicePtrMut;
use spm_gpu_kernels::spmm::{CsrThreadPerElementV1, CsrThreadPerElementV2, CsrThreadPerElementV3};

use super::parameters::{BLOCK, over_elements};
use super::rearrange::strides;
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const V1: KernelInfo = KernelInfo {
    id: "csr-thread-per-element-v1",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "R4 3.3",
    summary: "CSR, a thread for each element of Y, adding in memory",
    parameters: &[BLOCK],
};

pub(super) const V2: KernelInfo = KernelInfo {
    id: "csr-thread-per-element-v2",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "R4 3.3",
    summary: "CSR, a thread for each element of Y, adding in a register",
    parameters: &[BLOCK],
};

pub(super) const V3: KernelInfo = KernelInfo {
    id: "csr-thread-per-element-v3",
    operation: Operation::Spmm,
    backend: Backend::Gpu,
    source: "R4 3.3",
    summary: "CSR, a thread for each element of Y, adding in a register, row bounds read once",
    parameters: &[BLOCK],
};

/// The row pointers for a kernel that reads them again at every step.
fn reread(pointers: &DeviceBuffer<u32>) -> DevicePtrMut<u32> {
    // SAFETY: a pointer is used by a launch only; versions 1 and 2 do not write there.
    unsafe { DevicePtrMut::from_raw(pointers.address()) }
}

macro_rules! versions {
    ($($name:ident $info:ident $kernel:ident $pointers:expr;)*) => {$(
        pub(super) fn $name<T: DeviceScalar>(
            device: &Device,
            a: CsrView<'_, T>,
            dense: DenseShape,
            parameters: &Parameters,
            _: &PlanOptions,
        ) -> Result<BoxedPlan<T>, PlanError> {
            let block = parameters.count(BLOCK.name);
            let launch = over_elements($info.id, device, a.rows(), dense, 1, block)?;
            let a = DeviceCsr::new(device, a)?;
            Ok(product(device, dense, a, 0, move |a, x, y, stream| {
                let pointers: fn(&DeviceBuffer<u32>) -> _ = $pointers;
                let args = $kernel {
                    rows: a.rows() as u32,
                    k: dense.k as u32,
                    pointers: pointers(&a.pointers),
                    col_indices: a.col_indices.ptr(),
                    values: a.values.ptr(),
                    x: x.ptr(),
                    x_strides: strides(a.cols(), dense),
                    y: y.ptr_mut(),
                    y_strides: strides(a.rows(), dense),
                };
                // SAFETY: verified CSR arrays, and X and Y of their shape and k > 0 columns.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }))
        }
    )*};
}

versions! {
    plan_v1 V1 CsrThreadPerElementV1 reread;
    plan_v2 V2 CsrThreadPerElementV2 reread;
    plan_v3 V3 CsrThreadPerElementV3 DeviceBuffer::ptr;
}
