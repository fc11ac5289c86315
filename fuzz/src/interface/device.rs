//! Plans on emulated devices: any parameters and budgets, operands of other devices, several streams
//! with deferred work, other threads, drops in the middle.

use std::sync::Arc;

use arbitrary::{Arbitrary, Result, Unstructured};
use spm_formats::Scalar;
use spm_formats::kernel::{
    Parameters, PlanError, ProductPlan as _, TransposeOutput, TransposePlan as _,
};
use spm_gpu::transpose::convert::DeviceCompressed;
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsc, DeviceCsr, DeviceProductPlan, DeviceReal, EmulatedDevice,
    Event, GpuError, PlanOptions, Rates, Stream, spmm, spmv, transpose,
};
use spm_gpu_kernels::emulator::EmulatorOptions;
use spm_testing::reference::{self, Reference};

use super::{budget, choose, compare, dense, other_length, size};
use crate::{Matrix, bits, vector};

/// Where the kernels run.
pub(super) struct Place {
    pub(super) device: Device,
    /// Another one, of which nothing is accepted.
    pub(super) other: Device,
    /// The device may be lost or full at any time.
    pub(super) fragile: bool,
}

impl Place {
    pub(super) fn arbitrary(u: &mut Unstructured<'_>) -> Result<Self> {
        let fragile = u.ratio(1, 8)?;
        let emulator = EmulatorOptions {
            seed: u64::arbitrary(u)?,
            deferred: bool::arbitrary(u)?,
            detect_races: u.ratio(3, 4)?,
            step_limit: 1 << 22,
            memory: if fragile { u32::arbitrary(u)?.into() } else { 1 << 28 },
            launches: if fragile { u.int_in_range(0..=40)? } else { u64::MAX },
            ..EmulatorOptions::default()
        };
        let rates = Rates { launch_s: 2e-6, l2: 5e12, memory: 4e12 };
        let emulated = EmulatedDevice {
            l2_bytes: *u.choose(&[0, 50 << 20, u64::MAX])?,
            multiprocessors: *u.choose(&[0, 1, 132, 5120, u32::MAX])?,
            rates: *u.choose(&[None, Some(rates), Some(Rates { l2: f64::NAN, ..rates })])?,
            seconds: vec![f64::NAN, f64::INFINITY, -1.0, 1e-6][..u.int_in_range(0..=4)?].to_vec(),
        };
        let device = Device::emulated_as(emulator, emulated);
        Ok(Self { device, other: Device::emulated(EmulatorOptions::default()), fragile })
    }

    /// A result of a call with right arguments; nothing where the device may fail.
    pub(super) fn works<R>(
        &self,
        label: &str,
        result: std::result::Result<R, GpuError>,
    ) -> Option<R> {
        match result {
            Ok(result) => Some(result),
            Err(_) if self.fragile => None,
            Err(error) => panic!("{label}: {error}"),
        }
    }

    /// A plan; nothing where the kernel refuses.
    pub(super) fn planned<P>(
        &self,
        label: &str,
        plan: std::result::Result<P, PlanError>,
    ) -> Option<P> {
        match plan {
            Ok(plan) => Some(plan),
            Err(PlanError::Format(_) | PlanError::Unsupported { .. }) => None,
            Err(PlanError::Device(_)) if self.fragile => None,
            Err(error) => panic!("{label}: {error}"),
        }
    }
}

pub(super) fn check<T: DeviceReal>(u: &mut Unstructured<'_>) -> Result<()> {
    let place = Place::arbitrary(u)?;
    let options = PlanOptions { budget: budget(u)?, new_values: bool::arbitrary(u)? };
    match u.int_in_range(0..=6_u8)? {
        0..=2 => spmv_plan::<T>(u, &place, &options),
        3 | 4 => spmm_plan::<T>(u, &place, &options),
        _ => transpose_plan::<T>(u, &place, &options),
    }
}

/// The matrix on the device, made in one of two ways.
fn on_device<T: DeviceReal>(
    u: &mut Unstructured<'_>,
    place: &Place,
    a: &Matrix<T>,
) -> Result<Option<Arc<DeviceCsr<T>>>> {
    let csr = if bool::arbitrary(u)? {
        place.works("copy", DeviceCsr::new(&place.device, a.csr.view()))
    } else {
        let csr = DeviceCompressed::from_csr(&place.device, a.csr.view());
        place.planned("copy", csr).map(DeviceCompressed::into_csr)
    };
    Ok(csr.map(Arc::new))
}

