//! Plan of `gpu-kernels/src/spmv/csr_subwarp_per_row.rs`.

use spm_formats::kernel::{KernelInfo, PlanError};
use spm_gpu_kernels::spmv::{
    CsrSubwarpPerRow, CsrSubwarpPerRowEqual, CsrSubwarpPerRowEqualScaled, CsrSubwarpPerRowScaled,
};

use super::KERNEL;
use super::parameters::{DROP_EQUAL, LANES, R2_BLOCKS, block, fitting_lanes};
use crate::convert::COMPRESSED;
use crate::error::GpuError;
use crate::launch::{Launch, WARP};
use crate::matrix::{DeviceMatrix, PlanCsr};
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceReal, DeviceScalar};
use crate::problem::{DeviceProblem, Planned, Problem};
use crate::stream::Stream;

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-subwarp-per-row",
    source: "own; after Bell and Garland, SC'09",
    summary: "CSR, 1 to 32 threads for each row",
    parameters: &[block(256, R2_BLOCKS), LANES, DROP_EQUAL],
    ..KERNEL
};

/// Of a complex matrix.
pub(super) const COMPLEX: KernelInfo =
    KernelInfo { parameters: &[block(256, R2_BLOCKS), LANES], ..INFO };

/// A CSR matrix whose values are not read.
struct Unread<T>(PlanCsr<T>);

impl<T: DeviceReal> DeviceMatrix for Unread<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    fn bytes(&self) -> u64 {
        self.0.bytes() - self.0.value_bytes()
    }

    fn rarely_read_bytes(&self) -> u64 {
        self.0.rarely_read_bytes() + self.0.value_bytes()
    }

    fn set_values(&mut self, _: &DeviceBuffer<T>, _: &Stream) -> Result<(), GpuError> {
        Err(COMPRESSED)
    }
}

pub(super) fn on_device<T: DeviceReal>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let Problem { a, parameters, .. } = problem;
    match a.values()?.equal.filter(|_| parameters.switch(DROP_EQUAL.name)) {
        Some(value) => equal(problem, value),
        None => stored(problem),
    }
}

/// The launch of a thread for each of `lanes` threads of a row: rows, lanes, blocks.
fn shape<T: DeviceScalar>(problem: &DeviceProblem<'_, T>) -> Result<(u32, u32, Launch), PlanError> {
    let Problem { a, parameters, .. } = problem;
    let lanes: usize = parameters
        .choice("threads-per-row")
        .parse()
        .unwrap_or_else(|_| fitting_lanes(a.mean_row()));
    let block = problem.warps()? * WARP;
    let launch = problem.launch(a.csr.rows(), block / lanes, block)?;
    Ok((a.csr.rows() as u32, lanes as u32, launch))
}

/// Calls a kernel with the fields that all of them have.
macro_rules! launch {
    ($kernel:ident { $field:ident: $value:expr }, $csr:expr, $shape:expr, $x:ident, $y:expr, $stream:ident) => {{
        let (rows, lanes, launch) = $shape;
        let args = $kernel {
            rows,
            lanes,
            row_ptr: $csr.row_ptr(),
            col_ind: $csr.col_ind(),
            $field: $value,
            x: $x.ptr(),
            y: $y,
        };
        // SAFETY: verified CSR arrays, and vectors of the lengths of their shape.
        unsafe { $stream.device().launch::<$kernel<T>>(launch, $stream, args) }
    }};
}

/// The plan that reads the values; that for [`COMPLEX`].
pub(super) fn stored<T: DeviceScalar>(problem: DeviceProblem<'_, T>) -> Planned<T> {
    let shape = shape(&problem)?;
    Ok(problem.product(PlanCsr::new(problem.a)?, 0, move |a, x, y, stream| {
        let values = a.values();
        match y.plain() {
            Some(y) => launch!(CsrSubwarpPerRow { values: values }, a, shape, x, y, stream),
            None => {
                launch!(CsrSubwarpPerRowScaled { values: values }, a, shape, x, y.output(), stream)
            }
        }
    }))
}

/// The plan for a matrix whose entries all have the value `value`.
fn equal<T: DeviceReal>(problem: DeviceProblem<'_, T>, value: T) -> Planned<T> {
    let shape = shape(&problem)?;
    Ok(problem.product(Unread(PlanCsr::new(problem.a)?), 0, move |a, x, y, stream| {
        match y.plain() {
            Some(y) => launch!(CsrSubwarpPerRowEqual { value: value }, a.0, shape, x, y, stream),
            None => {
                let y = y.output();
                launch!(CsrSubwarpPerRowEqualScaled { value: value }, a.0, shape, x, y, stream)
            }
        }
    }))
}
