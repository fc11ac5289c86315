//! Kernels on CSR.

use spm_formats::csr::arrays;
use spm_formats::{Csr, Scalar};
use spm_gpu_kernels::device::{DevicePtr, DevicePtrMut, Real};
use spm_gpu_kernels::emulator::{EmuBuffer, Emulator};
use spm_gpu_kernels::spmv::{CsrThreadPerRow, CsrWarpPerRow};

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

product_tests! {
    thread_per_row => |emulator, a, x| {
        let device = Device::new(emulator, a, x);
        let rows = device.rows;
        let ((pointers, col_indices, values), (x, y)) = (device.arrays(), device.vectors());
        let kernel = CsrThreadPerRow { rows, pointers, col_indices, values, x, y };
        emulator.launch::<CsrThreadPerRow<_>>(blocks(a.rows(), 96), 96, 0, kernel)?;
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
}
