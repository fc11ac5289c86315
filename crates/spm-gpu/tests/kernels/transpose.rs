//! CSR to CSC.

use spm_formats::kernel::{PlanError, TransposeOutput, TransposePlan};
use spm_formats::reference;
use spm_gpu::{Device, DeviceScalar, PlanOptions, transpose};

use crate::cases::{large, small};
use crate::devices::{kernel_tests, parameter_sets};

kernel_tests! {
    transpose::registry::<f64>;
}

fn on_gpu<T: DeviceScalar>(id: &str, device: &Device) {
    let kernel = transpose::find::<T>(id).expect("a registered kernel");
    for case in small::<T>().into_iter().chain(large()) {
        let (pointers, indices, values) = reference::transpose(&case.coo);
        let expected = TransposeOutput { pointers, indices, values };
        for parameters in parameter_sets(&kernel.info) {
            let what = format!("{}, {}, {}", kernel.info.label(&parameters), T::NAME, case.name);
            let options = PlanOptions::default();
            let plan = kernel.plan_on_host(device, &case.csr.view(), &parameters, &options);
            let mut plan = match plan {
                Ok(plan) => plan,
                Err(PlanError::Unsupported { reason, .. }) if kernel.comparator => {
                    println!("{what} skipped: {reason}");
                    continue;
                }
                Err(error) => panic!("{what}: {error}"),
            };
            let mut output = TransposeOutput::new(case.coo.cols(), case.coo.entries());
            plan.run(&mut output).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(output == expected, "{what}");
        }
    }
}
