//! Kernels on CSR.

use spm_formats::{Csr, RealScalar, Scalar};
use spm_gpu_kernels::device::{DevicePtr, Output, Real};
use spm_gpu_kernels::emulator::{EmuBuffer, Emulator, EmulatorError};
use spm_gpu_kernels::spmv::*;

use crate::{blocks, product_tests};

/// A CSR matrix, x and y on the emulator.
pub(crate) struct Device<T> {
    pub(crate) rows: u32,
    pub(crate) row_ptr: EmuBuffer<u32>,
    pub(crate) col_ind: EmuBuffer<u32>,
    pub(crate) values: EmuBuffer<T>,
    pub(crate) x: EmuBuffer<T>,
    pub(crate) y: EmuBuffer<T>,
}

impl<T: RealScalar + Real> Device<T> {
    pub(crate) fn new(emulator: &Emulator, a: &Csr<T>, x: &[T]) -> Self {
        Self {
            rows: a.rows() as u32,
            row_ptr: emulator.alloc_from(a.row_ptr()),
            col_ind: emulator.alloc_from(a.col_ind()),
            values: emulator.alloc_from(a.values()),
            x: emulator.alloc_from(x),
            y: emulator.alloc_uninit(a.rows()),
        }
    }

    fn arrays(&self) -> (DevicePtr<u32>, DevicePtr<u32>, DevicePtr<T>) {
        (self.row_ptr.ptr(), self.col_ind.ptr(), self.values.ptr())
    }

    fn vectors(&self) -> (DevicePtr<T>, Output<T>) {
        (self.x.ptr(), self.y.ptr_mut().into())
    }
}

/// The value of a matrix whose entries are all equal.
fn equal_value<T: RealScalar + Real>(a: &Csr<T>) -> T {
    a.values().first().copied().unwrap_or_default()
}

product_tests! {
    on all;
    thread_per_row => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let rows = device.rows;
        let ((row_ptr, col_ind, values), (x, y)) = (device.arrays(), device.vectors());
        let kernel = CsrThreadPerRow { rows, row_ptr, col_ind, values, x, y };
        emulator.launch::<CsrThreadPerRow<_>>(blocks(a.rows(), 96), 96, 0, kernel)?;
        Ok(device.y.to_vec())
    },
    thread_per_row_texture => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let (rows, x) = (device.rows, device.x.texture());
        let ((row_ptr, col_ind, values), (_, y)) = (device.arrays(), device.vectors());
        let kernel = CsrThreadPerRowTexture { rows, row_ptr, col_ind, values, x, y };
        emulator.launch::<CsrThreadPerRowTexture<_>>(blocks(a.rows(), 128), 128, 0, kernel)?;
        Ok(device.y.to_vec())
    },
    warp_per_row => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let rows = device.rows;
        let ((row_ptr, col_ind, values), (x, y)) = (device.arrays(), device.vectors());
        let kernel = CsrWarpPerRow { rows, row_ptr, col_ind, values, x, y };
        emulator.launch::<CsrWarpPerRow<_>>(blocks(a.rows(), 8), (32, 8), 0, kernel)?;
        Ok(device.y.to_vec())
    },
    warp_per_row_shared => warp_per_row_shared,
    subwarps_of_1 => |emulator, a, x| subwarp_per_row(emulator, a, x, 1),
    subwarps_of_2 => |emulator, a, x| subwarp_per_row(emulator, a, x, 2),
    subwarps_of_8 => |emulator, a, x| subwarp_per_row(emulator, a, x, 8),
    subwarps_of_32 => |emulator, a, x| subwarp_per_row(emulator, a, x, 32),
    adaptive => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let tiles = Tiles::new(emulator, a);
        let ((row_ptr, col_ind, values), (x, y)) = (device.arrays(), device.vectors());
        let (partials, shared) = (tiles.partials.ptr_mut(), csr_adaptive_shared_bytes_for(&y));
        let tile_list = tiles.tiles.ptr();
        let kernel =
            CsrAdaptive { tiles: tile_list, row_ptr, col_ind, values, x, partials, y };
        emulator.launch::<CsrAdaptive<_>>(tiles.tiles.len() as u32, 128, shared, kernel)?;
        tiles.combine(emulator, y)?;
        Ok(device.y.to_vec())
    },
    merge => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let path = Path::new(emulator, a);
        let ((row_ptr, col_ind, values), (x, y)) = (device.arrays(), device.vectors());
        let (tile_starts, carries) = (path.tile_starts.ptr(), path.carries.ptr_mut());
        let kernel = CsrMerge { tile_starts, row_ptr, col_ind, values, x, carries, y };
        emulator.launch::<CsrMerge<_>>(path.tiles(), Path::<()>::BLOCK, path.shared, kernel)?;
        path.add_carries(emulator, device.rows, y)?;
        Ok(device.y.to_vec())
    },
    compact => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let (rows, lanes) = (device.rows, 8);
        let ((row_ptr, _, values), (x, y)) = (device.arrays(), device.vectors());
        let (bases, col_offsets) = compact(emulator, a);
        let (bases, col_offsets) = (bases.ptr(), col_offsets.ptr());
        let kernel = CsrCompact { rows, lanes, row_ptr, bases, col_offsets, values, x, y };
        emulator.launch::<CsrCompact<_>>(blocks(a.rows(), 12), 96, 0, kernel)?;
        Ok(device.y.to_vec())
    },
}

