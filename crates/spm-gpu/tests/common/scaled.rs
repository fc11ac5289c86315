//! y = alpha A x + beta y and Y = alpha A X + beta Y, and the same with another addend than y, of every
//! kernel of the registries against the reference.

use spm_formats::kernel::{KernelInfo, Parameters, Scaling};
use spm_formats::{DenseShape, RealScalar, Scalar};
use spm_gpu::{
    Device, DeviceBuffer, DeviceProductPlan, DeviceScalar, PlanOptions, Stream, spmm, spmv,
};
use spm_testing::exact::{self, Whole};
use spm_testing::reference::{self, Reference};

use super::cases::Case;
use super::planned;
use super::spmm::LAYOUTS;

/// alpha and beta, whole numbers so that the products of whole numbers are exact.
const PAIRS: [(f64, f64); 8] = [
    (1.0, 0.0),
    (2.0, 0.0),
    (1.0, 1.0),
    (-1.0, 1.0),
    (2.0, 3.0),
    (0.0, 3.0),
    (0.0, 1.0),
    (0.0, 0.0),
];

/// A whole number, for complex elements with an imaginary part unless it is 0 or 1.
fn number<T: Scalar>(value: f64) -> T {
    let part = |value| <T::Real as Scalar>::from_f64(value);
    T::from_parts(part(value), part(value * (value - 1.0)))
}

/// Matrices for every way of storing one: a row that blocks share and rows without entries, few
/// diagonals, equal values.
fn matrices<T: DeviceScalar>() -> Vec<Case<T>> {
    vec![
        Case::new("rows of 0 to 9", (40, 30), |_, random| random.between(0, 10)).with(Whole::Small),
        // Longer than a tile of `csr-merge`.
        Case::new("a full row among short and empty ones", (24, 1000), |row, random| match row {
            7 => 1000,
            10..15 => 0,
            _ => random.between(1, 4),
        })
        .with(Whole::Wide),
        Case::generated("banded[n=40,lower=1,upper=2]").with(Whole::Wide),
        Case::generated("banded[n=40,lower=1,upper=2]").with(Whole::Equal),
        Case::new("no entries", (5, 3), |_, _| 0).with(Whole::Small),
    ]
}

/// A scaling, y before the product, and what it has to be afterwards.
struct Update<T: Scalar> {
    scaling: Scaling<T>,
    before: Vec<T>,
    expected: Reference<T::Wide>,
}

fn updates<T: DeviceScalar>(case: &Case<T>, x: &[T], dense: DenseShape) -> Vec<Update<T>> {
    let length = case.coo.rows() * dense.k;
    let update = |(alpha, beta): (f64, f64)| {
        // NaN where y must not be read; other numbers than those of x elsewhere.
        let before = if beta == 0.0 {
            vec![T::from_f64(f64::NAN); length]
        } else {
            exact::vector(length + 5)[5..].to_vec()
        };
        let scaling = Scaling::new(number(alpha), number(beta));
        let expected = reference::scaled(&case.coo, scaling, x, &before, dense);
        Update { scaling, before, expected }
    };
    PAIRS.map(update).into()
}

/// Launches with every pair, in place and to another vector; with `few` only one of each.
fn launches<T: DeviceScalar>(
    what: &str,
    plan: &mut dyn DeviceProductPlan<T>,
    x: &[T],
    updates: &[Update<T>],
    few: bool,
) {
    let device = plan.device().clone();
    let stream = Stream::new(&device).unwrap();
    let x = DeviceBuffer::from_slice(&device, x).unwrap();
    for Update { scaling, before, expected } in updates {
        let pair = (scaling.alpha.re().to_f64(), scaling.beta.re().to_f64());
        let what = format!("{what}, {scaling:?}");
        let judge = |y: &DeviceBuffer<T>, what: &str| {
            assert_eq!(exact::difference(&y.to_vec().unwrap(), expected), None, "{what}");
        };
        let z = DeviceBuffer::from_slice(&device, before).unwrap();
        let mut y = DeviceBuffer::from_slice(&device, before).unwrap();
        if !few || pair == (2.0, 0.0) {
            let launched = plan.launch_scaled(*scaling, &x, &mut y, &stream);
            launched.unwrap_or_else(|error| panic!("{what}: {error}"));
            judge(&y, &what);
        }
        if !few || pair == (2.0, 3.0) {
            y.copy_from_slice(&vec![T::from_f64(f64::NAN); before.len()]).unwrap();
            let launched = plan.launch_adding(*scaling, &x, &z, &mut y, &stream);
            launched.unwrap_or_else(|error| panic!("{what}: {error}"));
            judge(&y, &format!("{what}, to another vector"));
            let to_bits = |z: &[T]| z.iter().map(|z| z.to_bits128()).collect::<Vec<_>>();
            assert!(to_bits(&z.to_vec().unwrap()) == to_bits(before), "{what}: z is only read");
        }
    }
}

/// Elements behind another one: they begin at no multiple of 16 bytes, unless each has 16.
struct Behind<T> {
    host: Vec<T>,
    /// Where the device is not an emulated one, which takes host memory.
    on_gpu: Option<DeviceBuffer<T>>,
    length: usize,
}

impl<T: DeviceScalar> Behind<T> {
    fn new(device: &Device, elements: &[T]) -> Self {
        let mut host = vec![T::from_f64(f64::NAN)];
        host.extend(elements);
        let on_gpu = || DeviceBuffer::from_slice(device, &host).unwrap();
        let on_gpu = (!device.is_emulated()).then(on_gpu);
        Self { host, on_gpu, length: elements.len() }
    }

