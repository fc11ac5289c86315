//! Operators on CPU cores, on the emulator of a GPU, and on a GPU where there is one: one test body for
//! all of them.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::common::{accept, bits, many, matrix, scaled, transposed};
use spm::spm_gpu::{Device as GpuDevice, DeviceBuffer, EmulatedDevice, Rates, Stream};
use spm::{
    Builder, Complex, Csr, DenseMut, DenseRef, DenseShape, Device, DeviceScalar, Error, Form,
    GpuError, Layout, Operator, Reason, Recipe, Scalar, Vector,
};
use spm_testing::edge_cases::vector;

const LAYOUTS: [Layout; 2] = [Layout::RowMajor, Layout::ColumnMajor];
/// alpha and beta; each alpha is a power of 2.
const FACTORS: [(f64, f64); 5] = [(1.0, 0.0), (1.0, 1.0), (-2.0, 0.3), (0.5, 0.0), (0.0, -1.5)];
/// Rows of equal lengths, of different lengths, and a long row.
pub(crate) const SMALL: [&str; 4] = [
    "diagonal[n=5]",
    "stencil5[n=12]",
    "uniform[rows=70,cols=300,entries=900]",
    "powerlaw[rows=300,cols=300,entries=2000,longest=200]",
];

/// Each device, with its name.
pub(crate) fn devices() -> Vec<(&'static str, Device)> {
    let mut devices = vec![("cpu", Device::cpu()), ("emulator", Device::emulated())];
    if GpuDevice::available().is_ok() {
        devices.push(("gpu", Device::gpu(0)));
    }
    devices
}

/// Operators by every way of planning.
fn operators<T: DeviceScalar>(a: &Csr<T>, device: &Device) -> Vec<Operator<T>> {
    let builder = || Operator::builder(a.clone()).device(device.clone());
    let ways: [fn(Builder<T>) -> Builder<T>; 3] =
        [|it| it, |it| it.expected_products(1), |it| it.deterministic()];
    ways.map(|way| way(builder()).build().unwrap()).into()
}

/// A real number, or for complex elements that number times i; 0 and 1 as they are.
fn number<T: Scalar>(value: f64) -> T {
    let is_imaginary = T::IS_COMPLEX && value.is_finite() && value != 0.0 && value != 1.0;
    if is_imaginary { complex(0.0, value) } else { complex(value, 0.0) }
}

pub(crate) fn complex<T: Scalar>(re: f64, im: f64) -> T {
    T::from_parts(T::Real::from_f64(re), T::Real::from_f64(im))
}

fn conjugated<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    a.map(|value| value.conj())
}

fn all_products<T: DeviceScalar>() {
    for (name, device) in devices() {
        for of in SMALL {
            let a = matrix::<T>(of);
            for op in operators(&a, &device) {
                products(&format!("{name}, {of}, {}", op.recipe()), &a, &op);
            }
        }
    }
}

