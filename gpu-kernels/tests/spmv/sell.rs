//! Kernels on SELL-32-sigma.

use spm_formats::convert::csr_to_sell;
use spm_formats::{Csr, MemoryBudget, RealScalar, Scalar, Sell};
use spm_gpu_kernels::device::Real;
use spm_gpu_kernels::emulator::{EmuBuffer, Emulator};
use spm_gpu_kernels::spmv::*;

use crate::{blocks, product_tests};

struct Device<T> {
    rows: u32,
    chunk_starts: EmuBuffer<u32>,
    permutation: EmuBuffer<u32>,
    row_lengths: EmuBuffer<u32>,
    col_ind: EmuBuffer<u32>,
    values: EmuBuffer<T>,
    x: EmuBuffer<T>,
    y: EmuBuffer<T>,
}

fn sell<T: Scalar>(a: &Csr<T>, sigma: usize) -> Sell<T> {
    csr_to_sell(a.view(), 32, sigma, &MemoryBudget::unlimited()).expect("a CSR matrix")
}

impl<T: RealScalar + Real> Device<T> {
    fn new(emulator: &Emulator, sell: &Sell<T>, x: &[T]) -> Self {
        let starts: Vec<u32> = sell.chunk_offsets().iter().map(|&o| (o / 32) as u32).collect();
        Self {
            rows: sell.rows() as u32,
            chunk_starts: emulator.alloc_from(&starts),
            permutation: emulator.alloc_from(sell.permutation()),
            row_lengths: emulator.alloc_from(sell.row_lengths()),
            col_ind: emulator.alloc_from(sell.col_ind()),
            values: emulator.alloc_from(sell.values()),
            x: emulator.alloc_from(x),
            y: emulator.alloc_uninit(sell.rows()),
        }
    }
}

product_tests! {
    on all;
    sorted => |emulator, a, x| {
        let device = Device::new(emulator, &sell(a, 128), x);
        let kernel = SellSorted {
            rows: device.rows,
            chunk_starts: device.chunk_starts.ptr(),
            permutation: device.permutation.ptr(),
            row_lengths: device.row_lengths.ptr(),
            col_ind: device.col_ind.ptr(),
            values: device.values.ptr(),
            x: device.x.ptr(),
            y: device.y.ptr_mut().into(),
        };
        emulator.launch::<SellSorted<_>>(blocks(a.rows(), 64), 64, 0, kernel)?;
        Ok(device.y.to_vec())
    },
    unsorted => |emulator, a, x| {
        let device = Device::new(emulator, &sell(a, 1), x);
        let kernel = SellUnsorted {
            rows: device.rows,
            chunk_starts: device.chunk_starts.ptr(),
            row_lengths: device.row_lengths.ptr(),
            col_ind: device.col_ind.ptr(),
            values: device.values.ptr(),
            x: device.x.ptr(),
            y: device.y.ptr_mut().into(),
        };
        emulator.launch::<SellUnsorted<_>>(blocks(a.rows(), 64), 64, 0, kernel)?;
        Ok(device.y.to_vec())
    },
}

/// Shortened columns on the emulator.
struct Compact {
    chunks: EmuBuffer<[u32; 4]>,
    bases: EmuBuffer<u32>,
    offsets: EmuBuffer<u32>,
}

impl Compact {
    fn new<T: Scalar>(emulator: &Emulator, sell: &Sell<T>) -> Self {
        let columns =
            CompactColumns::of(sell.chunk_offsets(), sell.row_lengths(), sell.col_ind()).unwrap();
        Self {
            chunks: emulator.alloc_from(&columns.chunks),
            bases: emulator.alloc_from(&columns.bases),
            offsets: emulator.alloc_from(&columns.offsets),
        }
    }
}

/// Fills the arguments that all compact kernels share and launches.
macro_rules! run_compact {
    ($kernel:ident, $sigma:expr, |$device:ident, $a:ident| { $($more:ident: $value:expr),* }) => {
        |emulator, $a, x| {
            let sell = sell($a, $sigma);
            let ($device, columns) = (Device::new(emulator, &sell, x), Compact::new(emulator, &sell));
            let kernel = $kernel {
                rows: $device.rows,
                cols: $a.cols() as u32,
                chunks: columns.chunks.ptr(),
                bases: columns.bases.ptr(),
                offsets: columns.offsets.ptr(),
                row_lengths: $device.row_lengths.ptr(),
                x: $device.x.ptr(),
                y: $device.y.ptr_mut().into(),
                $($more: $value,)*
            };
            emulator.launch::<$kernel<_>>(blocks($a.rows(), 64), 64, 0, kernel)?;
            Ok($device.y.to_vec())
        }
    };
}

product_tests! {
    on all_and_banded;
    compact_sorted => run_compact!(SellCompactSorted, 128, |device, a| {
        permutation: device.permutation.ptr(),
        values: device.values.ptr()
    }),
    compact_unsorted => run_compact!(SellCompactUnsorted, 1, |device, a| {
        values: device.values.ptr()
    }),
}

product_tests! {
    on all_equal;
    compact_equal_sorted => run_compact!(SellCompactEqualSorted, 64, |device, a| {
        permutation: device.permutation.ptr(),
        value: a.values().first().copied().unwrap_or_default()
    }),
    compact_equal_unsorted => run_compact!(SellCompactEqualUnsorted, 1, |device, a| {
        value: a.values().first().copied().unwrap_or_default()
    }),
}