/// Without the baselines' library there is no baseline.
fn absent<P>(label: &str, plan: std::result::Result<P, PlanError>) {
    assert!(plan.is_err(), "{label}: without cuSPARSE");
}

fn spmv_plan<T: DeviceReal>(
    u: &mut Unstructured<'_>,
    place: &Place,
    options: &PlanOptions,
) -> Result<()> {
    let kernels = spmv::registry::<T>();
    let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
    let label = kernel.info.label(&parameters);
    let a = Matrix::<T>::within(u, 40, 120)?;
    let (device, view) = (&place.device, a.csr.view());
    if kernel.baseline {
        absent(&label, kernel.plan(device, view, &parameters, options));
        return Ok(());
    }
    let lengths = (a.csr.cols(), a.csr.rows());
    let expected = |x: &[T]| reference::spmv(&a.coo, x);
    match u.int_in_range(0..=3_u8)? {
        0 => {
            let plan = kernel.plan_on_host(device, view, &parameters, options);
            let Some(plan) = place.planned(&label, plan) else { return Ok(()) };
            let mut run = |x: &[T], y: &mut [T]| plan.run(x, y).is_ok();
            host(u, place, &label, lengths, expected, &mut run)
        }
        1 => {
            let Some(csr) = on_device(u, place, &a)? else { return Ok(()) };
            let plan = kernel.plan_on_device(&csr, &parameters, options);
            drop(csr);
            let Some(plan) = plan.and_then(|plan| place.planned(&label, plan)) else {
                return Ok(());
            };
            Launches::new(place, label, lengths)
                .run(u, plan, expected, |p, x, y, s| p.launch(x, y, s))
        }
        _ => {
            let plan = kernel.plan(device, view, &parameters, options);
            let Some(mut plan) = place.planned(&label, plan) else { return Ok(()) };
            new_values(u, place, &label, a.csr.values(), &mut *plan)?;
            Launches::new(place, label, lengths)
                .run(u, plan, expected, |p, x, y, s| p.launch(x, y, s))
        }
    }
}