/// Every product with vectors in host memory, and where the operator runs.
fn products<T: DeviceScalar>(what: &str, a: &Csr<T>, op: &Operator<T>) {
    let a_t = transposed(a);
    let a_h = conjugated(&a_t);
    let (x, x_t) = (vector::<T>(a.cols()), vector::<T>(a.rows()));
    let ones = |length: usize| vec![<T as Scalar>::ONE; length];
    for (alpha, beta) in FACTORS.map(|(a, b)| (number::<T>(a), number::<T>(b))) {
        let what = format!("{what}, alpha {alpha}, beta {beta}");
        let before = if beta == <T as Scalar>::ZERO { f64::NAN } else { 1.0 };
        let expected = scaled(a, alpha, &x, beta, &ones(a.rows()));
        let mut y = vec![number(before); a.rows()];
        op.apply_scaled(alpha, &x, beta, &mut y).unwrap();
        accept(&what, &y, &expected);
        let mut v = op.vector_from(&vec![number(before); a.rows()]).unwrap();
        op.apply_vector_scaled(alpha, &op.vector_from(&x).unwrap(), beta, &mut v).unwrap();
        assert_eq!(bits(&v.to_vec().unwrap()), bits(&y), "{what}");

        let expected = scaled(&a_t, alpha, &x_t, beta, &ones(a.cols()));
        let mut y = vec![number(before); a.cols()];
        op.apply_transpose_scaled(alpha, &x_t, beta, &mut y).unwrap();
        accept(&format!("{what}, transposed"), &y, &expected);
        let of_x = op.vector_from(&x_t).unwrap();
        let mut v = op.vector_from(&vec![number(before); a.cols()]).unwrap();
        op.apply_transpose_vector_scaled(alpha, &of_x, beta, &mut v).unwrap();
        accept(&format!("{what}, transposed vector"), &v.to_vec().unwrap(), &expected);

        let expected = scaled(&a_h, alpha, &x_t, beta, &ones(a.cols()));
        let mut y = vec![number(before); a.cols()];
        op.apply_conj_transpose_scaled(alpha, &x_t, beta, &mut y).unwrap();
        accept(&format!("{what}, conjugate transposed"), &y, &expected);
        let mut v = op.vector_from(&vec![number(before); a.cols()]).unwrap();
        op.apply_conj_transpose_vector_scaled(alpha, &of_x, beta, &mut v).unwrap();
        accept(&format!("{what}, conjugate transposed vector"), &v.to_vec().unwrap(), &expected);
    }
    in_streams(what, a, op);
    let nan = || vec![number::<T>(f64::NAN); a.rows()];
    let (mut y, mut r) = (nan(), nan());
    op.apply(&x, &mut y).unwrap();
    accept(what, &y, &scaled(a, <T as Scalar>::ONE, &x, <T as Scalar>::ZERO, &x_t));
    let mut conj = nan();
    op.apply_conj(&x, &mut conj).unwrap();
    let expected = scaled(&conjugated(a), <T as Scalar>::ONE, &x, <T as Scalar>::ZERO, &x_t);
    accept(&format!("{what}, conjugate"), &conj, &expected);
    op.residual(&x_t, &x, &mut r).unwrap();
    accept(what, &r, &scaled(a, -<T as Scalar>::ONE, &x, <T as Scalar>::ONE, &x_t));
    let (b, x, mut v) = (
        op.vector_from(&x_t).unwrap(),
        op.vector_from(&x).unwrap(),
        op.vector_from(&nan()).unwrap(),
    );
    op.residual_vector(&b, &x, &mut v).unwrap();
    assert_eq!(bits(&v.to_vec().unwrap()), bits(&r), "{what}");
}

/// Products on a GPU with memory and a stream of another owner: the same bits as with vectors.
fn in_streams<T: DeviceScalar>(what: &str, a: &Csr<T>, op: &Operator<T>) {
    let Some(device) = op.device() else { return };
    let (one, two) = (<T as Scalar>::ONE, number::<T>(2.0));
    for transposed in [false, true] {
        let (of_x, of_y) = if transposed { a.shape() } else { (a.cols(), a.rows()) };
        let (host_x, mut host_y) = (vector::<T>(of_x), vec![one; of_y]);
        let buffer = |elements: &[T]| DeviceBuffer::from_slice(device, elements).unwrap();
        // The emulator takes host memory.
        let on_gpu = (!device.is_emulated()).then(|| [buffer(&host_x), buffer(&host_y)]);
        let [of_x_at, of_y_at] = match &on_gpu {
            Some(buffers) => buffers.each_ref().map(DeviceBuffer::address),
            None => [host_x.as_ptr() as u64, host_y.as_mut_ptr() as u64],
        };
        let owner = Stream::new(device).unwrap();
        // SAFETY: arrays of these lengths and a stream, which live until the work is done.
        let (x, mut y, stream) = unsafe {
            let x = DeviceBuffer::from_raw(device, of_x_at, of_x).unwrap();
            let y = DeviceBuffer::from_raw_mut(device, of_y_at, of_y).unwrap();
            (x, y, Stream::from_raw(device, owner.as_raw()))
        };
        let form = Form { transposed, conjugate: false };
        op.apply_in_stream(form, two, &x, one, &mut y, &stream).unwrap();
        stream.synchronize().unwrap();
        drop(y);
        if let Some([_, y]) = &on_gpu {
            y.copy_to_slice(&mut host_y).unwrap();
        }
        let x = op.vector_from(&host_x).unwrap();
        let mut y = op.vector_from(&vec![one; of_y]).unwrap();
        if transposed {
            op.apply_transpose_vector_scaled(two, &x, one, &mut y).unwrap();
        } else {
            op.apply_vector_scaled(two, &x, one, &mut y).unwrap();
        }
        assert_eq!(bits(&host_y), bits(&y.to_vec().unwrap()), "{what}, transposed {transposed}");
    }
}

