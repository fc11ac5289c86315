//! Y = A X of one kernel against the reference.

use spm_formats::{DenseShape, Layout, RealScalar, Scalar};
use spm_gpu::{
    Device, DeviceBuffer, DeviceProductPlan, DeviceScalar, GpuError, PlanOptions, Stream, spmm,
};
use spm_testing::reference;

use super::cases::Case;
use super::planned;

pub(crate) const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColumnMajor];

/// The bits of both parts of a result; none of NaN.
pub(crate) type Bits = [Option<u64>; 2];

/// Runs the kernel with its parameters on one matrix, with X finite and with an infinite element;
/// `bits` are those of earlier runs, which must come again.
pub(crate) fn check<T: DeviceScalar>(
    id: &str,
    device: &Device,
    case: &Case<T>,
    dense: DenseShape,
    all_parameters: bool,
    bits: &mut Option<Vec<Vec<Bits>>>,
) {
    let kernel = spmm::find::<T>(id).expect("a registered kernel");
    let mut x = case.vector(case.coo.cols() * dense.k);
    let finite = reference::spmm(&case.coo, &x, dense);
    let finite = (x.clone(), finite);
    if let Some(element) = x.get_mut(dense.k / 2) {
        *element = T::from_f64(f64::INFINITY);
    }
    let infinite = reference::spmm(&case.coo, &x, dense);
    let problems = [(finite, case.whole), ((x, infinite), false)];
    let mut results = Vec::new();
    let sets = if all_parameters { kernel.info.variants() } else { vec![kernel.info.defaults()] };
    for parameters in sets {
        let label = kernel.info.label(&parameters);
        let what = format!("{label}, {}, {}, {dense:?}", T::NAME, case.name);
        let options = PlanOptions::default();
        let plan = kernel.plan(device, case.csr.view(), dense, &parameters, &options);
        let Some(mut plan) = planned(&what, plan) else { continue };
        // Padding must not bring an infinite x into a row that has no such column; the baselines
        // may do so.
        for ((x, reference), whole) in &problems[..if kernel.baseline { 1 } else { 2 }] {
            let y = run(&mut *plan, x).unwrap_or_else(|error| panic!("{what}: {error}"));
            if *whole {
                case.judge(&what, &y, reference);
            }
            let errors = reference::compare(&y, reference);
            let other = y.iter().zip(&reference.values).position(|(y, &exact)| {
                let y = y.widen();
                y != exact && !Scalar::is_finite(y - exact)
            });
            let first = other.map(|i| (i, y[i], reference.values[i]));
            let choice = plan.choice().unwrap_or_default();
            assert!(errors.acceptable(), "{what}, {choice}: {errors:?}, first {first:?}");
            // A NaN's payload is not specified.
            let of = |part: T::Real| (!part.to_f64().is_nan()).then(|| part.to_bits64());
            results.push(y.iter().map(|y| [of(y.re()), of(y.im())]).collect());
        }
    }
    // The baselines' first algorithms may add in any order, and another plan of `auto` may have
    // chosen another kernel, by the clock.
    if !kernel.baseline && (id != "auto" || device.is_emulated()) {
        let earlier = bits.get_or_insert_with(|| results.clone());
        assert_eq!(*earlier, results, "{id}, {}, {dense:?}: other bits", case.name);
    }
}

/// A X into a Y that was NaN before.
pub(crate) fn run<T: DeviceScalar>(
    plan: &mut dyn DeviceProductPlan<T>,
    x: &[T],
) -> Result<Vec<T>, GpuError> {
    let device = plan.device().clone();
    let stream = Stream::new(&device)?;
    let mut result = vec![T::from_f64(f64::NAN); plan.shape().0 * plan.dense().k];
    let x = DeviceBuffer::from_slice(&device, x)?;
    let mut y = DeviceBuffer::from_slice(&device, &result)?;
    plan.launch(&x, &mut y, &stream)?;
    stream.synchronize()?;
    y.copy_to_slice(&mut result)?;
    Ok(result)
}
