//! A shared library for C, made of spm-gpu.

/// Devices that spm-gpu sees: 0 or 1.
#[unsafe(no_mangle)]
pub extern "C" fn spm_downstream_devices() -> i32 {
    match spm_gpu::Device::available() {
        Ok(_) => 1,
        Err(_) => 0,
    }
}
