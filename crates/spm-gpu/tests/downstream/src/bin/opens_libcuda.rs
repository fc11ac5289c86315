//! Opens libcuda at run time, as other crates for CUDA do.

use std::ffi::c_int;

use libloading::{Library, Symbol};
use spm_gpu::{Device, GpuError};

fn main() {
    assert!(matches!(Device::available(), Err(GpuError::NoDevice)));
    // SAFETY: the stand-in.
    let library = unsafe { Library::new("libcuda.so.1") }.expect("the stand-in");
    // SAFETY: its functions.
    unsafe {
        let calls: Symbol<unsafe extern "C" fn() -> c_int> = library.get("stand_in_calls").unwrap();
        let init: Symbol<unsafe extern "C" fn(u32) -> c_int> = library.get("cuInit").unwrap();
        assert_eq!(calls(), 2, "one library, also called by spm-gpu");
        assert_eq!(init(226), 226);
        assert_eq!(calls(), 3);
    }
    // What any library of the process finds under the name.
    let process: Library = libloading::os::unix::Library::this().into();
    // SAFETY: only whether it is there.
    assert!(unsafe { process.get::<*const ()>("cuMemAllocHost_v2") }.is_err());
}
