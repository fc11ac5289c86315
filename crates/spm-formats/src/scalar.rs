//! The element types that every format and kernel is generic over.

use std::fmt::{Debug, Display, LowerExp};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};
use std::str::FromStr;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A matrix element: `f32` or `f64`.
///
/// Sealed, because the kernels are tuned and tested for these two types only.
pub trait Scalar:
    sealed::Sealed
    + Copy
    + Send
    + Sync
    + 'static
    + Default
    + PartialEq
    + PartialOrd
    + Debug
    + Display
    + LowerExp
    + FromStr
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + Sum
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Unit roundoff `u`: half the distance from 1 to the next number (2^-24 or 2^-53).
    const UNIT_ROUNDOFF: Self;
    /// The smallest positive number.
    const SMALLEST_SUBNORMAL: Self;
    /// Name of the type as it stands in tables: `"f32"` or `"f64"`.
    const NAME: &'static str;
    /// Size of one element in bytes.
    const BYTES: usize = size_of::<Self>();

    /// Widens to `f64` (exact).
    fn to_f64(self) -> f64;
    /// Rounds an `f64` to this type.
    fn from_f64(value: f64) -> Self;
    /// Fused `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// The bit pattern, zero-extended to 64 bits: equality here is bitwise identity.
    fn to_bits64(self) -> u64;
}

macro_rules! scalar {
    ($type:ident, $name:literal) => {
        impl Scalar for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const UNIT_ROUNDOFF: Self = $type::EPSILON / 2.0;
            const SMALLEST_SUBNORMAL: Self = $type::from_bits(1);
            const NAME: &'static str = $name;

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                $type::mul_add(self, a, b)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $type::abs(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $type::is_finite(self)
            }
            #[inline(always)]
            fn to_bits64(self) -> u64 {
                self.to_bits().into()
            }
        }
    };
}

scalar!(f32, "f32");
scalar!(f64, "f64");
