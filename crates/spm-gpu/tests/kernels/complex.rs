//! Complex matrices: every kernel of their registries.

use spm_formats::{Complex, DenseShape};
use spm_gpu::{DeviceScalar, spmm, spmv, transpose};

use crate::common::cases::{small, spmm_cases};
use crate::common::{self, scaled, values};
use crate::devices::emulator;

fn every_spmv<T: DeviceScalar>() {
    for (seed, case) in (1..).zip(small::<T>()) {
        for kernel in spmv::registry::<T>().iter().filter(|kernel| !kernel.baseline) {
            common::spmv::check(kernel.info.id, &emulator(seed), &case, &mut None);
        }
    }
}

#[test]
fn spmv_c32() {
    every_spmv::<Complex<f32>>();
}

#[test]
fn spmv_c64() {
    every_spmv::<Complex<f64>>();
}

fn every_spmm<T: DeviceScalar>(widths: &[usize]) {
    for case in spmm_cases::<T>() {
        for kernel in spmm::registry::<T>().iter().filter(|kernel| !kernel.baseline) {
            for layout in common::spmm::LAYOUTS {
                for &k in widths {
                    let (dense, mut bits) = (DenseShape { k, layout }, None);
                    let id = kernel.info.id;
                    common::spmm::check(id, &emulator(1), &case, dense, k == 5, &mut bits);
                    common::spmm::check(id, &emulator(2), &case, dense, k == 5, &mut bits);
                }
            }
        }
    }
}

#[test]
fn spmm_c32() {
    every_spmm::<Complex<f32>>(&[1, 33]);
}

#[test]
fn spmm_c64() {
    every_spmm::<Complex<f64>>(&[2, 5]);
}

fn every_transposition<T: DeviceScalar>() {
    for (seed, case) in (1..).zip(small::<T>()) {
        for kernel in transpose::registry::<T>().iter().filter(|kernel| !kernel.baseline) {
            let (id, set) = (kernel.info.id, kernel.info.defaults());
            common::transpose::check(id, &emulator(seed), &case, &[set]);
        }
    }
}

#[test]
fn transposition() {
    every_transposition::<Complex<f32>>();
    every_transposition::<Complex<f64>>();
}

#[test]
fn alpha_and_beta() {
    scaled::check::<Complex<f32>>(&emulator(1), false, false);
    scaled::check::<Complex<f64>>(&emulator(1), false, true);
}

#[test]
fn new_values() {
    values::check::<Complex<f64>>(&emulator(1));
}
