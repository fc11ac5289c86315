//! Plan of `gpu-kernels/src/spmv/csr_adaptive.rs`.

use spm_formats::kernel::KernelInfo;
use spm_gpu_kernels::spmv::{
    AdaptiveTiles, CsrAdaptive, CsrAdaptiveCombine, CsrAdaptiveEqual, csr_adaptive_shared_bytes,
};

use super::KERNEL;
use super::parameters::{DROP_EQUAL, R2_BLOCKS, block};
use crate::launch::WARP;
use crate::matrix::{DeviceValues, ReducedCsr, With};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-adaptive",
    source: "own; after Greathouse and Daga, SC'14",
    summary: "CSR, blocks of about the same number of entries, long rows split, no atomics",
    parameters: &[block(256, R2_BLOCKS), DROP_EQUAL],
    ..KERNEL
};

struct Tiles {
    tiles: DeviceBuffer<[u32; 4]>,
    long_rows: DeviceBuffer<[u32; 4]>,
}

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, parameters, .. } = problem;
    let warps = problem.warps()?;
    let cut = AdaptiveTiles::of(a.row_ptr());
    let launch = problem
        .launch(cut.tiles.len(), 1, warps * WARP)?
        .with_shared_bytes(csr_adaptive_shared_bytes::<T>());
    let combine = problem.launch(cut.long_rows.len(), warps, warps * WARP)?;
    let mut partials = DeviceBuffer::<T>::uninitialized(device, cut.partials as usize)?;
    let tiles = DeviceBuffer::from_slice(device, &cut.tiles)?;
    let long_rows = DeviceBuffer::from_slice(device, &cut.long_rows)?;
    let a = With {
        matrix: ReducedCsr::new(device, a, parameters.switch(DROP_EQUAL.name))?,
        extra_bytes: tiles.bytes() + long_rows.bytes(),
        scratch_bytes: partials.bytes(),
        extra: Tiles { tiles, long_rows },
    };
    Ok(problem.product_with_scratch(a, 0, move |a, x, y, stream| {
        macro_rules! launch {
            ($kernel:ident { $field:ident: $value:expr }) => {{
                let args = $kernel {
                    tiles: a.extra.tiles.ptr(),
                    row_ptr: a.matrix.row_ptr.ptr(),
                    col_ind: a.matrix.col_ind.ptr(),
                    $field: $value,
                    x: x.ptr(),
                    partials: partials.ptr_mut(),
                    y: y.output(),
                };
                // SAFETY: verified CSR arrays with their tiles and partial sums, and vectors of the
                // lengths of their shape.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args)? }
            }};
        }
        match &a.matrix.values {
            DeviceValues::Stored(values) => launch!(CsrAdaptive { values: values.ptr() }),
            &DeviceValues::Equal(value) => launch!(CsrAdaptiveEqual { value: value }),
        }
        if a.extra.long_rows.is_empty() {
            return Ok(());
        }
        let args = CsrAdaptiveCombine {
            count: a.extra.long_rows.len() as u32,
            long_rows: a.extra.long_rows.ptr(),
            partials: partials.ptr(),
            y: y.output(),
        };
        // SAFETY: the long rows lie in y, and there is a partial sum for each of their tiles.
        unsafe { stream.device().launch::<CsrAdaptiveCombine<T>>(combine, stream, args) }
    }))
}
