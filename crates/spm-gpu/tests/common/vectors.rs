//! Vectors on a device against the same operations on the host, with small whole numbers, whose sums are
//! exact.

use spm_formats::{Complex, RealScalar, Scalar};
use spm_gpu::{
    Device, DeviceBuffer, DeviceRows, DeviceScalar, DeviceVector, Event, GpuError, HostBuffer,
    Stream,
};

/// Tries something on a device.
type Test = fn(&Device);

/// What to try, with its name.
pub(crate) const ALL: [(&str, Test); 13] = [
    ("operations_f64", operations::<f64>),
    ("operations_f32", operations::<f32>),
    ("operations_c64", operations::<Complex<f64>>),
    ("operations_c32", operations::<Complex<f32>>),
    ("a_complex_factor_of_1_changes_nothing", a_complex_factor_of_1_changes_nothing),
    ("streams_wait_for_each_other", streams_wait_for_each_other),
    ("sums_have_the_same_bits", sums_have_the_same_bits),
    ("wrong_vectors_are_refused", wrong_vectors_are_refused),
    ("rows_are_copied_out_and_in_f64", rows_are_copied_out_and_in::<f64>),
    ("rows_are_copied_out_and_in_c64", rows_are_copied_out_and_in::<Complex<f64>>),
    ("rows_are_copied_out_and_in_f32", rows_are_copied_out_and_in::<f32>),
    ("page_locked_memory_is_a_slice", page_locked_memory_is_a_slice),
    ("parts_are_copied_between_devices", parts_are_copied_between_devices),
];

/// Around the threads of a warp and of a block, the elements of a block of a dot product, and more than one
/// of those.
const LENGTHS: [usize; 10] = [0, 1, 31, 32, 33, 256, 257, 1024, 1025, 5000];

/// Numbers whose parts are whole, from -8 to 8.
fn whole<T: Scalar>(length: usize, seed: usize) -> Vec<T> {
    let part = |i: usize| <T::Real as Scalar>::from_f64(((i * 7 + seed) % 17) as f64 - 8.0);
    (0..length).map(|i| T::from_parts(part(i), part(3 * i + 5))).collect()
}

/// A number; of complex ones with the imaginary part 1, unless it is 0.
fn number<T: Scalar>(value: f64) -> T {
    let im = if value == 0.0 { 0.0 } else { 1.0 };
    T::from_parts(<T::Real as Scalar>::from_f64(value), <T::Real as Scalar>::from_f64(im))
}

fn operations<T: DeviceScalar>(device: &Device) {
    let stream = Stream::new(device).unwrap();
    for length in LENGTHS {
        let (a, b) = (whole::<T>(length, 3), whole::<T>(length, 11));
        let each = |f: &dyn Fn(T, T) -> T| -> Vec<T> {
            a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect()
        };
        let number = number::<T>;
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
        assert_eq!(x.dot(&y()).unwrap(), sum(each(&|a, b| Scalar::conj(a) * b)), "dot of {length}");
        // A second time with the same workspace.
        assert_eq!(
            x.dot(&x).unwrap(),
            sum(each(&|a, _| Scalar::conj(a) * a)),
            "square of {length}"
        );
    }
    let threes = DeviceVector::from_slice(&stream, &[<T as Scalar>::from_f64(3.0); 4]).unwrap();
    assert_eq!(threes.norm2().unwrap().to_f64(), 6.0);
    // 3^2 + 4^2 of a complex number.
    let five =
        T::from_parts(<T::Real as Scalar>::from_f64(3.0), <T::Real as Scalar>::from_f64(4.0));
    let norm = DeviceVector::from_slice(&stream, &[five]).unwrap().norm2().unwrap();
    assert_eq!(norm.to_f64(), if T::IS_COMPLEX { 5.0 } else { 3.0 });
}

