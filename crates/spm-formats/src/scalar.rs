//! The element types that every format and kernel is generic over.

use std::fmt::{Debug, Display, LowerExp};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};
use std::str::FromStr;

use num_complex::Complex;

mod sealed {
    use num_complex::Complex;

    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for Complex<f32> {}
    impl Sealed for Complex<f64> {}
}

/// A matrix element: `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
///
/// Sealed, because the kernels are tuned and tested for these types only. What needs an order or real
/// numbers is in [`RealScalar`].
pub trait Scalar:
    sealed::Sealed
    + Copy
    + Send
    + Sync
    + 'static
    + Default
    + PartialEq
    + Debug
    + Display
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + Sum
{
    /// The type of the real and the imaginary part; a real type itself.
    type Real: RealScalar;
    /// The same kind of number in double precision: `f64` or `Complex<f64>`.
    type Wide: Scalar<Real = f64, Wide = Self::Wide>;

    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Whether there is an imaginary part.
    const IS_COMPLEX: bool;
    /// Name of the type as it stands in tables and file names: `"f32"`, `"f64"`, `"c32"` or `"c64"`,
    /// by the bits of each part.
    const NAME: &'static str;
    /// Size of one element in bytes.
    const BYTES: usize = size_of::<Self>();

    /// `re` + `im` i. A real type has no place for `im`, and drops it.
    fn from_parts(re: Self::Real, im: Self::Real) -> Self;
    /// Rounds a real number to this type.
    fn from_f64(value: f64) -> Self;
    /// The real part.
    fn re(self) -> Self::Real;
    /// The imaginary part; 0 of a real number.
    fn im(self) -> Self::Real;
    /// The complex conjugate; a real number itself.
    fn conj(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self::Real;
    /// The same number in double precision (exact).
    fn widen(self) -> Self::Wide;
    /// Rounds each part to this type.
    fn narrow(wide: Self::Wide) -> Self;
    /// Calls the function of `choice` for this type.
    fn by_field<C: ByField<Self>>(choice: C) -> C::Output;

    /// Neither infinite nor NaN, in both parts.
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.re().to_f64().is_finite() && self.im().to_f64().is_finite()
    }

    /// `factor` times `self`. A complex number times 1 is itself, also where a part is infinite: the product
    /// of all parts would be NaN.
    #[inline(always)]
    fn scaled(self, factor: Self) -> Self {
        if Self::IS_COMPLEX && factor == Self::ONE { self } else { factor * self }
    }

    /// The bit pattern: equality here is bitwise identity. The imaginary part is in the upper half.
    fn to_bits128(self) -> u128 {
        u128::from(self.im().to_bits64()) << 64 | u128::from(self.re().to_bits64())
    }
}

/// `f32` or `f64`.
pub trait RealScalar: Scalar<Real = Self, Wide = f64> + PartialOrd + LowerExp + FromStr {
    /// Unit roundoff `u`: half the distance from 1 to the next number (2^-24 or 2^-53).
    const UNIT_ROUNDOFF: Self;
    /// The smallest positive number.
    const SMALLEST_SUBNORMAL: Self;

    /// Widens to `f64` (exact).
    fn to_f64(self) -> f64;
    /// Fused `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The bit pattern, zero-extended to 64 bits.
    fn to_bits64(self) -> u64;
}

/// A choice between code for real and code for complex numbers, made by the compiler.
///
/// ```
/// use spm_formats::{ByField, RealScalar, Scalar};
///
/// struct Parts;
///
/// impl<T: Scalar> ByField<T> for Parts {
///     type Output = usize;
///
///     fn real(self) -> usize
///     where
///         T: RealScalar,
///     {
///         1
///     }
///
///     fn complex(self) -> usize {
///         2
///     }
/// }
///
/// assert_eq!(f32::by_field(Parts), 1);
/// ```
pub trait ByField<T: Scalar> {
    /// What both functions return.
    type Output;

    /// For `f32` and `f64`.
    fn real(self) -> Self::Output
    where
        T: RealScalar;

    /// For complex numbers.
    fn complex(self) -> Self::Output;
}

/// A scalar whose numbers are numbers of `T` too: of its own type, or in double precision.
pub trait WidensTo<T: Scalar>: Scalar {
    /// The same number (exact).
    fn widen_to(self) -> T;
}

impl<T: Scalar> WidensTo<T> for T {
    #[inline(always)]
    fn widen_to(self) -> T {
        self
    }
}