fn spmm_plan<T: DeviceReal>(
    u: &mut Unstructured<'_>,
    place: &Place,
    options: &PlanOptions,
) -> Result<()> {
    let kernels = spmm::registry::<T>();
    let (kernel, parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
    let label = kernel.info.label(&parameters);
    let (dense, a) = (dense(u)?, Matrix::<T>::within(u, 20, 60)?);
    let (device, view) = (&place.device, a.csr.view());
    if kernel.baseline {
        absent(&label, kernel.plan(device, view, dense, &parameters, options));
        return Ok(());
    }
    let expected = |x: &[T]| reference::spmm(&a.coo, x, dense);
    let plan = if u.ratio(1, 4)? {
        let Some(csr) = on_device(u, place, &a)? else { return Ok(()) };
        let Some(plan) = kernel.plan_on_device(&csr, dense, &parameters, options) else {
            return Ok(());
        };
        plan
    } else {
        kernel.plan(device, view, dense, &parameters, options)
    };
    let Some(mut plan) = place.planned(&label, plan) else { return Ok(()) };
    new_values(u, place, &label, a.csr.values(), &mut *plan)?;
    let lengths = (a.csr.cols() * dense.k, a.csr.rows() * dense.k);
    if dense.k > 1000 {
        // More than the device has.
        let host = kernel.plan_on_host(device, view, dense, &parameters, options);
        assert!(host.is_err() || lengths == (0, 0), "{label}");
        return Ok(());
    }
    if u.ratio(1, 4)? {
        let plan = kernel.plan_on_host(device, view, dense, &parameters, options);
        let Some(plan) = place.planned(&label, plan) else { return Ok(()) };
        let mut run = |x: &[T], y: &mut [T]| plan.run(x, y).is_ok();
        return host(u, place, &label, lengths, expected, &mut run);
    }
    Launches::new(place, label, lengths).run(u, plan, expected, |p, x, y, s| p.launch(x, y, s))
}

/// The values that the plan has, once more, and another number of them.
fn new_values<T: DeviceReal>(
    u: &mut Unstructured<'_>,
    place: &Place,
    label: &str,
    values: &[T],
    plan: &mut dyn DeviceProductPlan<T>,
) -> Result<()> {
    if u.ratio(1, 2)? {
        return Ok(());
    }
    let Some(stream) = place.works(label, Stream::new(&place.device)) else { return Ok(()) };
    let wrong = vec![<T as Scalar>::ONE; other_length(u, values.len())?];
    for (values, fits) in [(&*wrong, false), (values, true)] {
        let buffer = DeviceBuffer::from_slice(&place.device, values);
        let Some(buffer) = place.works(label, buffer) else { continue };
        match plan.set_values(&buffer, &stream) {
            Ok(()) => assert!(fits, "{label}: {} values", values.len()),
            Err(GpuError::Values(_)) => {}
            Err(error) => assert!(!fits || place.fragile, "{label}: {error}"),
        }
    }
    Ok(())
}

/// A plan for operands in host memory.
fn host<T: Scalar>(
    u: &mut Unstructured<'_>,
    place: &Place,
    label: &str,
    (of_x, of_y): (usize, usize),
    expected: impl Fn(&[T]) -> Reference<T::Wide>,
    run: &mut dyn FnMut(&[T], &mut [T]) -> bool,
) -> Result<()> {
    let (x, mut y) = (vector(u, of_x)?, vec![T::from_f64(f64::NAN); of_y]);
    assert!(!run(&vec![T::ONE; other_length(u, of_x)?], &mut y), "{label}");
    assert!(!run(&x, &mut vec![T::ONE; other_length(u, of_y)?]), "{label}");
    if run(&x, &mut y) {
        compare(label, &y, &expected(&x));
    } else {
        assert!(place.fragile, "{label}");
    }
    Ok(())
}

/// A product into two streams, each with an output of its own.
struct Launches<'a> {
    place: &'a Place,
    label: String,
    of_x: usize,
    of_y: usize,
}

/// A stream, its output, and whether that is a product.
struct Lane<T> {
    stream: Stream,
    y: DeviceBuffer<T>,
    done: bool,
}

type Launched = std::result::Result<(), GpuError>;

impl<'a> Launches<'a> {
    fn new(place: &'a Place, label: String, (of_x, of_y): (usize, usize)) -> Self {
        Self { place, label, of_x, of_y }
    }

    fn lane<T: DeviceReal>(&self) -> Option<Lane<T>> {
        let device = &self.place.device;
        let stream = self.place.works(&self.label, Stream::new(device))?;
        let y = DeviceBuffer::from_slice(device, &vec![T::from_f64(f64::NAN); self.of_y]);
        Some(Lane { stream, y: self.place.works(&self.label, y)?, done: false })
    }

    fn check<T: DeviceReal>(&self, lane: &Lane<T>, expected: &Reference) {
        let mut y = vec![<T as Scalar>::ZERO; self.of_y];
        let copied = lane.y.copy_to_slice(&mut y);
        if self.place.works(&self.label, copied).is_some() && lane.done {
            compare(&self.label, &y, expected);
        }
    }