    /// For reading and writing; to be dropped before anything else is done with this.
    fn array(&mut self, device: &Device) -> DeviceBuffer<T> {
        let of_host = self.host.as_mut_ptr() as u64;
        let address = self.on_gpu.as_ref().map_or(of_host, DeviceBuffer::address);
        assert_eq!(address % 16, 0, "as every allocation");
        let behind = address + size_of::<T>() as u64;
        // SAFETY: so many elements are there, of a live buffer that nothing else uses.
        unsafe { DeviceBuffer::from_raw_mut(device, behind, self.length) }.unwrap()
    }

    fn to_vec(&self) -> Vec<T> {
        match &self.on_gpu {
            Some(buffer) => buffer.to_vec().unwrap()[1..].to_vec(),
            None => self.host[1..].to_vec(),
        }
    }
}

/// As [`launches`], with operands that are aligned to their elements only.
fn launches_behind<T: DeviceScalar>(
    what: &str,
    plan: &mut dyn DeviceProductPlan<T>,
    x: &[T],
    updates: &[Update<T>],
    few: bool,
) {
    let device = plan.device().clone();
    let stream = Stream::new(&device).unwrap();
    for Update { scaling, before, expected } in updates {
        let pair = (scaling.alpha.re().to_f64(), scaling.beta.re().to_f64());
        if pair != (2.0, 3.0) && (few || pair != (2.0, 0.0)) {
            continue;
        }
        for (adding, aligned_y) in [(false, false), (true, false), (true, true)] {
            let nans = vec![T::from_f64(f64::NAN); before.len()];
            let [mut x, mut z] = [x, before].map(|elements| Behind::new(&device, elements));
            let mut y = Behind::new(&device, if adding { &nans } else { before });
            if aligned_y {
                let mut of_y = DeviceBuffer::from_slice(&device, &nans).unwrap();
                let launched = plan.launch_adding(
                    *scaling,
                    &x.array(&device),
                    &z.array(&device),
                    &mut of_y,
                    &stream,
                );
                launched.unwrap_or_else(|error| panic!("{what}, {scaling:?}, of z: {error}"));
                stream.synchronize().unwrap();
                let found = of_y.to_vec().unwrap();
                let what = format!("{what}, {scaling:?}, y alone is aligned");
                assert_eq!(exact::difference(&found, expected), None, "{what}");
                continue;
            }
            let [of_x, of_z, mut of_y] = [&mut x, &mut z, &mut y].map(|it| it.array(&device));
            let launched = if adding {
                plan.launch_adding(*scaling, &of_x, &of_z, &mut of_y, &stream)
            } else {
                plan.launch_scaled(*scaling, &of_x, &mut of_y, &stream)
            };
            launched.unwrap_or_else(|error| panic!("{what}, {scaling:?}, unaligned: {error}"));
            stream.synchronize().unwrap();
            drop((of_x, of_z, of_y));
            let what = format!("{what}, {scaling:?}, unaligned, adding {adding}");
            assert_eq!(exact::difference(&y.to_vec(), expected), None, "{what}");
        }
    }
}

/// The defaults, and with `all` every other set that is not about the number of threads, which the
/// emulator would take long for.
fn sets(info: &KernelInfo, all: bool) -> Vec<Parameters> {
    let defaults = info.defaults();
    let mut sets = info.variants();
    sets.retain(|set| *set != defaults && all && set.get("block") == defaults.get("block"));
    sets.insert(0, defaults);
    sets
}

/// Every kernel of our own, or every baseline. `all` parameters for one matrix.
pub(crate) fn check<T: DeviceScalar>(device: &Device, baselines: bool, all: bool) {
    let options = PlanOptions::default();
    for (number, case) in matrices::<T>().into_iter().enumerate() {
        let all = all && number == 0;
        let (a, cols) = (case.csr.view(), case.coo.cols());
        let x = case.vector(cols);
        let vectors = updates(&case, &x, DenseShape::VECTOR);
        for kernel in spmv::registry::<T>().iter().filter(|kernel| kernel.baseline == baselines) {
            for (i, set) in sets(&kernel.info, all).iter().enumerate() {
                let what = format!("spmv {}, {}, {}", kernel.info.label(set), T::NAME, case.name);
                let plan = kernel.plan(device, a, set, &options);
                let Some(mut plan) = planned(&what, plan) else { continue };
                launches(&what, &mut *plan, &x, &vectors, i > 0 || !all);
                launches_behind(&what, &mut *plan, &x, &vectors, i > 0 || !all);
            }
        }
        for layout in LAYOUTS {
            let dense = DenseShape { k: 4, layout };
            let x = case.vector(cols * dense.k);
            let updates = updates(&case, &x, dense);
            for kernel in spmm::registry::<T>().iter().filter(|kernel| kernel.baseline == baselines)
            {
                for (i, set) in sets(&kernel.info, all).iter().enumerate() {
                    let label = kernel.info.label(set);
                    let what = format!("spmm {label}, {}, {}, {dense:?}", T::NAME, case.name);
                    let plan = kernel.plan(device, a, dense, set, &options);
                    let Some(mut plan) = planned(&what, plan) else { continue };
                    launches(&what, &mut *plan, &x, &updates, i > 0 || !all);
                    launches_behind(&what, &mut *plan, &x, &updates, i > 0 || !all);
                }
            }
        }
    }
}