impl WidensTo<f64> for f32 {
    #[inline(always)]
    fn widen_to(self) -> f64 {
        self.widen()
    }
}

impl WidensTo<Complex<f64>> for Complex<f32> {
    #[inline(always)]
    fn widen_to(self) -> Complex<f64> {
        self.widen()
    }
}

macro_rules! scalars {
    ($real:ident, $name:literal, $complex_name:literal) => {
        impl Scalar for $real {
            type Real = Self;
            type Wide = f64;

            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const IS_COMPLEX: bool = false;
            const NAME: &'static str = $name;

            #[inline(always)]
            fn from_parts(re: Self, _: Self) -> Self {
                re
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $real
            }
            #[inline(always)]
            fn re(self) -> Self {
                self
            }
            #[inline(always)]
            fn im(self) -> Self {
                0.0
            }
            #[inline(always)]
            fn conj(self) -> Self {
                self
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $real::abs(self)
            }
            #[inline(always)]
            fn widen(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn narrow(wide: f64) -> Self {
                wide as $real
            }
            #[inline(always)]
            fn by_field<C: ByField<Self>>(choice: C) -> C::Output {
                choice.real()
            }
        }

        impl RealScalar for $real {
            const UNIT_ROUNDOFF: Self = $real::EPSILON / 2.0;
            const SMALLEST_SUBNORMAL: Self = $real::from_bits(1);

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                $real::mul_add(self, a, b)
            }
            #[inline(always)]
            fn to_bits64(self) -> u64 {
                self.to_bits().into()
            }
        }

        impl Scalar for Complex<$real> {
            type Real = $real;
            type Wide = Complex<f64>;

            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);
            const IS_COMPLEX: bool = true;
            const NAME: &'static str = $complex_name;

            #[inline(always)]
            fn from_parts(re: $real, im: $real) -> Self {
                Complex::new(re, im)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                Complex::new(value as $real, 0.0)
            }
            #[inline(always)]
            fn re(self) -> $real {
                self.re
            }
            #[inline(always)]
            fn im(self) -> $real {
                self.im
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            #[inline(always)]
            fn abs(self) -> $real {
                self.re.hypot(self.im)
            }
            #[inline(always)]
            fn widen(self) -> Complex<f64> {
                Complex::new(self.re.into(), self.im.into())
            }
            #[inline(always)]
            fn narrow(wide: Complex<f64>) -> Self {
                Complex::new(wide.re as $real, wide.im as $real)
            }
            #[inline(always)]
            fn by_field<C: ByField<Self>>(choice: C) -> C::Output {
                choice.complex()
            }
        }
    };
}

scalars!(f32, "f32", "c32");
scalars!(f64, "f64", "c64");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_conjugates_and_magnitudes() {
        let z = Complex::new(3.0_f32, -4.0);
        assert_eq!((z.re(), z.im(), z.abs()), (3.0, -4.0, 5.0));
        assert_eq!(Scalar::conj(z), Complex::new(3.0, 4.0));
        assert_eq!((z.widen(), Complex::narrow(z.widen())), (Complex::new(3.0, -4.0), z));
        assert_eq!(Complex::<f32>::from_f64(0.1), Complex::new(0.1, 0.0));
        assert_eq!((2.0_f32.im(), Scalar::conj(-2.0), f32::from_parts(2.0, 7.0)), (0.0, -2.0, 2.0));
    }

    #[test]
    fn identity_and_finiteness_see_both_parts() {
        let z = Complex::new(1.0, 0.0);
        assert_ne!(z.to_bits128(), Complex::new(1.0, -0.0).to_bits128());
        assert_ne!(z.to_bits128(), Complex::new(-1.0, 0.0).to_bits128());
        assert!(Scalar::is_finite(z));
        for part in [f64::INFINITY, f64::NAN] {
            assert!(!Scalar::is_finite(Complex::new(part, 0.0)));
            assert!(!Scalar::is_finite(Complex::new(0.0, part)));
        }
    }

    struct IsReal;

    impl<T: Scalar> ByField<T> for IsReal {
        type Output = bool;

        fn real(self) -> bool
        where
            T: RealScalar,
        {
            true
        }

        fn complex(self) -> bool {
            false
        }
    }

    #[test]
    fn a_choice_by_field_is_that_of_the_type() {
        assert!(f32::by_field(IsReal) && f64::by_field(IsReal));
        assert!(!Complex::<f32>::by_field(IsReal) && !Complex::<f64>::by_field(IsReal));
    }
}