#[test]
fn arrays_and_streams_of_another_device_are_errors() {
    let a = matrix::<f64>(SMALL[0]);
    let op = Operator::builder(a.clone()).device(Device::emulated()).build().unwrap();
    let device = op.device().expect("an emulated one");
    let other = GpuDevice::emulated(Default::default());
    let buffer = |device, length| DeviceBuffer::<f64>::zeroed(device, length).unwrap();
    let (n, plain) = (a.rows(), Form::PLAIN);
    let stream = Stream::new(device).unwrap();
    let (x, mut y) = (buffer(device, n), buffer(device, n));
    let there = |what| Err(Error::Gpu(GpuError::OtherDevice { what }));
    let same = |found: Result<(), Error>, expected: Result<(), Error>| {
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    };
    let on_other = Stream::new(&other).unwrap();
    same(op.apply_in_stream(plain, 1.0, &x, 0.0, &mut y, &on_other), there("stream"));
    same(op.apply_in_stream(plain, 1.0, &buffer(&other, n), 0.0, &mut y, &stream), there("x"));
    same(op.apply_in_stream(plain, 1.0, &x, 0.0, &mut buffer(&other, n), &stream), there("y"));
    let short = buffer(device, n - 1);
    let error = op.apply_in_stream(plain, 1.0, &short, 0.0, &mut y, &stream).unwrap_err();
    assert!(matches!(error, Error::Shape { what: "x", .. }), "{error}");
    let dense = DenseShape { k: 2, layout: Layout::RowMajor };
    let error = op.apply_dense_in_stream(dense, 1.0, &x, 0.0, &mut y, &stream).unwrap_err();
    assert!(matches!(error, Error::Shape { what: "x", .. }), "{error}");
    let cpu = Operator::new(a).unwrap();
    assert!(cpu.device().is_none());
    let error = cpu.apply_in_stream(plain, 1.0, &x, 0.0, &mut y, &stream).unwrap_err();
    assert!(matches!(error, Error::Place { what: "x" }), "{error}");
    // SAFETY: nothing is read: the address is refused.
    let misaligned = unsafe { DeviceBuffer::<f64>::from_raw(device, 12, n) }.unwrap_err();
    assert_eq!(misaligned, GpuError::Misaligned { address: 12, alignment: 8 });
}

#[test]
fn products_in_double_precision() {
    all_products::<f64>();
}

#[test]
fn products_in_single_precision() {
    all_products::<f32>();
}

#[test]
fn products_of_complex_matrices() {
    all_products::<Complex<f64>>();
    all_products::<Complex<f32>>();
}

#[test]
fn dense_right_hand_sides() {
    dense::<f64>();
    dense::<Complex<f64>>();
}

fn dense<T: DeviceScalar>() {
    for (name, device) in devices() {
        let a = matrix::<T>(SMALL[2]);
        for op in operators(&a, &device) {
            for layout in LAYOUTS {
                for k in [0, 1, 2, 5] {
                    let what = format!("{name}, {k}, {layout:?}");
                    let x = vector::<T>(a.cols() * k);
                    let expected = many(&a, &x, k, layout);
                    let mut y = vec![number(f64::NAN); a.rows() * k];
                    op.apply_many(&x, &mut y, k, layout).unwrap();
                    accept(&what, &y, &expected);
                    let of_x = op.vector_from(&x).unwrap();
                    let mut v = op.vector_from(&vec![number(f64::NAN); y.len()]).unwrap();
                    op.apply_many_vector(&of_x, &mut v, k, layout).unwrap();
                    assert_eq!(bits(&v.to_vec().unwrap()), bits(&y), "{what}");
                    // -A X + 2 A X
                    let (minus, two) = (complex(-1.0, 0.0), complex(2.0, 0.0));
                    op.apply_many_vector_scaled(minus, &of_x, two, &mut v, k, layout).unwrap();
                    accept(&format!("{what}, scaled"), &v.to_vec().unwrap(), &expected);
                    if let Some(device) = op.device() {
                        let from = DeviceBuffer::from_slice(device, &x).unwrap();
                        let mut into = DeviceBuffer::zeroed(device, y.len()).unwrap();
                        let (dense, stream) = (DenseShape { k, layout }, Stream::new(device));
                        let stream = stream.unwrap();
                        op.apply_dense_in_stream(
                            dense,
                            number(1.0),
                            &from,
                            number(0.0),
                            &mut into,
                            &stream,
                        )
                        .unwrap();
                        assert_eq!(bits(&into.to_vec().unwrap()), bits(&y), "{what}");
                    }
                    // With a leading dimension, and added twice.
                    let leading = if layout == Layout::RowMajor { k } else { a.rows() } + 3;
                    let lines = if layout == Layout::RowMajor { a.rows() } else { k };
                    let mut z = vec![<T as Scalar>::ZERO; leading * lines];
                    for _ in 0..2 {
                        let x = DenseRef::new(&x, (a.cols(), k), layout).unwrap();
                        let shape = (a.rows(), k);
                        let z = DenseMut::with_leading_dimension(&mut z, shape, layout, leading);
                        op.apply_dense(complex(0.5, 0.0), x, number(1.0), z.unwrap()).unwrap();
                    }
                    let z: Vec<T> =
                        z.chunks(leading).flat_map(|line| &line[..leading - 3]).copied().collect();
                    accept(&format!("{what}, with a gap"), &z, &expected);
                }
            }
        }
    }
}

