//! Kernels on ELLPACK.

use spm_formats::convert::{EllOptions, csr_to_ell};
use spm_formats::{Csr, MemoryBudget, RealScalar};
use spm_gpu_kernels::device::Real;
use spm_gpu_kernels::emulator::{EmuBuffer, Emulator};
use spm_gpu_kernels::spmv::*;

use crate::{blocks, product_tests};

struct Device<T> {
    rows: u32,
    width: u32,
    pitch: u64,
    row_lengths: EmuBuffer<u32>,
    col_ind: EmuBuffer<u32>,
    values: EmuBuffer<T>,
    x: EmuBuffer<T>,
    y: EmuBuffer<T>,
}

impl<T: RealScalar + Real> Device<T> {
    fn new(emulator: &Emulator, a: &Csr<T>, options: EllOptions, x: &[T]) -> Self {
        let ell = csr_to_ell(a.view(), options, &MemoryBudget::unlimited()).expect("a CSR matrix");
        Self {
            rows: ell.rows() as u32,
            width: ell.width() as u32,
            pitch: ell.pitch() as u64,
            row_lengths: emulator.alloc_from(ell.row_lengths()),
            col_ind: emulator.alloc_from(ell.col_ind()),
            values: emulator.alloc_from(ell.values()),
            x: emulator.alloc_from(x),
            y: emulator.alloc_uninit(ell.rows()),
        }
    }
}

/// Fills the arguments that all ELLPACK kernels share and launches.
macro_rules! run {
    ($kernel:ident { $($more:ident),* }, $options:expr, $block:expr, $rows_per_block:expr) => {
        |emulator, a, x| {
            let device = Device::new(emulator, a, $options, x);
            let kernel = $kernel {
                rows: device.rows,
                $($more: device.$more,)*
                pitch: device.pitch,
                row_lengths: device.row_lengths.ptr(),
                col_ind: device.col_ind.ptr(),
                values: device.values.ptr(),
                x: device.x.ptr(),
                y: device.y.ptr_mut().into(),
            };
            emulator.launch::<$kernel<_>>(blocks(a.rows(), $rows_per_block), $block, 0, kernel)?;
            Ok(device.y.to_vec())
        }
    };
}

product_tests! {
    on all;
    thread_per_row => run!(EllThreadPerRow {}, EllOptions::DEVICE, 192, 192),
    thread_per_row_padded => run!(EllThreadPerRowPadded { width }, EllOptions::DEVICE, 192, 192),
    rowmajor => run!(EllThreadPerRowRowmajor {}, EllOptions::ROW_MAJOR, 128, 128),
    rowmajor_padded => run!(EllThreadPerRowRowmajorPadded { width }, EllOptions::ROW_MAJOR, 128, 128),
    warp_per_row => run!(EllWarpPerRow {}, EllOptions::ROW_MAJOR, (32, 4), 4),
    warp_per_row_padded => run!(EllWarpPerRowPadded { width }, EllOptions::ROW_MAJOR, (32, 4), 4),
}
