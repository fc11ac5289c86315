//! alpha and beta.

use crate::common::scaled::check;
use crate::devices::emulator;

#[test]
fn every_kernel_in_single_precision() {
    check::<f32>(&emulator(1), false, false);
}

#[test]
fn every_kernel_in_double_precision() {
    check::<f64>(&emulator(1), false, true);
}