product_tests! {
    on all_equal;
    adaptive_equal => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let tiles = Tiles::new(emulator, a);
        let ((row_ptr, col_ind, _), (x, y)) = (device.arrays(), device.vectors());
        let (partials, shared) = (tiles.partials.ptr_mut(), csr_adaptive_shared_bytes_for(&y));
        let (tile_list, value) = (tiles.tiles.ptr(), equal_value(a));
        let kernel =
            CsrAdaptiveEqual { tiles: tile_list, row_ptr, col_ind, value, x, partials, y };
        emulator.launch::<CsrAdaptiveEqual<_>>(tiles.tiles.len() as u32, 256, shared, kernel)?;
        tiles.combine(emulator, y)?;
        Ok(device.y.to_vec())
    },
    merge_equal => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let path = Path::new(emulator, a);
        let ((row_ptr, col_ind, _), (x, y)) = (device.arrays(), device.vectors());
        let (tile_starts, carries) = (path.tile_starts.ptr(), path.carries.ptr_mut());
        let value = equal_value(a);
        let kernel = CsrMergeEqual { tile_starts, row_ptr, col_ind, value, x, carries, y };
        emulator.launch::<CsrMergeEqual<_>>(path.tiles(), Path::<()>::BLOCK, path.shared, kernel)?;
        path.add_carries(emulator, device.rows, y)?;
        Ok(device.y.to_vec())
    },
    compact_equal => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let (rows, lanes, value) = (device.rows, 32, equal_value(a));
        let ((row_ptr, ..), (x, y)) = (device.arrays(), device.vectors());
        let (bases, col_offsets) = compact(emulator, a);
        let (bases, col_offsets) = (bases.ptr(), col_offsets.ptr());
        let kernel = CsrCompactEqual { rows, lanes, row_ptr, bases, col_offsets, value, x, y };
        emulator.launch::<CsrCompactEqual<_>>(blocks(a.rows(), 2), 64, 0, kernel)?;
        Ok(device.y.to_vec())
    },
    subwarps_of_4_equal => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let (rows, lanes, value) = (device.rows, 4, equal_value(a));
        let ((row_ptr, col_ind, _), (x, y)) = (device.arrays(), device.vectors());
        let kernel = CsrSubwarpPerRowEqualScaled { rows, lanes, row_ptr, col_ind, value, x, y };
        emulator.launch::<CsrSubwarpPerRowEqualScaled<_>>(blocks(a.rows(), 16), 64, 0, kernel)?;
        Ok(device.y.to_vec())
    },
}

/// As many threads as rows, as in the report: each warp takes several rows.
fn warp_per_row_shared<T: RealScalar + Real>(
    emulator: &Emulator,
    a: &Csr<T>,
    x: &[T],
) -> Result<Vec<T>, EmulatorError> {
    let device = Device::new(emulator, a, x);
    let rows = device.rows;
    let ((row_ptr, col_ind, values), (x, y)) = (device.arrays(), device.vectors());
    let kernel = CsrWarpPerRowShared { rows, row_ptr, col_ind, values, x, y };
    let shared = csr_warp_per_row_shared_bytes::<T>(128);
    emulator.launch::<CsrWarpPerRowShared<T>>(blocks(a.rows(), 128), 128, shared, kernel)?;
    Ok(device.y.to_vec())
}

