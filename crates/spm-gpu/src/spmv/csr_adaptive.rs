//! Plan of `gpu-kernels/src/spmv/csr_adaptive.rs`.

use spm_formats::CsrView;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::{
    AdaptiveTiles, CsrAdaptive, CsrAdaptiveCombine, CsrAdaptiveEqual, csr_adaptive_shared_bytes,
};

use super::parameters::{DROP_EQUAL, R2_BLOCKS, WARP, block, warps};
use super::{BoxedPlan, product_with_scratch};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::{DeviceValues, ReducedCsr, With};
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-adaptive",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "own; after Greathouse and Daga, SC'14",
    summary: "CSR, blocks of about the same number of entries, long rows split, no atomics",
    parameters: &[block(256, R2_BLOCKS), DROP_EQUAL],
};

struct Tiles {
    tiles: DeviceBuffer<[u32; 4]>,
    long_rows: DeviceBuffer<[u32; 4]>,
}

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    let warps = warps(INFO.id, parameters)?;
    let cut = AdaptiveTiles::of(a.row_ptr());
    let launch = Launch::over(INFO.id, device, cut.tiles.len(), 1, warps * WARP)?
        .with_shared_bytes(csr_adaptive_shared_bytes::<T>());
    let combine = Launch::over(INFO.id, device, cut.long_rows.len(), warps, warps * WARP)?;
    let mut partials = DeviceBuffer::<T>::uninitialized(device, cut.partials as usize)?;
    let tiles = DeviceBuffer::from_slice(device, &cut.tiles)?;
    let long_rows = DeviceBuffer::from_slice(device, &cut.long_rows)?;
    let a = With {
        matrix: ReducedCsr::new(device, a, parameters.switch(DROP_EQUAL.name))?,
        extra_bytes: tiles.bytes() + long_rows.bytes(),
        scratch_bytes: partials.bytes(),
        extra: Tiles { tiles, long_rows },
    };
    Ok(product_with_scratch(device, a, move |a, x, y, stream| {
        let device = stream.device();
        let (tiles, long_rows) = (a.extra.tiles.ptr(), a.extra.long_rows.ptr());
        let (pointers, col_indices) = (a.matrix.pointers.ptr(), a.matrix.col_indices.ptr());
        let (x, y) = (x.ptr(), y.ptr_mut());
        let written = partials.ptr_mut();
        // SAFETY: verified CSR arrays with their tiles and partial sums, and vectors of the lengths
        // of their shape.
        unsafe {
            match &a.matrix.values {
                DeviceValues::Stored(values) => {
                    let (values, partials) = (values.ptr(), written);
                    let args = CsrAdaptive { tiles, pointers, col_indices, values, x, partials, y };
                    device.launch::<CsrAdaptive<T>>(launch, stream, args)?;
                }
                &DeviceValues::Equal(value) => {
                    let partials = written;
                    let args =
                        CsrAdaptiveEqual { tiles, pointers, col_indices, value, x, partials, y };
                    device.launch::<CsrAdaptiveEqual<T>>(launch, stream, args)?;
                }
            }
            if a.extra.long_rows.is_empty() {
                return Ok(());
            }
            let (count, partials) = (a.extra.long_rows.len() as u32, partials.ptr());
            let args = CsrAdaptiveCombine { count, long_rows, partials, y };
            device.launch::<CsrAdaptiveCombine<T>>(combine, stream, args)
        }
    }))
}
