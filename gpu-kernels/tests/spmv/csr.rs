//! Kernels on CSR.

use spm_formats::csr::arrays;
use spm_formats::{Csr, Scalar};
use spm_gpu_kernels::device::{DevicePtr, DevicePtrMut, Real};
use spm_gpu_kernels::emulator::{EmuBuffer, Emulator, EmulatorError};
use spm_gpu_kernels::spmv::*;

use crate::{blocks, product_tests};

/// A CSR matrix, x and y on the emulator.
pub(crate) struct Device<T> {
    pub(crate) rows: u32,
    pub(crate) pointers: EmuBuffer<u32>,
    pub(crate) col_indices: EmuBuffer<u32>,
    pub(crate) values: EmuBuffer<T>,
    pub(crate) x: EmuBuffer<T>,
    pub(crate) y: EmuBuffer<T>,
}

impl<T: Scalar + Real> Device<T> {
    pub(crate) fn new(emulator: &Emulator, a: &Csr<T>, x: &[T]) -> Self {
        let view = a.view();
        let (pointers, col_indices, values) = arrays(&view);
        Self {
            rows: a.rows() as u32,
            pointers: emulator.alloc_from(pointers),
            col_indices: emulator.alloc_from(col_indices),
            values: emulator.alloc_from(values),
            x: emulator.alloc_from(x),
            y: emulator.alloc_uninit(a.rows()),
        }
    }

    fn arrays(&self) -> (DevicePtr<u32>, DevicePtr<u32>, DevicePtr<T>) {
        (self.pointers.ptr(), self.col_indices.ptr(), self.values.ptr())
    }

    fn vectors(&self) -> (DevicePtr<T>, DevicePtrMut<T>) {
        (self.x.ptr(), self.y.ptr_mut())
    }
}

/// The value of a matrix whose entries are all equal.
fn equal_value<T: Scalar + Real>(a: &Csr<T>) -> T {
    a.data().first().copied().unwrap_or_default()
}

product_tests! {
    on all;
    thread_per_row => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let rows = device.rows;
        let ((pointers, col_indices, values), (x, y)) = (device.arrays(), device.vectors());
        let kernel = CsrThreadPerRow { rows, pointers, col_indices, values, x, y };
        emulator.launch::<CsrThreadPerRow<_>>(blocks(a.rows(), 96), 96, 0, kernel)?;
        Ok(device.y.to_vec())
    },
    thread_per_row_texture => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let (rows, x) = (device.rows, device.x.texture());
        let ((pointers, col_indices, values), (_, y)) = (device.arrays(), device.vectors());
        let kernel = CsrThreadPerRowTexture { rows, pointers, col_indices, values, x, y };
        emulator.launch::<CsrThreadPerRowTexture<_>>(blocks(a.rows(), 128), 128, 0, kernel)?;
        Ok(device.y.to_vec())
    },
    warp_per_row => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let rows = device.rows;
        let ((pointers, col_indices, values), (x, y)) = (device.arrays(), device.vectors());
        let kernel = CsrWarpPerRow { rows, pointers, col_indices, values, x, y };
        emulator.launch::<CsrWarpPerRow<_>>(blocks(a.rows(), 8), (32, 8), 0, kernel)?;
        Ok(device.y.to_vec())
    },
    warp_per_row_shared => warp_per_row_shared,
    subwarps_of_1 => |emulator, a, x| subwarp_per_row(emulator, a, x, 1),
    subwarps_of_2 => |emulator, a, x| subwarp_per_row(emulator, a, x, 2),
    subwarps_of_8 => |emulator, a, x| subwarp_per_row(emulator, a, x, 8),
    subwarps_of_32 => |emulator, a, x| subwarp_per_row(emulator, a, x, 32),
}

product_tests! {
    on all_equal;
    subwarps_of_4_equal => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let (rows, lanes, value) = (device.rows, 4, equal_value(a));
        let ((pointers, col_indices, _), (x, y)) = (device.arrays(), device.vectors());
        let kernel = CsrSubwarpPerRowEqual { rows, lanes, pointers, col_indices, value, x, y };
        emulator.launch::<CsrSubwarpPerRowEqual<_>>(blocks(a.rows(), 16), 64, 0, kernel)?;
        Ok(device.y.to_vec())
    },
}

/// As many threads as rows, as in the report: each warp takes several rows.
fn warp_per_row_shared<T: Scalar + Real>(
    emulator: &Emulator,
    a: &Csr<T>,
    x: &[T],
) -> Result<Vec<T>, EmulatorError> {
    let device = Device::new(emulator, a, x);
    let rows = device.rows;
    let ((pointers, col_indices, values), (x, y)) = (device.arrays(), device.vectors());
    let kernel = CsrWarpPerRowShared { rows, pointers, col_indices, values, x, y };
    let shared = csr_warp_per_row_shared_bytes::<T>(128);
    emulator.launch::<CsrWarpPerRowShared<T>>(blocks(a.rows(), 128), 128, shared, kernel)?;
    Ok(device.y.to_vec())
}

fn subwarp_per_row<T: Scalar + Real>(
    emulator: &Emulator,
    a: &Csr<T>,
    x: &[T],
    lanes: u32,
) -> Result<Vec<T>, EmulatorError> {
    let device = Device::new(emulator, a, x);
    let rows = device.rows;
    let ((pointers, col_indices, values), (x, y)) = (device.arrays(), device.vectors());
    let kernel = CsrSubwarpPerRow { rows, lanes, pointers, col_indices, values, x, y };
    let grid = blocks(a.rows() * lanes as usize, 64);
    emulator.launch::<CsrSubwarpPerRow<T>>(grid, 64, 0, kernel)?;
    Ok(device.y.to_vec())
}