fn subwarp_per_row<T: RealScalar + Real>(
    emulator: &Emulator,
    a: &Csr<T>,
    x: &[T],
    lanes: u32,
) -> Result<Vec<T>, EmulatorError> {
    let device = Device::new(emulator, a, x);
    let rows = device.rows;
    let ((row_ptr, col_ind, values), (x, y)) = (device.arrays(), device.vectors());
    let kernel = CsrSubwarpPerRowScaled { rows, lanes, row_ptr, col_ind, values, x, y };
    let grid = blocks(a.rows() * lanes as usize, 64);
    emulator.launch::<CsrSubwarpPerRowScaled<T>>(grid, 64, 0, kernel)?;
    Ok(device.y.to_vec())
}

/// The tiles of CSR-Adaptive on the emulator.
struct Tiles<T> {
    tiles: EmuBuffer<[u32; 4]>,
    long_rows: EmuBuffer<[u32; 4]>,
    partials: EmuBuffer<T>,
}

impl<T: RealScalar + Real> Tiles<T> {
    fn new(emulator: &Emulator, a: &Csr<T>) -> Self {
        let cut = AdaptiveTiles::of(a.row_ptr());
        Self {
            tiles: emulator.alloc_from(&cut.tiles),
            long_rows: emulator.alloc_from(&cut.long_rows),
            partials: emulator.alloc_uninit(cut.partials as usize),
        }
    }

    fn combine(&self, emulator: &Emulator, y: Output<T>) -> Result<(), EmulatorError> {
        let count = self.long_rows.len() as u32;
        if count == 0 {
            return Ok(());
        }
        let (long_rows, partials) = (self.long_rows.ptr(), self.partials.ptr());
        let kernel = CsrAdaptiveCombine { count, long_rows, partials, y };
        emulator.launch::<CsrAdaptiveCombine<T>>(count.div_ceil(2), 64, 0, kernel)
    }
}

/// Shared memory of CSR-Adaptive for the type of `y`.
fn csr_adaptive_shared_bytes_for<T: Real>(_: &Output<T>) -> u32 {
    csr_adaptive_shared_bytes::<T>()
}

/// The merge path on the emulator.
struct Path<T> {
    tile_starts: EmuBuffer<[u32; 2]>,
    carries: EmuBuffer<T>,
    shared: u32,
}

impl Path<()> {
    const BLOCK: u32 = 64;
}

impl<T: RealScalar + Real> Path<T> {
    fn new(emulator: &Emulator, a: &Csr<T>) -> Self {
        let starts = merge_tiles(a.row_ptr(), Path::<()>::BLOCK);
        Self {
            carries: emulator.alloc_uninit(starts.len() - 1),
            tile_starts: emulator.alloc_from(&starts),
            shared: csr_merge_shared_bytes::<T>(Path::<()>::BLOCK),
        }
    }

    fn tiles(&self) -> u32 {
        self.carries.len() as u32
    }

    fn add_carries(
        &self,
        emulator: &Emulator,
        rows: u32,
        y: Output<T>,
    ) -> Result<(), EmulatorError> {
        let (tile_starts, carries) = (self.tile_starts.ptr(), self.carries.ptr());
        let kernel = CsrMergeCarry { tiles: self.tiles(), rows, tile_starts, carries, y };
        emulator.launch::<CsrMergeCarry<T>>(self.tiles().div_ceil(4), 128, 0, kernel)
    }
}

/// Row bases and 16-bit columns on the emulator.
fn compact<T: Scalar>(emulator: &Emulator, a: &Csr<T>) -> (EmuBuffer<u32>, EmuBuffer<u16>) {
    let columns = compact_columns(a.row_ptr(), a.col_ind());
    let (bases, offsets) = columns.expect("fewer than 2^16 columns");
    (emulator.alloc_from(&bases), emulator.alloc_from(&offsets))
}
