//! Plan of `gpu-kernels/src/spmv/csr_merge.rs`.

use spm_formats::kernel::{KernelInfo, PlanError};
use spm_gpu_kernels::spmv::{
    CsrMerge, CsrMergeCarry, CsrMergeEqual, csr_merge_shared_bytes, merge_tiles,
};

use super::KERNEL;
use super::parameters::{DROP_EQUAL, R2_BLOCKS, block};
use crate::launch::WARP;
use crate::matrix::{DeviceValues, ReducedCsr, With};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::problem::{HostProblem, Planned, Problem};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-merge",
    source: "own; after Merrill and Garland, SC'16",
    summary: "CSR by merge path: the same number of entries and row ends for each thread",
    parameters: &[block(128, R2_BLOCKS), DROP_EQUAL],
    ..KERNEL
};

pub(super) fn plan<T: DeviceReal>(problem: HostProblem<'_, T>) -> Planned<T> {
    let Problem { device, a, parameters, .. } = problem;
    check_steps(a.rows(), a.nnz())?;
    let rows = a.rows() as u32;
    let warps = problem.warps()?;
    // Checks the size of the block before the tiles are cut for it.
    let block = problem.launch(1, 1, warps * WARP)?.block.x;
    let starts = merge_tiles(a.row_ptr(), block);
    let tiles = starts.len() - 1;
    let launch = problem
        .launch(tiles, 1, warps * WARP)?
        .with_shared_bytes(csr_merge_shared_bytes::<T>(block));
    let add_carries = problem.launch(tiles, warps, warps * WARP)?;
    let mut carries = DeviceBuffer::<T>::uninitialized(device, tiles)?;
    let starts = DeviceBuffer::from_slice(device, &starts)?;
    let a = With {
        matrix: ReducedCsr::new(device, a, parameters.switch(DROP_EQUAL.name))?,
        extra_bytes: starts.bytes(),
        scratch_bytes: carries.bytes(),
        extra: starts,
    };
    Ok(problem.product_with_scratch(a, 0, move |a, x, y, stream| {
        let tile_starts = a.extra.ptr();
        macro_rules! launch {
            ($kernel:ident { $field:ident: $value:expr }) => {{
                let args = $kernel {
                    tile_starts,
                    row_ptr: a.matrix.row_ptr.ptr(),
                    col_ind: a.matrix.col_ind.ptr(),
                    $field: $value,
                    x: x.ptr(),
                    carries: carries.ptr_mut(),
                    y: y.output(),
                };
                // SAFETY: verified CSR arrays with the tiles for this block and a carry for each,
                // and vectors of the lengths of their shape.
                unsafe { stream.device().launch::<$kernel<T>>(launch, stream, args)? }
            }};
        }
        match &a.matrix.values {
            DeviceValues::Stored(values) => launch!(CsrMerge { values: values.ptr() }),
            &DeviceValues::Equal(value) => launch!(CsrMergeEqual { value: value }),
        }
        let (carries, y, tiles) = (carries.ptr(), y.output(), tiles as u32);
        let args = CsrMergeCarry { tiles, rows, tile_starts, carries, y };
        // SAFETY: a carry for each tile, whose row lies in y.
        unsafe { stream.device().launch::<CsrMergeCarry<T>>(add_carries, stream, args) }
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
