//! Plan of `gpu-kernels/src/spmv/csr_compact.rs`.

use spm_formats::CsrView;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::{CsrCompact, CsrCompactEqual, compact_columns};

use super::parameters::{DROP_EQUAL, LANES, R2_BLOCKS, WARP, block, lanes, warps};
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::{DeviceMatrix, DeviceValues};
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-compact",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "own",
    summary: "CSR with 16-bit columns from a base for each row, 1 to 32 threads for each row",
    parameters: &[block(256, R2_BLOCKS), LANES, DROP_EQUAL],
};

struct CompactCsr<T> {
    shape: (usize, usize),
    pointers: DeviceBuffer<u32>,
    bases: DeviceBuffer<u32>,
    col_offsets: DeviceBuffer<u16>,
    values: DeviceValues<T>,
}

impl<T: DeviceScalar> DeviceMatrix for CompactCsr<T> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn bytes(&self) -> u64 {
        let columns = self.bases.bytes() + self.col_offsets.bytes();
        (self.pointers.bytes() + columns + self.values.bytes()) as u64
    }
}

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let (rows, lanes) = (a.rows() as u32, lanes(a, parameters));
    let block = warps(INFO.id, parameters)? * WARP;
    let launch = Launch::over(INFO.id, device, a.rows(), block / lanes, block)?;
    let lanes = lanes as u32;
    let Some((bases, col_offsets)) = compact_columns(a.row_ptr(), a.col_ind()) else {
        let reason = "a row spans more than 2^16 columns".to_owned();
        return Err(PlanError::Unsupported { kernel: INFO.id, reason });
    };
    let drop_equal = parameters.switch(DROP_EQUAL.name);
    let a = CompactCsr {
        shape: (a.rows(), a.cols()),
        pointers: DeviceBuffer::from_slice(device, a.row_ptr())?,
        bases: DeviceBuffer::from_slice(device, &bases)?,
        col_offsets: DeviceBuffer::from_slice(device, &col_offsets)?,
        values: DeviceValues::new(device, a.values(), a.values(), drop_equal)?,
    };
    Ok(product(device, a, move |a, x, y, stream| {
        let device = stream.device();
        let (pointers, bases) = (a.pointers.ptr(), a.bases.ptr());
        let col_offsets = a.col_offsets.ptr();
        let (x, y) = (x.ptr(), y.ptr_mut());
        // SAFETY: the arrays of a verified CSR matrix, and vectors of the lengths of its shape.
        unsafe {
            match &a.values {
                DeviceValues::Stored(values) => {
                    let values = values.ptr();
                    let args =
                        CsrCompact { rows, lanes, pointers, bases, col_offsets, values, x, y };
                    device.launch::<CsrCompact<T>>(launch, stream, args)
                }
                &DeviceValues::Equal(value) => {
                    let args =
                        CsrCompactEqual { rows, lanes, pointers, bases, col_offsets, value, x, y };
                    device.launch::<CsrCompactEqual<T>>(launch, stream, args)
                }
            }
        }
    }))
}