#[test]
fn matrices_without_entries() {
    for (name, device) in devices() {
        for (rows, cols) in [(0, 0), (0, 4), (4, 0), (3, 4)] {
            let a = Csr::<f64>::empty(rows, cols).unwrap();
            for op in operators(&a, &device) {
                let (x, mut y) = (vec![1.0; cols], vec![f64::NAN; rows]);
                op.apply(&x, &mut y).unwrap();
                assert_eq!(y, vec![0.0; rows], "{name} {rows} x {cols}");
                let (x, mut y) = (vec![1.0; rows], vec![f64::NAN; cols]);
                op.apply_transpose(&x, &mut y).unwrap();
                assert_eq!(y, vec![0.0; cols], "{name} {rows} x {cols}");
            }
        }
    }
}

#[test]
fn threads_share_an_operator() {
    for (name, device) in devices() {
        let a = matrix::<f64>(SMALL[3]);
        let op = Operator::builder(a).device(device).deterministic().build().unwrap();
        let x = vector::<f64>(op.cols() * 2);
        let product = || {
            let (n, m) = (op.cols(), op.rows());
            let (mut y, mut z) = (vec![1.0; m], vec![f64::NAN; n]);
            let mut y_many = vec![f64::NAN; m * 2];
            op.apply_scaled(0.3, &x[..n], 0.7, &mut y).unwrap();
            op.apply_transpose(&x[..m], &mut z).unwrap();
            op.apply_many(&x, &mut y_many, 2, Layout::RowMajor).unwrap();
            let mut v = op.vector_from(&y).unwrap();
            op.apply_vector_scaled(2.0, &op.vector_from(&x[..n]).unwrap(), 1.0, &mut v).unwrap();
            bits(&[y, z, y_many, v.to_vec().unwrap()].concat())
        };
        let expected = product();
        thread::scope(|scope| {
            let same = || (0..3).all(|_| product() == expected);
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(same)).collect();
            for thread in threads {
                assert!(thread.join().unwrap(), "{name}");
            }
        });
    }
}

/// y = A x and Y = A X as bits.
fn results<T: DeviceScalar>(op: &Operator<T>) -> Vec<u128> {
    let x = vector::<T>(op.cols() * 2);
    let zeros = |length| vec![<T as Scalar>::ZERO; length];
    let (mut y, mut many) = (zeros(op.rows()), zeros(op.rows() * 2));
    op.apply(&x[..op.cols()], &mut y).unwrap();
    op.apply_many(&x, &mut many, 2, Layout::ColumnMajor).unwrap();
    bits(&[y, many].concat())
}

#[test]
fn new_values_give_the_bits_of_a_new_operator() {
    new_values::<f64>();
    new_values::<Complex<f64>>();
}

