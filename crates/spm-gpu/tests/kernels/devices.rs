//! What the tests run on, and with which parameters.

use spm_formats::kernel::{KernelInfo, Parameters, Value};
use spm_gpu::Device;
use spm_gpu_kernels::emulator::EmulatorOptions;

/// An emulated device that draws its schedule from `seed`.
pub(crate) fn emulator(seed: u64) -> Device {
    Device::emulated(EmulatorOptions { seed, ..EmulatorOptions::default() })
}

/// Parameters with which a kernel takes any matrix: the defaults, but a size of dense blocks.
pub(crate) fn for_any_matrix(info: &KernelInfo) -> Parameters {
    let defaults = info.defaults();
    match defaults.get("size") {
        Some(_) => defaults.with("size", Value::Count(2)),
        None => defaults,
    }
}

/// One module per kernel, named like its file, with one test per element type; and a test that no
/// registered kernel is missing here.
macro_rules! kernel_tests {
    ($registry:path; $($name:ident $id:literal),* $(,)?) => {
        $(mod $name {
            #[test]
            fn emulator_f32() {
                super::on_emulator::<f32>($id);
            }

            #[test]
            fn emulator_f64() {
                super::on_emulator::<f64>($id);
            }
        })*

        #[test]
        fn every_kernel_is_tested() {
            let tested: &[&str] = &[$($id),*];
            let registered: Vec<&str> = $registry()
                .iter()
                .filter(|kernel| !kernel.baseline)
                .map(|kernel| kernel.info.id)
                .collect();
            assert_eq!(registered, tested);
        }
    };
}
pub(crate) use kernel_tests;
