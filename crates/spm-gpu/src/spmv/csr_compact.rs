//! Plan of `gpu-kernels/src/spmv/csr_compact.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::{CsrCompact, CsrCompactEqual, compact_columns};

use super::KERNEL;
use super::parameters::{DROP_EQUAL, LANES, R2_BLOCKS, block, lanes};
use crate::launch::WARP;
use crate::matrix::{DeviceMatrix, DeviceValues};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-compact",
    source: "own",
    summary: "CSR with 16-bit columns from a base for each row, 1 to 32 threads for each row",
    parameters: &[block(256, R2_BLOCKS), LANES, DROP_EQUAL],
    ..KERNEL
};

struct CompactCsr<T> {
    shape: (usize, usize),
    row_ptr: DeviceBuffer<u32>,
    bases: DeviceBuffer<u32>,
    col_offsets: DeviceBuffer<u16>,
    values: DeviceValues<T>,
}

impl<T: DeviceReal> DeviceMatrix for CompactCsr<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn bytes(&self) -> u64 {
        let columns = self.bases.bytes() + self.col_offsets.bytes();
        (self.row_ptr.bytes() + columns + self.values.bytes()) as u64
    }
}

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, parameters, .. } = problem;
    let (rows, lanes) = (a.rows() as u32, lanes(a, parameters));
    let block = problem.warps()? * WARP;
    let launch = problem.launch(a.rows(), block / lanes, block)?;
    let lanes = lanes as u32;
    let Some((bases, col_offsets)) = compact_columns(a.row_ptr(), a.col_ind()) else {
        let reason = "a row spans more than 2^16 columns".to_owned();
        return Err(problem.unsupported(reason));
    };
    let drop_equal = parameters.switch(DROP_EQUAL.name);
    let a = CompactCsr {
        shape: (a.rows(), a.cols()),
        row_ptr: DeviceBuffer::from_slice(device, a.row_ptr())?,
        bases: DeviceBuffer::from_slice(device, &bases)?,
        col_offsets: DeviceBuffer::from_slice(device, &col_offsets)?,
        values: DeviceValues::new(device, a.values(), a.values(), drop_equal)?,
    };
    let launch = problem.loading(&a, launch);
    Ok(problem.product(a, 0, move |a, x, y, stream| {
        macro_rules! launch {
            ($kernel:ident { $field:ident: $value:expr }) => {{
                let args = $kernel {
                    rows,
                    lanes,
                    row_ptr: a.row_ptr.ptr(),
                    bases: a.bases.ptr(),
                    col_offsets: a.col_offsets.ptr(),
                    $field: $value,
                    x: x.ptr(),
                    y: y.output(),
                };
                // SAFETY: the arrays of a verified CSR matrix, and vectors of the lengths of its
                // shape.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        match &a.values {
            DeviceValues::Stored(values) => launch!(CsrCompact { values: values.ptr() }),
            &DeviceValues::Equal(value) => launch!(CsrCompactEqual { value: value }),
        }
    }))
}