fn new_values<T: DeviceScalar>() {
    for (name, device) in devices() {
        for of in SMALL {
            let a = matrix::<T>(of);
            let recipe = operators(&a, &device)[0].recipe().clone();
            let build = |a: Csr<T>| {
                let builder = Operator::builder(a).device(device.clone());
                builder.recipe(recipe.clone()).build().unwrap()
            };
            let mut op = build(a.clone());
            let mut y = vec![<T as Scalar>::ZERO; a.cols()];
            op.apply_conj_transpose(&vector(a.rows()), &mut y).unwrap();
            let value = |i: usize| complex((i as f64).cos() + 2.0, (i as f64).sin());
            let values: Vec<T> = (0..a.nnz()).map(value).collect();
            let mut new = a.clone();
            new.values_mut().copy_from_slice(&values);
            let what = format!("{name}, {of}, {recipe}");
            let former = op.clone();
            let before = results(&former);
            // A second plan, then the same one.
            let (mut swapped, mut swaps) = (values.clone(), op.clone());
            swaps.swap_values(&mut swapped).unwrap();
            assert_eq!((&**swaps.matrix(), &*swapped), (&new, a.values()), "{what}");
            assert_eq!(results(&swaps), results(&build(new.clone())), "{what}");
            swaps.swap_values(&mut swapped).unwrap();
            assert_eq!((&**swaps.matrix(), &swapped), (&a, &values), "{what}");
            assert_eq!(results(&swaps), before, "{what}");
            op.set_values(&values).unwrap();
            assert_eq!(**op.matrix(), new, "{what}");
            assert_eq!(results(&op), results(&build(new.clone())), "{what}");
            assert_eq!(results(&former), before, "{what}");
            drop(former);
            // Without a clone, and the transpose again.
            op.set_values(a.values()).unwrap();
            assert_eq!(results(&op), before, "{what}");
            op.set_values(&values).unwrap();
            assert_eq!(results(&op), results(&build(new.clone())), "{what}");
            op.apply_conj_transpose(&vector(a.rows()), &mut y).unwrap();
            let a_h = conjugated(&transposed(&new));
            let expected = scaled(&a_h, number(1.0), &vector(a.rows()), number(0.0), &y);
            accept(&what, &y, &expected);
        }
    }
}

/// A second plan would not fit the memory of the device.
#[test]
fn plans_for_new_values_take_them_in_place() {
    for of in &SMALL[1..] {
        let a = matrix::<f64>(of);
        let build = |a: &Csr<f64>| {
            let options = spm::spm_gpu::EmulatorOptions { memory: 1 << 20, ..Default::default() };
            let device = Device::from(GpuDevice::emulated(options));
            let builder = Operator::builder(a.clone()).device(device);
            builder.deterministic().new_values().build().unwrap()
        };
        let mut op = build(&a);
        // What is left suffices for the values.
        let Err(Error::Gpu(GpuError::OutOfMemory { free, .. })) = op.vector_zeros(1 << 20) else {
            panic!("{of}: memory for 8 MiB");
        };
        let _filler = op.vector_zeros(free as usize / 8 - a.nnz() * 5 / 4).unwrap();
        let new = vector::<f64>(a.nnz());
        op.set_values(&new).unwrap();
        op.set_values(a.values()).unwrap();
        op.set_values(&new).unwrap();
        let (x, mut y) = (op.vector_from(&vector(a.cols())), op.vector_zeros(a.rows()).unwrap());
        op.apply_vector(&x.unwrap(), &mut y).unwrap();
        let (mut expected, mut with_new) = (vec![0.0; a.rows()], a.clone());
        with_new.values_mut().copy_from_slice(&new);
        build(&with_new).apply(&vector(a.cols()), &mut expected).unwrap();
        assert_eq!(bits(&y.to_vec().unwrap()), bits(&expected), "{of}, {}", op.recipe());
        // A clone keeps its values; both have what they had.
        let (clone, mut values) = (op.clone(), a.values().to_vec());
        let error = op.swap_values(&mut values).unwrap_err();
        assert!(matches!(error, Error::Gpu(GpuError::OutOfMemory { .. })), "{of}: {error}");
        assert_eq!((op.matrix().values(), &*values), (&*new, a.values()), "{of}");
        drop(clone);
        op.swap_values(&mut values).unwrap();
        assert_eq!((op.matrix().values(), values), (a.values(), new), "{of}");
    }
}

#[test]
fn a_recipe_makes_the_same_choice_elsewhere() {
    for (name, device) in devices() {
        for of in SMALL {
            let a = matrix::<f64>(of);
            for op in operators(&a, &device) {
                let text = op.recipe().to_string();
                let recipe: Recipe = text.parse().unwrap();
                assert_eq!(recipe.is_gpu(), name != "cpu");
                let builder = Operator::builder(a.clone()).device(device.clone());
                let again = builder.recipe(recipe).build().unwrap();
                assert_eq!(again.recipe().to_string(), text, "{name}, {of}");
                assert_eq!(again.describe().reason, Reason::Recipe);
            }
        }
    }
}

