//! y = A x of one kernel against the reference.

use spm_gpu::{
    Device, DeviceBuffer, DeviceProductPlan, DeviceScalar, GpuError, PlanOptions, Stream, spmv,
};
use spm_testing::reference;

use super::cases::Case;
use super::planned;

/// The bits of a result, with what `auto` chose.
pub(crate) type Bits = (Option<String>, Vec<u128>);

/// Runs the kernel with all its parameters on one matrix. `bits` are those of earlier plans, which must
/// come again unless `auto` chose another kernel; without them each plan also runs twice, and with an
/// infinite x.
pub(crate) fn check<T: DeviceScalar>(
    id: &str,
    device: &Device,
    case: &Case<T>,
    bits: &mut Option<Vec<Bits>>,
) {
    let kernel = spmv::find::<T>(id).expect("a registered kernel");
    let x = case.vector(case.coo.cols());
    let mut infinite = x.clone();
    infinite.iter_mut().step_by(7).for_each(|x| *x = T::from_f64(f64::INFINITY));
    let mut first_infinite = x.clone();
    first_infinite.iter_mut().take(1).for_each(|x| *x = T::from_f64(f64::INFINITY));
    let expected = reference::spmv(&case.coo, &x);
    let mut results = Vec::new();
    for parameters in kernel.info.variants() {
        let what = format!("{}, {}, {}", kernel.info.label(&parameters), T::NAME, case.name);
        let options = PlanOptions::default();
        let plan = kernel.plan(device, case.csr.view(), &parameters, &options);
        // `few_diagonals_are_supported` says where DIA must not refuse.
        let Some(mut plan) = planned(&what, plan) else { continue };
        let y = run(&mut *plan, &x).unwrap_or_else(|error| panic!("{what}: {error}"));
        case.judge(&what, &y, &expected);
        // Padding must not bring an infinite x into a row that has no such column.
        let first = bits.is_none();
        if first && !kernel.baseline {
            for infinite in [&infinite, &first_infinite] {
                let z = run(&mut *plan, infinite).unwrap_or_else(|error| panic!("{what}: {error}"));
                let errors = reference::compare(&z, &reference::spmv(&case.coo, infinite));
                assert!(errors.acceptable(), "{what}, infinite x: {errors:?}");
            }
        }
        let to_bits = |y: &[T]| y.iter().map(|y| y.to_bits128()).collect::<Vec<_>>();
        if first && !kernel.baseline {
            let again = run(&mut *plan, &x).unwrap_or_else(|error| panic!("{what}: {error}"));
            // In another schedule, on the emulator.
            assert_eq!(to_bits(&y), to_bits(&again), "{what}: other bits in a second run");
        }
        results.push((plan.choice(), to_bits(&y)));
    }
    // The baselines' first algorithm may add in any order, and another plan of `auto` may have
    // chosen another kernel, by the clock.
    if !kernel.baseline && (id != "auto" || device.is_emulated()) {
        let earlier = bits.get_or_insert_with(|| results.clone());
        for (earlier, now) in earlier.iter().zip(&results).filter(|(a, b)| a.0 == b.0) {
            assert_eq!(earlier.1, now.1, "{id}, {}: other bits from another plan", case.name);
        }
    }
}

/// A x, into a y that is full of NaN.
pub(crate) fn run<T: DeviceScalar>(
    plan: &mut dyn DeviceProductPlan<T>,
    x: &[T],
) -> Result<Vec<T>, GpuError> {
    let device = plan.device().clone();
    let stream = Stream::new(&device)?;
    let mut result = vec![T::from_f64(f64::NAN); plan.shape().0];
    let x = DeviceBuffer::from_slice(&device, x)?;
    let mut y = DeviceBuffer::from_slice(&device, &result)?;
    plan.launch(&x, &mut y, &stream)?;
    y.copy_to_slice(&mut result)?;
    Ok(result)
}
