//! Plans of `gpu-kernels/src/spmm/csr_thread_per_element.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::device::DevicePtrMut;
use spm_gpu_kernels::spmm::{CsrThreadPerElementV1, CsrThreadPerElementV2, CsrThreadPerElementV3};

use super::KERNEL;
use super::arrays::csr_plan;
use super::parameters::BLOCK;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned};

pub(super) const V1: KernelInfo = KernelInfo {
    id: "csr-thread-per-element-v1",
    source: "R4 3.3",
    summary: "CSR, a thread for each element of Y, adding in memory",
    parameters: &[BLOCK],
    ..KERNEL
};

pub(super) const V2: KernelInfo = KernelInfo {
    id: "csr-thread-per-element-v2",
    source: "R4 3.3",
    summary: "CSR, a thread for each element of Y, adding in a register",
    parameters: &[BLOCK],
    ..KERNEL
};

pub(super) const V3: KernelInfo = KernelInfo {
    id: "csr-thread-per-element-v3",
    source: "R4 3.3",
    summary: "CSR, a thread for each element of Y, adding in a register, row bounds read once",
    parameters: &[BLOCK],
    ..KERNEL
};

/// The row pointers for a kernel that reads them again at every step.
fn reread(row_ptr: &DeviceBuffer<u32>) -> DevicePtrMut<u32> {
    // SAFETY: a pointer is used by a launch only; versions 1 and 2 do not write there.
    unsafe { DevicePtrMut::from_raw(row_ptr.address()) }
}

macro_rules! versions {
    ($($name:ident $kernel:ident $row_ptr:path;)*) => {$(
        pub(super) fn $name<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
            let launch = problem.launch_elements(problem.a.rows(), 1, problem.block())?;
            csr_plan!(problem, launch, |a| $kernel {
                rows: a.rows() as u32,
                row_ptr: $row_ptr(&a.row_ptr)
            })
        }
    )*};
}

versions! {
    plan_v1 CsrThreadPerElementV1 reread;
    plan_v2 CsrThreadPerElementV2 reread;
    plan_v3 CsrThreadPerElementV3 DeviceBuffer::ptr;
}