    fn run<T: DeviceReal, P: Send>(
        self,
        u: &mut Unstructured<'_>,
        plan: P,
        expected: impl Fn(&[T]) -> Reference,
        launch: impl Fn(&mut P, &DeviceBuffer<T>, &mut DeviceBuffer<T>, &Stream) -> Launched + Sync,
    ) -> Result<()> {
        let Self { place, label, of_x, of_y } = &self;
        let (device, other) = (&place.device, &place.other);
        let values: Vec<T> = vector(u, *of_x)?;
        let expected = expected(&values);
        let buffer = |device: &Device, length: usize| {
            DeviceBuffer::from_slice(device, &vec![<T as Scalar>::ONE; length])
        };
        let x = place.works(label, DeviceBuffer::from_slice(device, &values));
        let (Some(x), Some(one), Some(two)) = (x, self.lane(), self.lane()) else {
            return Ok(());
        };
        let mut lanes = [one, two];
        let (elsewhere, foreign) = (Stream::new(other), buffer(other, *of_x));
        let (elsewhere, foreign) = (elsewhere.expect("a device"), foreign.expect("memory"));
        let event = Event::new(device).expect("an emulated device");
        let mut plan = Some(plan);
        for _ in 0..u.int_in_range(1..=8_u8)? {
            let which = u.int_in_range(0..=1_usize)?;
            let action = u.int_in_range(0..=15_u8)?;
            let [first, second] = &mut lanes;
            let (lane, next) = if which == 0 { (first, second) } else { (second, first) };
            match (action, &mut plan) {
                (0..=3, Some(plan)) => {
                    let launched = launch(plan, &x, &mut lane.y, &lane.stream);
                    lane.done = place.works(label, launched).is_some();
                }
                (4, Some(plan)) => {
                    let launched = std::thread::scope(|scope| {
                        let (launch, x) = (&launch, &x);
                        let Lane { y, stream, .. } = &mut *lane;
                        scope.spawn(move || launch(plan, x, y, stream)).join().expect("no panic")
                    });
                    lane.done = place.works(label, launched).is_some();
                }
                (5, Some(plan)) => {
                    let Ok(x) = buffer(device, other_length(u, *of_x)?) else { continue };
                    assert!(launch(plan, &x, &mut lane.y, &lane.stream).is_err(), "{label}");
                }
                (6, Some(plan)) => {
                    let Ok(mut y) = buffer(device, other_length(u, *of_y)?) else { continue };
                    assert!(launch(plan, &x, &mut y, &lane.stream).is_err(), "{label}");
                }
                (7, Some(plan)) => {
                    let mut y = buffer(other, *of_y).expect("memory");
                    assert!(launch(plan, &x, &mut y, &lane.stream).is_err(), "{label}");
                    assert!(launch(plan, &foreign, &mut lane.y, &lane.stream).is_err(), "{label}");
                    assert!(launch(plan, &x, &mut lane.y, &elsewhere).is_err(), "{label}");
                }
                (8, _) => {
                    event.record(&lane.stream).expect("of this device");
                    next.stream.wait(&event).expect("of this device");
                    assert!(event.record(&elsewhere).is_err());
                    // The host waits for the other device, whose launches may fail.
                    let _ = place.works(label, elsewhere.wait(&event));
                }
                (9, _) => drop(place.works(label, lane.stream.synchronize())),
                // A stream and an output go while work is in them.
                (10, _) => {
                    let Some(fresh) = self.lane() else { return Ok(()) };
                    *lane = fresh;
                }
                (11, _) => {
                    let Some(Lane { stream, .. }) = self.lane::<T>() else { return Ok(()) };
                    // Behind the work of the stream that goes.
                    event.record(&lane.stream).expect("of this device");
                    stream.wait(&event).expect("of this device");
                    lane.stream = stream;
                }
                (12, _) => {
                    let zeroed = lane.y.enqueue_zero(&lane.stream);
                    lane.done &= place.works(label, zeroed).is_none();
                    assert!(lane.y.enqueue_zero(&elsewhere).is_err());
                }
                (13, _) => self.check(lane, &expected),
                (14, plan) => *plan = None,
                _ => memory(u, place)?,
            }
        }
        if bool::arbitrary(u)? {
            drop(plan.take());
        }
        // What failed in deferred work is reported once; what came behind it was not done.
        if place.works(label, device.synchronize()).is_some() && !place.fragile {
            lanes.iter().for_each(|lane| self.check(lane, &expected));
        }
        Ok(())
    }
}

/// Buffers of any length, and their elements.
fn memory(u: &mut Unstructured<'_>, place: &Place) -> Result<()> {
    let (length, index, device) = (size(u)?, size(u)?, &place.device);
    let Ok(mut buffer) = DeviceBuffer::<u64>::uninitialized(device, length) else {
        assert!(length > 70 || place.fragile);
        return Ok(());
    };
    assert!(length < 1 << 26, "{length} words of 2^28 bytes");
    assert_eq!(buffer.len(), length);
    let other = other_length(u, length)?;
    assert!(buffer.copy_from_slice(&vec![1; other]).is_err());
    assert!(buffer.copy_to_slice(&mut vec![1; other]).is_err());
    let source = DeviceBuffer::from_slice(&place.other, &vec![1; length]).expect("memory");
    assert!(buffer.copy_from(&source).is_err(), "of another device");
    if place.works("zeroing", buffer.fill_zero()).is_some() {
        let element = buffer.element(index);
        assert_eq!(element.is_ok(), index < length || element.is_ok() && place.fragile);
    }
    Ok(())
}

