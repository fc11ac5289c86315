//! Plan of `gpu-kernels/src/spmv/csr_merge.rs`.

use spm_formats::CsrView;
use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_gpu_kernels::spmv::{
    CsrMerge, CsrMergeCarry, CsrMergeEqual, csr_merge_shared_bytes, merge_tiles,
};

use super::parameters::{DROP_EQUAL, R2_BLOCKS, WARP, block, warps};
use super::{BoxedPlan, product_with_scratch};
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::{DeviceValues, ReducedCsr, With};
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceScalar, PlanOptions};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-merge",
    operation: Operation::Spmv,
    backend: Backend::Gpu,
    source: "own; after Merrill and Garland, SC'16",
    summary: "CSR by merge path: the same number of entries and row ends for each thread",
    parameters: &[block(128, R2_BLOCKS), DROP_EQUAL],
};

pub(super) fn plan<T: DeviceScalar>(
    device: &Device,
    a: CsrView<'_, T>,
    parameters: &Parameters,
    _: &PlanOptions,
) -> Result<BoxedPlan<T>, PlanError> {
    check_steps(a.rows(), a.nnz())?;
    let rows = a.rows() as u32;
    let warps = warps(INFO.id, parameters)?;
    // Checks the size of the block before the tiles are cut for it.
    let block = Launch::over(INFO.id, device, 1, 1, warps * WARP)?.block.x;
    let starts = merge_tiles(a.row_ptr(), block);
    let tiles = starts.len() - 1;
    let launch = Launch::over(INFO.id, device, tiles, 1, warps * WARP)?
        .with_shared_bytes(csr_merge_shared_bytes::<T>(block));
    let add_carries = Launch::over(INFO.id, device, tiles, warps, warps * WARP)?;
    let mut carries = DeviceBuffer::<T>::uninitialized(device, tiles)?;
    let starts = DeviceBuffer::from_slice(device, &starts)?;
    let a = With {
        matrix: ReducedCsr::new(device, a, parameters.switch(DROP_EQUAL.name))?,
        extra_bytes: starts.bytes(),
        scratch_bytes: carries.bytes(),
        extra: starts,
    };
    Ok(product_with_scratch(device, a, move |a, x, y, stream| {
        let device = stream.device();
        let tile_starts = a.extra.ptr();
        let (pointers, col_indices) = (a.matrix.pointers.ptr(), a.matrix.col_indices.ptr());
        let (x, y) = (x.ptr(), y.ptr_mut());
        let written = carries.ptr_mut();
        // SAFETY: verified CSR arrays with the tiles for this block and a carry for each, and
        // vectors of the lengths of their shape.
        unsafe {
            match &a.matrix.values {
                DeviceValues::Stored(values) => {
                    let (values, carries) = (values.ptr(), written);
                    let args =
                        CsrMerge { tile_starts, pointers, col_indices, values, x, carries, y };
                    device.launch::<CsrMerge<T>>(launch, stream, args)?;
                }
                &DeviceValues::Equal(value) => {
                    let carries = written;
                    let args =
                        CsrMergeEqual { tile_starts, pointers, col_indices, value, x, carries, y };
                    device.launch::<CsrMergeEqual<T>>(launch, stream, args)?;
                }
            }
            let carries = carries.ptr();
            let args = CsrMergeCarry { tiles: tiles as u32, rows, tile_starts, carries, y };
            device.launch::<CsrMergeCarry<T>>(add_carries, stream, args)
        }
    }))
}

/// Refuses a path with more steps than 32 bits number.
fn check_steps(rows: usize, entries: usize) -> Result<(), PlanError> {
    let steps = rows as u64 + entries as u64;
    if u32::try_from(steps).is_ok() {
        return Ok(());
    }
    let reason = format!("{steps} rows and entries are more than 32 bits number");
    Err(PlanError::Unsupported { kernel: INFO.id, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_beyond_32_bits_is_refused() {
        assert!(check_steps(1 << 31, (1 << 31) - 1).is_ok());
        let error = check_steps(1 << 31, 1 << 31).unwrap_err().to_string();
        assert!(error.contains("4294967296 rows and entries"), "{error}");
    }
}