#[test]
fn an_operator_says_where_it_runs() {
    for (name, device) in devices() {
        let a = matrix::<f64>(SMALL[1]);
        let op = Operator::builder(a.clone()).device(device).build().unwrap();
        let before = op.describe();
        assert_eq!(before.device == "CPU cores", name == "cpu", "{before}");
        assert!(before.memory_bytes >= a.memory_bytes());
        assert!(before.bytes_per_product > 0);
        let measured = op.measure();
        assert_eq!(op.describe().measured, measured);
        assert!(measured.is_some(), "{name}");
        let (x, mut y) = (vector(a.rows()), vec![0.0; a.cols()]);
        op.apply_transpose(&x, &mut y).unwrap();
        assert_eq!(op.describe().transposed_products, 1, "{name}");
        assert!(op.describe().to_string().contains("device: "), "{name}");
    }
}

/// The time of the model: a launch, and the bytes at the rate of the memory that holds them. No choice is
/// by it.
#[test]
fn an_operator_expects_the_time_of_a_product() {
    let emulated = |l2_bytes, rates| {
        let device = EmulatedDevice { l2_bytes, rates, ..Default::default() };
        Device::from(GpuDevice::emulated_as(Default::default(), device))
    };
    let a = matrix::<f64>(SMALL[3]);
    for way in 0..3 {
        let describe = |l2_bytes, rates| {
            let op = operators(&a, &emulated(l2_bytes, rates)).swap_remove(way);
            (op.describe(), results(&op))
        };
        let rates = Rates { launch_s: 1e-6, l2: 1e9, memory: 1e8 };
        let (none, bits) = describe(0, None);
        assert_eq!(none.expected, None);
        let bytes = none.bytes_per_product;
        for (l2_bytes, ns_per_byte) in [(bytes, 1), (bytes - 1, 10)] {
            let (with, same) = describe(l2_bytes, Some(rates));
            let expected = Duration::from_nanos(1000 + ns_per_byte * bytes);
            assert_eq!((with.expected, with.bytes_per_product), (Some(expected), bytes));
            assert_eq!((with.recipe, same), (none.recipe.clone(), bits.clone()));
        }
        let (wrong, _) = describe(0, Some(Rates { memory: 0.0, ..rates }));
        assert_eq!(wrong.expected, None);
    }
}

/// The same program with and without a GPU.
#[test]
fn auto_runs_on_every_machine() {
    let a = matrix::<f64>(SMALL[1]);
    let op = Operator::builder(a.clone()).device(Device::auto()).build().unwrap();
    products("auto", &a, &op);
    let is_there = GpuDevice::available().is_ok();
    assert_eq!(op.recipe().is_gpu(), is_there);
    let why = op.describe().device;
    assert_eq!(why.starts_with("CPU cores, because no GPU can be used: "), !is_there, "{why}");
}

#[test]
fn a_matrix_beyond_the_memory_of_the_gpu() {
    let a = matrix::<f64>(SMALL[3]);
    let options = spm::spm_gpu::EmulatorOptions { memory: 10_000, ..Default::default() };
    let device = Device::from(GpuDevice::emulated(options));
    let error = Operator::builder(a).device(device).build().unwrap_err();
    let Error::Gpu(GpuError::OutOfMemory { .. }) = error else { panic!("{error:?}") };
}

#[test]
fn operators_and_vectors_are_sent_and_shared() {
    fn send_sync_static<T: Send + Sync + 'static>() {}
    send_sync_static::<Device>();
    send_sync_static::<Operator<f64>>();
    send_sync_static::<Vector<f64>>();
    send_sync_static::<Error>();
    let op = Operator::builder(matrix::<f64>(SMALL[1])).device(Device::emulated()).build().unwrap();
    let op = Arc::new(op);
    let other = Arc::clone(&op);
    let y = thread::spawn(move || {
        let (x, mut y) =
            (other.vector_from(&vector(144)).unwrap(), other.vector_zeros(144).unwrap());
        other.apply_vector(&x, &mut y).unwrap();
        y
    });
    let mut expected = vec![0.0; 144];
    op.apply(&vector(144), &mut expected).unwrap();
    assert_eq!(bits(&y.join().unwrap().to_vec().unwrap()), bits(&expected));
}
