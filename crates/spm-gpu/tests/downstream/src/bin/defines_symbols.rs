//! Has functions of libcuda of its own, as a second crate that forwards them.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use spm_gpu::{Device, GpuError};

static CALLS: AtomicU32 = AtomicU32::new(0);

#[unsafe(no_mangle)]
extern "C" fn cuInit(_flags: u32) -> c_int {
    CALLS.fetch_add(1, Ordering::Relaxed);
    999
}

fn main() {
    assert!(matches!(Device::available(), Err(GpuError::Driver { call: "cuInit", .. })));
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
}
