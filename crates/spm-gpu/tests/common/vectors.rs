//! Vectors on a device against the same operations on the host, with small whole numbers, whose sums are
//! exact.

use spm_formats::Scalar;
use spm_gpu::{Device, DeviceScalar, DeviceVector, GpuError, Stream};

/// Tries something on a device.
type Test = fn(&Device);

/// What to try, with its name.
pub(crate) const ALL: [(&str, Test); 5] = [
    ("operations_f64", operations::<f64>),
    ("operations_f32", operations::<f32>),
    ("streams_wait_for_each_other", streams_wait_for_each_other),
    ("sums_have_the_same_bits", sums_have_the_same_bits),
    ("wrong_vectors_are_refused", wrong_vectors_are_refused),
];

/// Around the threads of a warp and of a block, the elements of a block of a dot product, and more than one
/// of those.
const LENGTHS: [usize; 10] = [0, 1, 31, 32, 33, 256, 257, 1024, 1025, 5000];

/// Whole numbers from -8 to 8.
fn whole<T: Scalar>(length: usize, seed: usize) -> Vec<T> {
    (0..length).map(|i| T::from_f64(((i * 7 + seed) % 17) as f64 - 8.0)).collect()
}

fn operations<T: DeviceScalar>(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let number = <T as Scalar>::from_f64;
    for length in LENGTHS {
        let (a, b) = (whole::<T>(length, 3), whole::<T>(length, 11));
        let each = |f: &dyn Fn(T, T) -> T| -> Vec<T> {
            a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect()
        };
        let x = DeviceVector::from_slice(&stream, &a).unwrap();
        let y = || DeviceVector::from_slice(&stream, &b).unwrap();
        let check = |what: &str, y: DeviceVector<T>, expected: Vec<T>| {
            assert_eq!(y.to_vec().unwrap(), expected, "{what} of {length}");
        };
        check("zeros", DeviceVector::zeros(&stream, length).unwrap(), each(&|_, _| number(0.0)));
        check("copy", x.try_clone().unwrap(), a.clone());

        let mut z = y();
        z.copy_from(&x).unwrap();
        check("copy_from", z, a.clone());
        let mut z = y();
        z.copy_from_slice(&a).unwrap();
        check("copy_from_slice", z, a.clone());
        let mut z = y();
        z.fill(number(2.5)).unwrap();
        check("fill", z, each(&|_, _| number(2.5)));
        let mut z = y();
        z.scale(number(-3.0)).unwrap();
        check("scale", z, each(&|_, b| number(-3.0) * b));
        let mut z = y();
        z.axpy(number(2.0), &x).unwrap();
        check("axpy", z, each(&|a, b| number(2.0) * a + b));
        let mut z = y();
        z.axpby(number(2.0), &x, number(-3.0)).unwrap();
        check("axpby", z, each(&|a, b| number(2.0) * a + number(-3.0) * b));
        let mut z = y();
        z.set_product(&x, &y()).unwrap();
        check("set_product", z, each(&|a, b| a * b));
        // The same vector twice.
        let mut z = y();
        z.set_product(&x, &x).unwrap();
        check("squares", z, each(&|a, _| a * a));

        let mut z = y();
        z.fill(number(f64::NAN)).unwrap();
        z.axpby(number(2.0), &x, number(0.0)).unwrap();
        check("axpby over NaN", z, each(&|a, _| number(2.0) * a));

        let sum = |values: Vec<T>| values.into_iter().sum::<T>();
        assert_eq!(x.dot(&y()).unwrap(), sum(each(&|a, b| a * b)), "dot of {length}");
        // A second time with the same workspace.
        assert_eq!(x.dot(&x).unwrap(), sum(each(&|a, _| a * a)), "square of {length}");
    }
    let ones = DeviceVector::from_slice(&stream, &[number(1.0); 4]).unwrap();
    assert_eq!(ones.norm2().unwrap().to_f64(), 2.0);
}

/// Operations on vectors of two streams wait for each other.
fn streams_wait_for_each_other(device: &Device) {
    let streams = [Stream::new(device).unwrap(), Stream::new(device).unwrap()];
    let (mut x, mut y) = (
        DeviceVector::<f64>::zeros(&streams[0], 3000).unwrap(),
        DeviceVector::<f64>::zeros(&streams[1], 3000).unwrap(),
    );
    x.fill(1.0).unwrap();
    for _ in 0..5 {
        y.axpy(1.0, &x).unwrap();
        x.axpy(1.0, &y).unwrap();
    }
    // Fibonacci numbers: each vector is the sum of the last two.
    assert_eq!(x.dot(&y).unwrap(), 3000.0 * 55.0 * 89.0);
    // A vector that was written in its own stream only.
    let mut z = DeviceVector::zeros(&streams[1], 3000).unwrap();
    z.fill(2.0).unwrap();
    assert_eq!(x.dot(&z).unwrap(), 3000.0 * 2.0 * 89.0);
    let mut z = DeviceVector::zeros(&streams[0], 3000).unwrap();
    z.set_product(&x, &y).unwrap();
    x.fill(0.0).unwrap();
    y.fill(0.0).unwrap();
    assert_eq!(z.to_vec().unwrap(), vec![55.0 * 89.0; 3000]);
}

/// The order of a sum is that of its length: rounding is the same each time, and on the emulator as on a
/// GPU.
fn sums_have_the_same_bits(device: &Device) {
    let other = Device::emulated(Default::default());
    let dot = |device: &Device| {
        let stream = Stream::new(device).unwrap();
        let vector = |f: fn(f64) -> f64| {
            let values: Vec<f64> = (0..9000).map(|i| f(f64::from(i))).collect();
            DeviceVector::from_slice(&stream, &values).unwrap()
        };
        vector(f64::sin).dot(&vector(f64::sqrt)).unwrap().to_bits()
    };
    assert_eq!([dot(device), dot(device)], [dot(&other); 2]);
}

fn wrong_vectors_are_refused(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let (mut x, y) = (
        DeviceVector::<f64>::zeros(&stream, 3).unwrap(),
        DeviceVector::<f64>::zeros(&stream, 2).unwrap(),
    );
    let shape = |found| Err(GpuError::Shape { what: "x", expected: 3, found });
    assert_eq!(x.dot(&y).map(drop), shape(2));
    assert_eq!(x.axpy(1.0, &y), shape(2));
    assert_eq!(x.copy_from(&y), shape(2));
    assert_eq!(x.set_product(&y, &y), shape(2));
    let host = Err(GpuError::Shape { what: "device buffer", expected: 3, found: 1 });
    assert_eq!(x.copy_from_slice(&[1.0]), host);
    assert_eq!(x.copy_to_slice(&mut [1.0]), host);
    let other = Device::emulated(Default::default());
    let other = DeviceVector::zeros(&Stream::new(&other).unwrap(), 3).unwrap();
    let device = Err(GpuError::OtherDevice { what: "x" });
    assert_eq!(x.axpy(1.0, &other), device);
    assert_eq!(x.dot(&other).map(drop), device);
    assert_eq!(x.to_vec().unwrap(), [0.0; 3]);
}
