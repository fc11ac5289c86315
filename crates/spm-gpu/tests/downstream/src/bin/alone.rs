//! Uses spm-gpu and nothing else of CUDA. Prints why there is no device.

use spm_gpu::Device;

fn main() {
    match Device::available() {
        Ok(device) => println!("device: {}", device.info().name),
        Err(error) => println!("no device: {error:?}"),
    }
}
