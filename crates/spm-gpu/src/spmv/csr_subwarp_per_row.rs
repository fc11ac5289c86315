//! Plan of `gpu-kernels/src/spmv/csr_subwarp_per_row.rs`.

use spm_formats::kernel::{
    Backend, KernelInfo, Operation, ParameterSpec, Parameters, PlanError, Value,
};
use spm_formats::{CsrArrays, CsrView};
use spm_gpu_kernels::spmv::{CsrSubwarpPerRow, CsrSubwarpPerRowEqual};

use super::parameters::{DROP_EQUAL, R2_BLOCKS, WARP, block, warps};
use super::{BoxedPlan, product};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::{DeviceCsr, EqualCsr};
use crate::plan::{DeviceScalar, PlanOptions};

const LANES: ParameterSpec = ParameterSpec {
    name: "lanes",
    meaning: "threads of a row; auto takes a quarter of the mean row length, rounded up to a power of two",
    default: Value::Choice("auto"),
    studied: &[
        Value::Choice("auto"),
        Value::Choice("1"),
        Value::Choice("2"),
        Value::Choice("4"),
        Value::Choice("8"),
        Value::Choice("16"),
        Value::Choice("32"),
    ],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-subwarp-per-row",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "own; after Bell and Garland, SC'09",
    summary: "CSR, 1 to 32 threads for each row",
    parameters: &[block(256, R2_BLOCKS), LANES, DROP_EQUAL],
};

/// The lanes asked for, or those that fit the mean length of the rows that have entries.
fn lanes<T: DeviceScalar>(a: &CsrArrays<'_, T>, parameters: &Parameters) -> usize {
    parameters.choice("lanes").parse().unwrap_or_else(|_| {
        let filled = a.pointers().windows(2).filter(|pair| pair[0] < pair[1]).count();
        let mean = a.entries() / filled.max(1);
        mean.div_ceil(4).next_power_of_two().min(WARP)
    })
}

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: &CsrView<'_, T>,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let a = CsrArrays::new(a)?;
    let (rows, lanes) = (a.rows() as u32, lanes(&a, parameters));
    let block = warps(INFO.id, parameters)? * WARP;
    let launch = Launch::over(INFO.id, device, a.rows(), block / lanes, block)?;
    let lanes = lanes as u32;
    if parameters.switch(DROP_EQUAL.name)
        && let Some(a) = EqualCsr::new(device, &a)?
    {
        return Ok(product(device, a, move |a, x, y, stream| {
            let args = CsrSubwarpPerRowEqual {
                rows,
                lanes,
                pointers: a.pointers.ptr(),
                col_indices: a.col_indices.ptr(),
                value: a.value,
                x: x.ptr(),
                y: y.ptr_mut(),
            };
            // SAFETY: verified CSR arrays, and vectors of the lengths of their shape.
            unsafe { stream.device().launch::<CsrSubwarpPerRowEqual<T>>(launch, stream, args) }
        }));
    }
    let a = DeviceCsr::new(device, &a)?;
    Ok(product(device, a, move |a, x, y, stream| {
        let args = CsrSubwarpPerRow {
            rows,
            lanes,
            pointers: a.pointers.ptr(),
            col_indices: a.col_indices.ptr(),
            values: a.values.ptr(),
            x: x.ptr(),
            y: y.ptr_mut(),
        };
        // SAFETY: as above.
        unsafe { stream.device().launch::<CsrSubwarpPerRow<T>>(launch, stream, args) }
    }))
}
