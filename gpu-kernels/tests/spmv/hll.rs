//! Kernels on HLL.

use spm_formats::convert::csr_to_hll;
use spm_formats::{Csr, MemoryBudget, RealScalar};
use spm_gpu_kernels::device::Real;
use spm_gpu_kernels::emulator::{EmuBuffer, Emulator, EmulatorError};
use spm_gpu_kernels::spmv::*;

use crate::{blocks, product_tests};

struct Device<T> {
    rows: u32,
    hack_size: u32,
    block_offsets: EmuBuffer<u64>,
    row_lengths: EmuBuffer<u32>,
    col_ind: EmuBuffer<u32>,
    values: EmuBuffer<T>,
    x: EmuBuffer<T>,
    y: EmuBuffer<T>,
}

impl<T: RealScalar + Real> Device<T> {
    fn new(emulator: &Emulator, a: &Csr<T>, hack_size: usize, x: &[T]) -> Self {
        let hll =
            csr_to_hll(a.view(), hack_size, &MemoryBudget::unlimited()).expect("a CSR matrix");
        let offsets: Vec<u64> = hll.block_offsets().iter().map(|&o| o as u64).collect();
        Self {
            rows: hll.rows() as u32,
            hack_size: hack_size as u32,
            block_offsets: emulator.alloc_from(&offsets),
            row_lengths: emulator.alloc_from(hll.row_lengths()),
            col_ind: emulator.alloc_from(hll.col_ind()),
            values: emulator.alloc_from(hll.values()),
            x: emulator.alloc_from(x),
            y: emulator.alloc_uninit(hll.rows()),
        }
    }
}

fn thread_per_row<T: RealScalar + Real>(
    emulator: &Emulator,
    a: &Csr<T>,
    x: &[T],
    hack_size: usize,
) -> Result<Vec<T>, EmulatorError> {
    let device = Device::new(emulator, a, hack_size, x);
    let kernel = HllThreadPerRow {
        rows: device.rows,
        hack_size: device.hack_size,
        block_offsets: device.block_offsets.ptr(),
        row_lengths: device.row_lengths.ptr(),
        col_ind: device.col_ind.ptr(),
        values: device.values.ptr(),
        x: device.x.ptr(),
        y: device.y.ptr_mut().into(),
    };
    emulator.launch::<HllThreadPerRow<T>>(blocks(a.rows(), 128), 128, 0, kernel)?;
    Ok(device.y.to_vec())
}

fn thread_per_row_texture<T: RealScalar + Real>(
    emulator: &Emulator,
    a: &Csr<T>,
    x: &[T],
    hack_size: usize,
) -> Result<Vec<T>, EmulatorError> {
    let device = Device::new(emulator, a, hack_size, x);
    let kernel = HllThreadPerRowTexture {
        rows: device.rows,
        hack_size: device.hack_size,
        block_offsets: device.block_offsets.ptr(),
        row_lengths: device.row_lengths.ptr(),
        col_ind: device.col_ind.ptr(),
        values: device.values.ptr(),
        x: device.x.texture(),
        y: device.y.ptr_mut().into(),
    };
    emulator.launch::<HllThreadPerRowTexture<T>>(blocks(a.rows(), 128), 128, 0, kernel)?;
    Ok(device.y.to_vec())
}

product_tests! {
    on all;
    hack_32 => |emulator, a, x| thread_per_row(emulator, a, x, 32),
    hack_7 => |emulator, a, x| thread_per_row(emulator, a, x, 7),
    texture_hack_64 => |emulator, a, x| thread_per_row_texture(emulator, a, x, 64),
    texture_hack_5 => |emulator, a, x| thread_per_row_texture(emulator, a, x, 5),
}
