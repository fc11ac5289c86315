//! Operations on vectors, on every device.

use spm::{Complex, Operator};

use crate::common::matrix;
use crate::devices::{SMALL, complex, devices};

/// conj(x) y, and norms of complex numbers.
#[test]
fn operations_on_complex_vectors() {
    for (name, device) in devices() {
        let a = matrix::<Complex<f64>>(SMALL[0]);
        let op = Operator::builder(a).device(device).build().unwrap();
        let (u, v) =
            ([complex(1.0, 2.0), complex(-3.0, 1.0)], [complex(0.0, 1.0), complex(2.0, 5.0)]);
        let (x, mut y) = (op.vector_from(&u).unwrap(), op.vector_from(&v).unwrap());
        // (1 - 2i) i + (-3 - i) (2 + 5i)
        assert_eq!(x.dot(&y).unwrap(), Complex::new(1.0, -16.0), "{name}");
        assert_eq!(x.norm2().unwrap(), 15.0_f64.sqrt(), "{name}");
        y.axpby(complex(0.0, 1.0), &x, complex(2.0, 0.0)).unwrap();
        assert_eq!(y.to_vec().unwrap(), [complex(-2.0, 3.0), complex(3.0, 7.0)], "{name}");
    }
}

#[test]
fn operations_on_vectors() {
    for (name, device) in devices() {
        let op = Operator::builder(matrix::<f64>(SMALL[0])).device(device).build().unwrap();
        let a: Vec<f64> = (0..1030).map(|i| f64::from(i % 7) - 3.0).collect();
        let b: Vec<f64> = (0..1030).map(|i| f64::from(i % 5) - 1.0).collect();
        let each = |f: fn(f64, f64) -> f64| -> Vec<f64> {
            a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect()
        };
        let (x, mut y) = (op.vector_from(&a).unwrap(), op.vector_from(&b).unwrap());
        assert_eq!((y.len(), y.is_empty()), (1030, false));
        assert_eq!(x.dot(&y).unwrap(), each(|a, b| a * b).iter().sum::<f64>(), "{name}");
        assert_eq!(x.norm2().unwrap(), each(|a, _| a * a).iter().sum::<f64>().sqrt(), "{name}");
        y.axpby(2.0, &x, -1.0).unwrap();
        assert_eq!(y.to_vec().unwrap(), each(|a, b| 2.0 * a - b), "{name}");
        let mut z = y.try_clone().unwrap();
        z.scale(3.0).unwrap();
        z.axpy(1.0, &y).unwrap();
        assert_eq!(z.to_vec().unwrap(), each(|a, b| 4.0 * (2.0 * a - b)), "{name}");
        z.set_product(&x, &x).unwrap();
        assert_eq!(z.to_vec().unwrap(), each(|a, _| a * a), "{name}");
        z.fill(2.0).unwrap();
        assert_eq!(z.to_vec().unwrap(), [2.0; 1030], "{name}");
        z.copy_from(&x).unwrap();
        y.copy_from_slice(&b).unwrap();
        let mut copy = vec![0.0; 1030];
        z.copy_to_slice(&mut copy).unwrap();
        assert_eq!((copy, y.to_vec().unwrap()), (a.clone(), b.clone()), "{name}");
        z.fill(f64::NAN).unwrap();
        z.axpby(1.0, &x, 0.0).unwrap();
        assert_eq!(z.to_vec().unwrap(), a, "{name}");
    }
}
