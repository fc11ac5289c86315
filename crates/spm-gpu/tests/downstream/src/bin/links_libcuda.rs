//! Links libcuda itself, and a library that does.

use std::ffi::c_int;
use std::ptr::null_mut;

use spm_gpu::{Device, GpuError};

#[link(name = "cuda")]
unsafe extern "C" {
    fn cuInit(flags: u32) -> c_int;
    fn cuMemAllocPitch_v2(
        address: *mut u64,
        pitch: *mut usize,
        width: usize,
        height: usize,
        size: u32,
    ) -> c_int;
    fn stand_in_calls() -> c_int;
    fn other_init(flags: u32) -> c_int;
}

fn main() {
    // SAFETY: functions of the stand-in.
    let (own, pitch, other, calls) = unsafe {
        let own = cuInit(100);
        (own, cuMemAllocPitch_v2(null_mut(), null_mut(), 1, 1, 4), other_init(226), stand_in_calls())
    };
    assert_eq!((own, pitch, calls), (100, 226, 3));
    assert_eq!(other, 226, "another library of the process must reach the driver itself");
    assert!(matches!(Device::available(), Err(GpuError::NoDevice)));
    // SAFETY: as above.
    assert_eq!(unsafe { stand_in_calls() }, 5, "spm-gpu calls the same library");
}
