//! New values for the pattern of a plan: the bits of a new plan, or a refusal that changes nothing.

use spm_formats::convert::csr_to_coo;
use spm_formats::{Csr, DenseShape, Scalar};
use spm_gpu::{
    Device, DeviceBuffer, DeviceProductPlan, DeviceScalar, GpuError, PlanOptions, Stream, spmm,
    spmv,
};
use spm_testing::edge_cases::vector;
use spm_testing::reference;

use super::cases::Case;
use super::planned;
use super::spmm::LAYOUTS;

/// Kernels that `auto` may choose; planned for new values, these have to take them.
const CHOSEN: [&str; 16] = [
    "csr-subwarp-per-row",
    "sell",
    "sellp",
    "csr-segmented-sum",
    "csr-column-blocks",
    "csr-ell-columns",
    "dia-thread-per-row",
    "bsr-subwarp-per-row",
    "csr-row-split",
    "csr-nonzero-split",
    "csr-stream",
    "csr-vector",
    "sell-row-split",
    "sell-thread-per-row",
    "bsr-row-split",
    "auto",
];

/// Matrices for every way of storing one: a row that blocks share and rows without entries, few
/// diagonals.
fn patterns<T: DeviceScalar>() -> Vec<Case<T>> {
    vec![
        Case::new("a full row among short and empty ones", (24, 300), |row, random| match row {
            7 => 300,
            10..15 => 0,
            _ => random.between(1, 4),
        }),
        Case::generated("banded[n=70,lower=1,upper=2]"),
        // Full blocks of 3 x 3, and blocks of 2 x 2 with holes.
        Case::generated("mesh2[n=5,unknowns=3]"),
        Case::generated("banded[n=70,lower=40,upper=40,drop=10]"),
        Case::new("no entries", (5, 3), |_, _| 0),
    ]
}

/// Values for `entries` entries, all equal with seed 0.
fn values<T: DeviceScalar>(entries: usize, seed: usize) -> Vec<T> {
    let part = |k: usize| <T::Real as Scalar>::from_f64(((k * seed) as f64 * 0.618).sin() + 0.25);
    (0..entries).map(|k| T::from_parts(part(k + 1), part(k + 3))).collect()
}

fn with_values<T: DeviceScalar>(a: &Csr<T>, values: &[T]) -> Csr<T> {
    let mut other = a.clone();
    other.values_mut().copy_from_slice(values);
    other
}

/// The bits of A x, or of A X.
fn product<T: DeviceScalar>(plan: &mut dyn DeviceProductPlan<T>) -> Vec<u128> {
    result(plan).into_iter().map(|y| y.to_bits128()).collect()
}

/// A x, or A X.
fn result<T: DeviceScalar>(plan: &mut dyn DeviceProductPlan<T>) -> Vec<T> {
    let device = plan.device().clone();
    let stream = Stream::new(&device).unwrap();
    let ((rows, cols), k) = (plan.shape(), plan.dense().k);
    let x = DeviceBuffer::from_slice(&device, &vector::<T>(cols * k)).unwrap();
    let mut y = DeviceBuffer::from_slice(&device, &vec![T::from_f64(f64::NAN); rows * k]).unwrap();
    plan.launch(&x, &mut y, &stream).unwrap();
    y.to_vec().unwrap()
}

/// One kernel: values that are equal at first, and then are not.
fn check_kernel<T: DeviceScalar>(
    what: &str,
    id: &str,
    a: &Csr<T>,
    plan: impl Fn(&Csr<T>, &PlanOptions) -> Option<Box<dyn DeviceProductPlan<T>>>,
) {
    let equal = with_values(a, &values(a.nnz(), 0));
    let new = values::<T>(a.nnz(), 1);
    let other = with_values(a, &new);
    for new_values in [true, false] {
        let options = PlanOptions { new_values, ..PlanOptions::default() };
        let Some(mut updated) = plan(&equal, &options) else { continue };
        let Some(mut fresh) = plan(&other, &options) else { continue };
        let device = updated.device().clone();
        let stream = Stream::new(&device).unwrap();
        let before = product(&mut *updated);
        let x = vector::<T>(a.cols() * fresh.dense().k);
        let expected = reference::spmm(&csr_to_coo(other.view()), &x, fresh.dense());
        let errors = reference::compare(&result(&mut *fresh), &expected);
        assert!(errors.acceptable(), "{what}: {errors:?}");
        let short = DeviceBuffer::from_slice(&device, &values::<T>(a.nnz() + 1, 1)).unwrap();
        assert!(updated.set_values(&short, &stream).is_err(), "{what}: a value too many");
        let on_device = DeviceBuffer::from_slice(&device, &new).unwrap();
        let took = match updated.set_values(&on_device, &stream) {
            Ok(()) => true,
            Err(GpuError::Values(_)) if !(new_values && CHOSEN.contains(&id)) => false,
            Err(error) => panic!("{what}: {error}"),
        };
        // The launch is in another stream than the values.
        let now = product(&mut *updated);
        if !took {
            assert!(now == before, "{what}: changed by a refusal");
        } else if updated.choice() == fresh.choice() {
            assert!(now == product(&mut *fresh), "{what}: other bits than a new plan");
        }
        if new_values {
            let held = |plan: &dyn DeviceProductPlan<T>| plan.footprint().plan_bytes;
            let plain = plan(&other, &PlanOptions::default()).expect("as with new values");
            assert!(held(&*fresh) >= held(&*plain) || id == "auto", "{what}: memory");
        }
    }
}

/// Every kernel of our own.
pub(crate) fn check<T: DeviceScalar>(device: &Device) {
    for case in patterns::<T>() {
        for kernel in spmv::registry::<T>().iter().filter(|kernel| !kernel.baseline) {
            let what = format!("spmv {}, {}, {}", kernel.info.id, T::NAME, case.name);
            check_kernel(&what, kernel.info.id, &case.csr, |a, options| {
                planned(&what, kernel.plan(device, a.view(), &kernel.info.defaults(), options))
            });
        }
        for layout in LAYOUTS {
            let dense = DenseShape { k: 4, layout };
            for kernel in spmm::registry::<T>().iter().filter(|kernel| !kernel.baseline) {
                let what = format!("spmm {}, {}, {}", kernel.info.id, T::NAME, case.name);
                check_kernel(&what, kernel.info.id, &case.csr, |a, options| {
                    let set = kernel.info.defaults();
                    planned(&what, kernel.plan(device, a.view(), dense, &set, options))
                });
            }
        }
    }
}
