//! Plan of `gpu-kernels/src/spmv/csr_subwarp_per_row.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::{
    CsrSubwarpPerRow, CsrSubwarpPerRowEqual, CsrSubwarpPerRowEqualScaled, CsrSubwarpPerRowScaled,
};

use super::KERNEL;
use super::parameters::{DROP_EQUAL, LANES, R2_BLOCKS, block, fitting_lanes};
use crate::convert::COMPRESSED;
use crate::error::GpuError;
use crate::launch::WARP;
use crate::matrix::{DeviceMatrix, PlanCsr};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::stream::Stream;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-subwarp-per-row",
    source: "own; after Bell and Garland, SC'09",
    summary: "CSR, 1 to 32 threads for each row",
    parameters: &[block(256, R2_BLOCKS), LANES, DROP_EQUAL],
    ..KERNEL
};

/// The CSR matrix, and the common value of all entries if the values are not read.
struct Csr<T> {
    csr: PlanCsr<T>,
    equal: Option<T>,
}

impl<T: DeviceScalar> Csr<T> {
    fn unread_bytes(&self) -> u64 {
        if self.equal.is_some() { self.csr.value_bytes() } else { 0 }
    }
}

impl<T: DeviceScalar> DeviceMatrix for Csr<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        (self.csr.rows(), self.csr.cols())
    }

    fn bytes(&self) -> u64 {
        self.csr.bytes() - self.unread_bytes()
    }

    fn rarely_read_bytes(&self) -> u64 {
        self.csr.rarely_read_bytes() + self.unread_bytes()
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        if self.equal.is_some() {
            return Err(COMPRESSED);
        }
        self.csr.set_values(values, stream)
    }
}

pub(super) fn on_device<T: DeviceScalar>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { a, parameters, .. } = problem;
    let lanes = parameters
        .choice("threads-per-row")
        .parse()
        .unwrap_or_else(|_| fitting_lanes(a.mean_row()));
    let block = problem.warps()? * WARP;
    let launch = problem.launch(a.csr.rows(), block / lanes, block)?;
    let (rows, lanes) = (a.csr.rows() as u32, lanes as u32);
    let equal = a.stats.equal.filter(|_| parameters.switch(DROP_EQUAL.name));
    let a = Csr { csr: PlanCsr::new(a)?, equal };
    Ok(problem.product(a, 0, move |a, x, y, stream| {
        macro_rules! launch {
            ($kernel:ident { $field:ident: $value:expr }, $y:expr) => {{
                let args = $kernel {
                    rows,
                    lanes,
                    row_ptr: a.csr.row_ptr(),
                    col_ind: a.csr.col_ind(),
                    $field: $value,
                    x: x.ptr(),
                    y: $y,
                };
                // SAFETY: verified CSR arrays, and vectors of the lengths of their shape.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args) }
            }};
        }
        match (a.equal, y.plain()) {
            (None, Some(y)) => launch!(CsrSubwarpPerRow { values: a.csr.values() }, y),
            (None, None) => launch!(CsrSubwarpPerRowScaled { values: a.csr.values() }, y.output()),
            (Some(value), Some(y)) => launch!(CsrSubwarpPerRowEqual { value: value }, y),
            (Some(value), None) => {
                launch!(CsrSubwarpPerRowEqualScaled { value: value }, y.output())
            }
        }
    }))
}
