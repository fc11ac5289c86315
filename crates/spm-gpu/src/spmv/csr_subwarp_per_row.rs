//! Plan of `gpu-kernels/src/spmv/csr_subwarp_per_row.rs`.

use std::sync::Arc;

use spm_formats::MemoryBudget;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::{CsrSubwarpPerRow, CsrSubwarpPerRowEqual};

use super::on_device::Source;
use super::parameters::{DROP_EQUAL, LANES, R2_BLOCKS, WARP, block, fitting_lanes, warps};
use super::{BoxedPlan, product};
use crate::launch::Launch;
use crate::matrix::{DeviceCsr, DeviceMatrix};
use crate::plan::DeviceScalar;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-subwarp-per-row",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "own; after Bell and Garland, SC'09",
    summary: "CSR, 1 to 32 threads for each row",
    parameters: &[block(256, R2_BLOCKS), LANES, DROP_EQUAL],
};

/// The CSR matrix, and the common value of all entries if the values are not read.
struct Csr<T> {
    csr: Arc<DeviceCsr<T>>,
    equal: Option<T>,
}

impl<T: DeviceScalar> DeviceMatrix for Csr<T> {
    fn shape(&self) -> (usize, usize) {
        (self.csr.rows(), self.csr.cols())
    }

    fn bytes(&self) -> u64 {
        self.csr.bytes() - self.rarely_read_bytes()
    }

    fn rarely_read_bytes(&self) -> u64 {
        if self.equal.is_some() { self.csr.values.bytes() as u64 } else { 0 }
    }
}

pub(super) fn on_device<T: DeviceScalar>(
    a: &Source<T>,
    parameters: &Parameters,
    _: &MemoryBudget,
) -> Result<BoxedPlan<T>, PlanError> {
    let device = a.csr.device().clone();
    let lanes = parameters
        .choice("threads-per-row")
        .parse()
        .unwrap_or_else(|_| fitting_lanes(a.mean_row()));
    let block = warps(INFO.id, parameters)? * WARP;
    let launch = Launch::over(INFO.id, &device, a.csr.rows(), block / lanes, block)?;
    let (rows, lanes) = (a.csr.rows() as u32, lanes as u32);
    let equal = a.stats.equal.filter(|_| parameters.switch(DROP_EQUAL.name));
    let a = Csr { csr: Arc::clone(&a.csr), equal };
    Ok(product(&device, a, move |a, x, y, stream| {
        let device = stream.device();
        let (pointers, col_indices) = (a.csr.pointers.ptr(), a.csr.col_indices.ptr());
        let (x, y) = (x.ptr(), y.ptr_mut());
        // SAFETY: verified CSR arrays, and vectors of the lengths of their shape.
        unsafe {
            match a.equal {
                None => {
                    let values = a.csr.values.ptr();
                    let args =
                        CsrSubwarpPerRow { rows, lanes, pointers, col_indices, values, x, y };
                    device.launch::<CsrSubwarpPerRow<T>>(launch, stream, args)
                }
                Some(value) => {
                    let args =
                        CsrSubwarpPerRowEqual { rows, lanes, pointers, col_indices, value, x, y };
                    device.launch::<CsrSubwarpPerRowEqual<T>>(launch, stream, args)
                }
            }
        }
    }))
}
