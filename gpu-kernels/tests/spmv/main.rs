//! Every SpMV kernel on the emulator against the reference: f32 and f64, rows of all lengths, several
//! schedules, an infinite x, and the same bits every time.

mod csr;
mod ell;
mod hll;
mod matrices;
mod sell;

use spm_formats::convert::coo_to_csr;
use spm_formats::{Coo, Csr, RealScalar};
use spm_gpu_kernels::device::Real;
use spm_gpu_kernels::emulator::{Emulator, EmulatorError, EmulatorOptions};
use spm_testing::edge_cases::vector;
use spm_testing::reference;

/// Computes A x on the emulator.
type Product<T> = fn(&Emulator, &Csr<T>, &[T]) -> Result<Vec<T>, EmulatorError>;

/// Runs `product` on test matrices, with a finite x and with an infinite one.
fn check<T: RealScalar + Real>(matrices: Vec<(&'static str, Coo<T>)>, product: Product<T>) {
    for (name, a) in matrices {
        let csr = coo_to_csr(&a);
        let finite = vector::<T>(a.cols());
        let mut infinite = finite.clone();
        for (j, x) in infinite.iter_mut().enumerate() {
            if j % 7 == 0 {
                *x = T::from_f64(f64::INFINITY);
            }
        }
        compare(name, product, &a, &csr, &finite);
        compare(&format!("{name}, infinite x"), product, &a, &csr, &infinite);
    }
}

fn compare<T: RealScalar + Real>(
    what: &str,
    product: Product<T>,
    a: &Coo<T>,
    csr: &Csr<T>,
    x: &[T],
) {
    let reference = reference::spmv(a, x);
    let mut first: Option<Vec<Option<u64>>> = None;
    for seed in 0..3 {
        let emulator = Emulator::new(EmulatorOptions { seed, ..Default::default() });
        let y = product(&emulator, csr, x).unwrap_or_else(|error| panic!("{what}: {error}"));
        let errors = reference::compare(&y, &reference);
        assert!(errors.acceptable(), "{what}, {}: {errors:?}", T::NAME);
        // A NaN's payload is not specified; everything else is the same.
        let bits: Vec<Option<u64>> =
            y.iter().map(|y| (!y.to_f64().is_nan()).then(|| y.to_bits64())).collect();
        let expected = first.get_or_insert_with(|| bits.clone());
        assert_eq!(bits, *expected, "{what}, {}: other bits with seed {seed}", T::NAME);
    }
}

/// Blocks of `per_block` that cover `items`, at least one.
fn blocks(items: usize, per_block: u32) -> u32 {
    (items as u32).div_ceil(per_block).max(1)
}

/// One test per element type for each product; `on` names the test matrices.
macro_rules! product_tests {
    (on $matrices:ident; $($name:ident => $product:expr),* $(,)?) => {$(
        mod $name {
            use super::*;

            #[test]
            fn f32() {
                crate::check::<f32>(crate::matrices::$matrices(), $product);
            }

            #[test]
            fn f64() {
                crate::check::<f64>(crate::matrices::$matrices(), $product);
            }
        }
    )*};
}
use product_tests;
