//! Runs the examples, on CPU cores and on the emulator of a GPU.

#[cfg(feature = "faer")]
#[path = "../../examples/faer_solvers.rs"]
#[allow(dead_code, reason = "an example is a program of its own: its main is not called here")]
mod faer_solvers;
#[cfg(feature = "io")]
#[path = "../../examples/jacobi_cg.rs"]
#[allow(dead_code, reason = "as above")]
mod jacobi_cg;

use spm::Device;

#[test]
#[cfg(feature = "faer")]
fn the_solvers_of_faer_converge() {
    faer_solvers::run(&Device::cpu(), 60).unwrap();
    faer_solvers::run(&Device::emulated(), 8).unwrap();
}

#[test]
#[cfg(feature = "io")]
fn conjugate_gradients_converge() {
    jacobi_cg::run(jacobi_cg::laplacian(50).unwrap(), Device::cpu()).unwrap();
    jacobi_cg::run(jacobi_cg::laplacian(8).unwrap(), Device::emulated()).unwrap();
}
