//! What the tests run on.

use spm_gpu::Device;
use spm_gpu_kernels::emulator::EmulatorOptions;

/// An emulated device that draws its schedule from `seed`.
pub(crate) fn emulator(seed: u64) -> Device {
    Device::emulated(EmulatorOptions { seed, ..EmulatorOptions::default() })
}

/// The first GPU; without one `test` is skipped, and says so.
pub(crate) fn gpu(test: &str) -> Option<Device> {
    match Device::available() {
        Ok(device) => Some(device),
        Err(error) if error.is_absent() => {
            println!("{test} skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// One module per kernel, named like its file, with one test per device and element type; and a
/// test that no registered kernel is missing here.
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

            #[test]
            fn gpu() {
                let name = concat!(module_path!(), "::gpu");
                if let Some(device) = crate::devices::gpu(name) {
                    super::on_gpu::<f32>($id, &device);
                    super::on_gpu::<f64>($id, &device);
                }
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

        #[test]
        fn baselines_on_gpu() {
            let name = concat!(module_path!(), "::baselines_on_gpu");
            let Some(device) = crate::devices::gpu(name) else { return };
            if let Err(error) = spm_gpu::cusparse::version(&device) {
                println!("{name} skipped: {error}");
                return;
            }
            for kernel in $registry().iter().filter(|kernel| kernel.baseline) {
                on_gpu::<f32>(kernel.info.id, &device);
                on_gpu::<f64>(kernel.info.id, &device);
            }
        }
    };
}
pub(crate) use kernel_tests;
