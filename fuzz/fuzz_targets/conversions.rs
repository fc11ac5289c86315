//! Any triplets through every conversion and back: the same matrix, bit by bit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spm_formats::kernel::PlanError;
use spm_formats::{MemoryBudget, Scalar, convert};
use spm_fuzz::Triplets;

fn check<T: Scalar>(Triplets(coo): &Triplets<T>) {
    let csr = convert::coo_to_csr(coo);
    let input = convert::ConversionInput { coo, csr: csr.view() };
    for kernel in convert::registry::<T>() {
        for parameters in kernel.info.variants() {
            let label = kernel.info.label(&parameters);
            let converted = match kernel.plan(input, &parameters, &MemoryBudget::default()) {
                Ok(plan) => plan.run().unwrap_or_else(|error| panic!("{label}: {error}")),
                Err(PlanError::Format(_) | PlanError::Unsupported { .. }) => continue,
                Err(error) => panic!("{label}: {error}"),
            };
            assert!(converted.check(coo), "{label}: {coo:?}");
        }
    }
}

#[derive(Debug, arbitrary::Arbitrary)]
enum Input {
    Double(Triplets<f64>),
    Single(Triplets<f32>),
}

fuzz_target!(|input: Input| {
    match input {
        Input::Double(triplets) => check(&triplets),
        Input::Single(triplets) => check(&triplets),
    }
});
