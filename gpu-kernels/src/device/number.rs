//! The element types of the kernels for real and complex numbers.

use core::fmt::Debug;
use core::ops::{Add, AddAssign, Mul};

use super::backend::{AccessIf, Shuffle};
use super::{DevicePtr, DevicePtrMut, Element};

/// `f32`, `f64` or a [`Complex`](super::Complex) number of them. What needs an order or real numbers is in
/// [`Real`](super::Real).
pub trait Number:
    Element
    + AccessIf
    + Shuffle
    + PartialEq
    + Debug
    + Add<Output = Self>
    + Mul<Output = Self>
    + AddAssign
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// 0 for `f32`, 1 for `f64`, 2 and 3 for complex numbers of them.
    const INDEX: usize;
    /// Whether [`Number::to_word`] has all of it.
    const IS_A_WORD: bool;

    /// `self * a + b`; each product is added to a part of the result with one rounding.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The complex conjugate; a real number itself.
    fn conj(self) -> Self;
    /// Neither infinite nor NaN, in all parts.
    fn is_finite(self) -> bool;
    /// `factor * self`. A complex number times 1 is itself, also where a part is infinite: the product
    /// of all parts would be NaN.
    fn scaled(self, factor: Self) -> Self;
    /// `self + addend.scaled(factor)`.
    fn add_scaled(self, factor: Self, addend: Self) -> Self;
    /// Its bits in the low end of a word; those of the real part of a complex number.
    fn to_word(self) -> u64;
    /// From the bits in the low end of a word; a complex number has imaginary part 0.
    fn from_word(word: u64) -> Self;
    /// Elements `index` and `index + 1`, real ones with one instruction; `index` must be even.
    fn load_pair(array: DevicePtr<Self>, index: u64) -> [Self; 2];
    /// [`Number::load_pair`] as [`DevicePtr::load_with_line`].
    fn load_pair_with_line(array: DevicePtr<Self>, index: u64) -> [Self; 2];
    /// [`Number::load_pair`] of an array that the kernel may write.
    fn load_written_pair(array: DevicePtrMut<Self>, index: u64) -> [Self; 2];
    /// Overwrites elements `index` and `index + 1`, real ones with one instruction; `index` must be even. See
    /// [`DevicePtrMut::store_streaming`].
    fn store_pair_streaming(array: DevicePtrMut<Self>, index: u64, pair: [Self; 2]);
}
