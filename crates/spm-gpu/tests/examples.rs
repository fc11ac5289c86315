//! The examples, on the emulator and at a size that takes no time.

#[allow(dead_code, reason = "an example is a program of its own: its main is not called here")]
#[path = "../examples/conjugate_gradient_on_gpu.rs"]
mod conjugate_gradient_on_gpu;

use conjugate_gradient_on_gpu::run;
use spm_gpu::Device;
use spm_gpu_kernels::emulator::EmulatorOptions;
use spm_testing::conjugate_gradient::System;

#[test]
fn conjugate_gradient_solves_a_laplacian() {
    let device = Device::emulated(EmulatorOptions::default());
    let solution = run(&device, &System::laplacian(6).unwrap(), 1e-10, 100).unwrap();
    assert!(solution.residual < 1e-9 && solution.iterations < 100);
    assert!(solution.x.iter().all(|x| (x - 1.0).abs() < 1e-7));
}