fn transpose_plan<T: DeviceReal>(
    u: &mut Unstructured<'_>,
    place: &Place,
    options: &PlanOptions,
) -> Result<()> {
    let kernels = transpose::registry::<T>();
    let (kernel, parameters): (_, Parameters) = choose(u, &kernels, |kernel| &kernel.info)?;
    let label = kernel.info.label(&parameters);
    let a = Matrix::<T>::within(u, 40, 120)?;
    let (device, view) = (&place.device, a.csr.view());
    let (cols, entries) = (a.csr.cols(), a.csr.nnz());
    if kernel.baseline {
        absent(&label, kernel.plan(device, view, &parameters, options));
        return Ok(());
    }
    let (col_ptr, row_ind, values) = reference::transpose(&a.coo);
    let check = |output: &TransposeOutput<T>, with_values: bool| {
        assert_eq!((&output.col_ptr, &output.row_ind), (&col_ptr, &row_ind), "{label}");
        assert!(!with_values || bits(&output.values) == bits(&values), "{label}");
    };
    if u.ratio(1, 4)? {
        let plan = kernel.plan_on_host(device, view, &parameters, options);
        let Some(mut plan) = place.planned(&label, plan) else { return Ok(()) };
        let wrong = (other_length(u, cols)?, other_length(u, entries)?);
        assert!(plan.run(&mut TransposeOutput::new(wrong.0, wrong.1)).is_err(), "{label}");
        let mut output = TransposeOutput::new(cols, entries);
        match plan.run(&mut output) {
            Ok(()) => check(&output, true),
            Err(error) => assert!(place.fragile, "{label}: {error}"),
        }
        return Ok(());
    }
    let pattern = u.ratio(1, 3)?;
    let plan = if pattern {
        kernel.plan_pattern(device, view, &parameters, options)
    } else {
        kernel.plan(device, view, &parameters, options)
    };
    let Some(mut plan) = place.planned(&label, plan) else { return Ok(()) };
    let output = |device: &Device| {
        if pattern {
            DeviceCsc::<T>::pattern(device, cols, entries)
        } else {
            DeviceCsc::new(device, cols, entries)
        }
    };
    let mut outputs = Vec::new();
    for _ in 0..u.int_in_range(1..=4_u8)? {
        let Some(stream) = place.works(&label, Stream::new(device)) else { return Ok(()) };
        let Some(mut right) = place.works(&label, output(device)) else { return Ok(()) };
        if bool::arbitrary(u)? {
            // Fields are public: an array of another device or of another length.
            let mut wrong = output(&place.other).expect("memory");
            assert!(plan.launch(&mut wrong, &stream).is_err(), "{label}");
            let field = u.int_in_range(0..=2_u8)?;
            match field {
                0 => std::mem::swap(&mut wrong.col_ptr, &mut right.col_ptr),
                1 => std::mem::swap(&mut wrong.row_ind, &mut right.row_ind),
                _ => std::mem::swap(&mut wrong.values, &mut right.values),
            }
            assert!(plan.launch(&mut right, &stream).is_err(), "{label}");
            assert!(plan.launch(&mut wrong, &stream).is_err(), "{label}");
            let length = other_length(u, entries)?;
            if let Ok(mut other) = DeviceCsc::new(device, cols, length) {
                assert!(plan.launch(&mut other, &stream).is_err(), "{label}");
            }
            continue;
        }
        let launched = plan.launch(&mut right, &stream);
        if place.works(&label, launched).is_some() {
            outputs.push(right);
        }
    }
    if bool::arbitrary(u)? {
        drop(plan);
    }
    for on_device in outputs {
        let mut output = TransposeOutput::<T>::new(cols, entries);
        if pattern {
            output.values.clear();
        }
        let copied = on_device.copy_to(&mut output);
        if place.works(&label, copied).is_some() && !place.fragile {
            check(&output, !pattern);
        }
    }
    Ok(())
}
