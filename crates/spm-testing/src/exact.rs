//! Matrices and vectors of whole numbers, whose products are exact in any order of summation: a
//! kernel has to have the very sums of the reference, however long the rows are.
//!
//! All are positive, so that nothing that is left out, taken twice or taken from elsewhere cancels. The
//! real parts of complex ones are the larger ones, so that both parts of their products are positive.

use spm_formats::{Coo, RealScalar, Scalar};

use crate::reference::Reference;

/// What the values of a matrix of whole numbers are. Kernels store each kind in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// All the same, as in a pattern file.
    Equal,
    /// 1, 2 and 3, which single precision holds.
    Small,
    /// Numbers that need more bits than single precision has, in `f64`; in `f32` [`Whole::Small`].
    Wide,
}

impl Whole {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Equal, Self::Small, Self::Wide];
}

/// 1, 2 or 3, as if by chance.
fn digit(seed: u64) -> u64 {
    // splitmix64
    let mut bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    1 + (bits ^ (bits >> 31)) % 3
}

/// `whole`; with an imaginary part drawn from `seed`, and a larger real part, for complex numbers.
fn number<T: Scalar>(whole: u64, seed: u64) -> T {
    let real = |part: u64| T::Real::from_f64(part as f64);
    if T::IS_COMPLEX {
        T::from_parts(real(whole + 3), real(digit(seed)))
    } else {
        T::from_parts(real(whole), T::Real::ZERO)
    }
}

/// The pattern of `a` with whole numbers; entries (i, j) and (j, i) have the same.
pub fn matrix<T: Scalar>(a: &Coo<T>, kind: Whole) -> Coo<T> {
    let value = |row: u32, col: u32| {
        let place = u64::from(row.min(col)) << 32 | u64::from(row.max(col));
        let double = T::Real::UNIT_ROUNDOFF.to_f64() < 1e-10;
        match kind {
            Whole::Equal => number(2, 0),
            Whole::Wide if double => number(digit(place) + (digit(!place) << 28), place + 1),
            Whole::Small | Whole::Wide => number(digit(place), place + 1),
        }
    };
    let values = a.iter().map(|(row, col, _)| value(row, col)).collect();
    let (row_ind, col_ind) = (a.row_ind().to_vec(), a.col_ind().to_vec());
    Coo::new(a.rows(), a.cols(), row_ind, col_ind, values).expect("the same pattern")
}

/// `length` whole numbers from 1 to 3; complex ones from 4 + i to 6 + 3i.
pub fn vector<T: Scalar>(length: usize) -> Vec<T> {
    (0..length as u64).map(|i| number(digit(i), !i)).collect()
}

/// The first element in which `computed` is not that of the reference; `None` where all are equal.
///
/// # Panics
/// When the two have different lengths, and where the sums are not whole numbers that `T` holds.
pub fn difference<T: Scalar>(computed: &[T], reference: &Reference<T::Wide>) -> Option<String> {
    assert_eq!(computed.len(), reference.values.len(), "result and reference differ in length");
    let largest = reference.magnitudes.iter().copied().fold(0.0, f64::max);
    let unit = T::Real::UNIT_ROUNDOFF.to_f64();
    assert!(largest * unit <= 1.0, "sums of {largest:e} are not exact");
    let whole = |value: &T::Wide| value.re().fract() == 0.0 && value.im().fract() == 0.0;
    assert!(reference.values.iter().all(whole), "not whole numbers");
    let mut pairs = computed.iter().zip(&reference.values).enumerate();
    let (element, (found, expected)) = pairs.find(|(_, (y, exact))| y.widen() != **exact)?;
    Some(format!("element {element} is {found}, not {expected}"))
}

#[cfg(test)]
mod tests {
    use spm_formats::Complex;

    use super::*;
    use crate::reference;

    /// A row of 10^6 in single precision: exact, and wrong without any one of its entries.
    #[test]
    fn a_million_terms_are_exact() {
        let length = 1_000_000;
        let (rows, columns) = (vec![0; length], (0..length as u32).collect());
        let pattern = Coo::new(1, length, rows, columns, vec![1.0_f32; length]).unwrap();
        let x = vector::<f32>(length);
        for kind in Whole::ALL {
            let a = matrix(&pattern, kind);
            let expected = reference::spmv(&a, &x);
            let sum = |skipped| {
                let kept = a.values().iter().zip(&x).enumerate().filter(|&(i, _)| i != skipped);
                kept.fold(0.0, |sum: f32, (_, (a, x))| a.mul_add(*x, sum))
            };
            assert_eq!(difference(&[sum(length)], &expected), None, "{kind:?}");
            for skipped in [0, 77_777, length - 1] {
                assert!(difference(&[sum(skipped)], &expected).is_some(), "{kind:?}, {skipped}");
            }
        }
    }

    /// Both parts of every product are positive: nothing cancels.
    #[test]
    fn complex_terms_do_not_cancel() {
        let pattern = Coo::new(1, 2, vec![0, 0], vec![0, 1], vec![Complex::new(0.0_f32, 0.0); 2]);
        let (pattern, x) = (pattern.unwrap(), vector::<Complex<f32>>(2));
        for kind in Whole::ALL {
            let a = matrix(&pattern, kind);
            let expected = reference::spmv(&a, &x);
            let [first, second] = [0, 1].map(|i| a.values()[i] * x[i]);
            assert!([first, second].iter().all(|product| product.re > 0.0 && product.im > 0.0));
            assert_eq!(difference(&[first + second], &expected), None);
            assert!(difference(&[first], &expected).is_some());
            assert!(difference(&[(first + second).conj()], &expected).is_some());
        }
    }

    #[test]
    fn wide_numbers_need_double_precision() {
        let a = Coo::new(2, 2, vec![0, 1, 1], vec![1, 0, 1], vec![0.0; 3]).unwrap();
        let wide = matrix(&a, Whole::Wide);
        assert!(wide.values().iter().all(|&value| f64::from(value as f32) != value));
        assert_eq!(wide.values()[0], wide.values()[1], "symmetric");
        assert_ne!(wide.values()[0], wide.values()[2]);
        assert_eq!(matrix(&a, Whole::Equal).values(), [2.0; 3]);
    }

    #[test]
    #[should_panic(expected = "are not exact")]
    fn sums_that_may_be_rounded_are_refused() {
        let a = Coo::new(1, 2, vec![0, 0], vec![0, 1], vec![1.6e7_f32, 1e6]).unwrap();
        let expected = reference::spmv(&a, &[1.0, 1.0]);
        difference(&[1.7e7_f32], &expected);
    }
}