/// 1 z is z, also where z is infinite: multiplied part by part it would be NaN.
fn a_complex_factor_of_1_changes_nothing(device: &Device) {
    let (stream, one) = (Stream::new(device).unwrap(), Complex::new(1.0, 0.0));
    let infinite = [Complex::new(f64::INFINITY, 2.0), Complex::new(1.0, f64::NEG_INFINITY)];
    let x = DeviceVector::from_slice(&stream, &infinite).unwrap();
    let zeros = DeviceVector::zeros(&stream, 2).unwrap();
    let check = |what: &str, y: &DeviceVector<Complex<f64>>| {
        assert_eq!(y.to_vec().unwrap(), infinite, "{what}");
    };
    let mut y = x.try_clone().unwrap();
    y.scale(one).unwrap();
    check("scale", &y);
    y.axpy(Complex::new(2.0, 1.0), &zeros).unwrap();
    check("axpy", &y);
    y.axpby(one, &x, Complex::new(0.0, 0.0)).unwrap();
    check("axpby", &y);
    let mut y = DeviceVector::zeros(&stream, 2).unwrap();
    y.axpy(one, &x).unwrap();
    check("axpy of zeros", &y);
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

/// Rows of 1 and of many columns, into the middle of an array and back.
fn rows_are_copied_out_and_in<T: DeviceScalar>(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let of = 600;
    for (count, k) in [(0, 3), (1, 1), (257, 1), (300, 3), (40, 32), (9, 70), (5, 0)] {
        let rows: Vec<u32> = (0..count).map(|i| (i * 7 + 3) % of as u32).collect();
        let (x, before) = (whole::<T>(of * k, 3), whole::<T>(of * k, 5));
        let chosen = DeviceRows::new(device, &rows, of).unwrap();
        assert_eq!((chosen.len(), chosen.is_empty()), (rows.len(), rows.is_empty()));
        let device_x = DeviceBuffer::from_slice(device, &x).unwrap();
        let mut packed = DeviceBuffer::zeroed(device, (rows.len() + 5) * k).unwrap();
        let mut y = DeviceBuffer::from_slice(device, &before).unwrap();
        let mut z = DeviceBuffer::from_slice(device, &before).unwrap();
        chosen.gather(k, &device_x, &mut packed, 2, &stream).unwrap();
        chosen.scatter_add(k, &packed, 2, &mut y, &stream).unwrap();
        let mut expected =
            [vec![<T as Scalar>::ZERO; packed.len()], before.clone(), before.clone()];
        for (i, &row) in rows.iter().enumerate() {
            for column in 0..k {
                let at = row as usize * k + column;
                expected[0][(i + 2) * k + column] = x[at];
                expected[1][at] += x[at];
                expected[2][at] =
                    if i >= 2 { x[rows[i - 2] as usize * k + column] } else { <T as Scalar>::ZERO };
            }
        }
        stream.synchronize().unwrap();
        assert_eq!(packed.to_vec().unwrap(), expected[0], "{count} rows of {k}");
        assert_eq!(y.to_vec().unwrap(), expected[1], "{count} rows of {k}");
        // What is overwritten may be NaN.
        for &row in &rows {
            let nan = vec![<T as Scalar>::from_f64(f64::NAN); k];
            z.copy_part_from_slice_on(row as usize * k, &nan, &stream).unwrap();
        }
        chosen.scatter(k, &packed, &mut z, &stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(z.to_vec().unwrap(), expected[2], "{count} rows of {k}");
    }
    assert!(matches!(DeviceRows::new(device, &[3, 7], 7), Err(GpuError::Shape { .. })));
    let rows = DeviceRows::new(device, &[3, 6], 7).unwrap();
    let (x, mut y) = (
        DeviceBuffer::<T>::zeroed(device, 14).unwrap(),
        DeviceBuffer::<T>::zeroed(device, 4).unwrap(),
    );
    assert!(rows.gather(2, &x, &mut y, 0, &stream).is_ok());
    assert!(rows.gather(2, &x, &mut y, 1, &stream).is_err());
    assert!(rows.gather(2, &x, &mut y, usize::MAX, &stream).is_err());
    assert!(rows.gather(1, &x, &mut y, 0, &stream).is_err());
    assert!(rows.gather(usize::MAX, &x, &mut y, 0, &stream).is_err());
    assert!(rows.scatter(2, &x, &mut y, &stream).is_err());
    assert!(
        rows.scatter_add(2, &y, 1, &mut DeviceBuffer::zeroed(device, 14).unwrap(), &stream)
            .is_err()
    );
    let other = Stream::new(&Device::emulated(Default::default())).unwrap();
    assert!(rows.gather(2, &x, &mut y, 0, &other).is_err());
}

/// Copies to page-locked memory and back, in parts.
fn page_locked_memory_is_a_slice(device: &Device) {
    let stream = Stream::new(device).unwrap();
    let x = whole::<f32>(1000, 3);
    let mut device_x = DeviceBuffer::from_slice(device, &x).unwrap();
    let mut host = HostBuffer::<f32>::zeroed(device, 1000).unwrap();
    assert_eq!(host[..], [0.0; 1000]);
    device_x.copy_to_slice_on(&mut host, &stream).unwrap();
    assert_eq!(host[..], x[..]);
    host.iter_mut().for_each(|x| *x += 1.0);
    device_x.copy_part_from_slice_on(10, &host[20..30], &stream).unwrap();
    let found = device_x.to_vec().unwrap();
    assert!(found.iter().enumerate().all(|(i, &found)| {
        found == if (10..20).contains(&i) { x[i + 10] + 1.0 } else { x[i] }
    }));
    assert!(HostBuffer::<f32>::zeroed(device, 0).unwrap().is_empty());
    assert!(HostBuffer::<f64>::zeroed(device, usize::MAX).is_err());
}

/// A ring of copies over buffers of two devices, each of which waits for an event of the other one.
fn parts_are_copied_between_devices(device: &Device) {
    let another = match device.is_emulated() {
        true => Device::emulated(Default::default()),
        false => Device::open(0).unwrap(),
    };
    for other in [device, &another] {
        assert!(device.enable_peer(other).unwrap());
        let streams = [Stream::new(device).unwrap(), Stream::new(other).unwrap()];
        let mut a = DeviceBuffer::from_slice(device, &[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let mut b = DeviceBuffer::<f64>::uninitialized(other, 4).unwrap();
        let marks = [Event::without_time(device).unwrap(), Event::without_time(other).unwrap()];
        b.enqueue_zero(&streams[1]).unwrap();
        for _ in 0..3 {
            marks[0].record(&streams[0]).unwrap();
            streams[1].wait(&marks[0]).unwrap();
            b.copy_part_from_on(1, &a, 2, 2, &streams[1]).unwrap();
            marks[1].record(&streams[1]).unwrap();
            streams[0].wait(&marks[1]).unwrap();
            a.copy_part_from_on(0, &b, 1, 3, &streams[0]).unwrap();
        }
        let mut part = [0.0; 2];
        a.copy_part_to_slice_on(2, &mut part, &streams[0]).unwrap();
        assert_eq!(part, [0.0, 4.0]);
        streams[1].synchronize().unwrap();
        assert_eq!(a.to_vec().unwrap(), [0.0, 4.0, 0.0, 4.0, 5.0]);
        assert_eq!(b.to_vec().unwrap(), [0.0, 0.0, 4.0, 0.0]);
        assert!(b.copy_part_from_on(3, &a, 0, 2, &streams[1]).is_err());
        assert!(b.copy_part_from_on(0, &a, 4, 2, &streams[1]).is_err());
        assert!(b.copy_part_from_on(usize::MAX, &a, 0, 2, &streams[1]).is_err());
        // The source is freed before the copy is waited for.
        let source = DeviceBuffer::from_slice(device, &[7.0; 4]).unwrap();
        b.copy_part_from_on(0, &source, 0, 4, &streams[1]).unwrap();
        drop(source);
        streams[1].synchronize().unwrap();
        assert_eq!(b.to_vec().unwrap(), [7.0; 4]);
    }
    let stream = Stream::new(&another).unwrap();
    let (source, mut b) = (
        DeviceBuffer::<f64>::zeroed(device, 4).unwrap(),
        DeviceBuffer::zeroed(&another, 4).unwrap(),
    );
    assert!(b.copy_part_from_on(0, &source, 0, 4, &Stream::new(device).unwrap()).is_err());
    assert!(b.copy_part_from_on(0, &source, 0, 4, &stream).is_ok());
}
