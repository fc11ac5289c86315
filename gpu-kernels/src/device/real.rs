//! The element types of the kernels.

use core::ops::{Add, AddAssign, Mul, Neg, Sub};

use super::backend::{self, AccessIf, Fetch, Shuffle};
use super::shared::SharedArray;
use super::{AtomicAdd, DevicePtr, DevicePtrMut, Element};

/// `f32` or `f64`.
pub trait Real:
    Element
    + AccessIf
    + Shuffle
    + Fetch
    + AtomicAdd
    + PartialEq
    + PartialOrd
    + core::fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// 0 for `f32`, 1 for `f64`.
    const INDEX: usize;

    /// `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// The number nearest to it in single precision.
    fn single(self) -> f32;
    /// A number in single precision, exactly.
    fn widen(number: f32) -> Self;
    /// Its bits in the low end of a word.
    fn to_word(self) -> u64;
    /// From the bits in the low end of a word.
    fn from_word(word: u64) -> Self;
    /// Elements `index` and `index + 1` with one instruction; `index` must be even.
    fn load_pair(array: DevicePtr<Self>, index: u64) -> [Self; 2];
    /// [`Real::load_pair`] of an array that the kernel may write.
    fn load_written_pair(array: DevicePtrMut<Self>, index: u64) -> [Self; 2];
    /// Elements `index` to `index + 4` with one instruction (two for `f64`); `index` must be a
    /// multiple of 4.
    fn load_quad(array: DevicePtr<Self>, index: u64) -> [Self; 4];
    /// Overwrites elements `index` and `index + 1` with one instruction; `index` must be even.
    fn store_pair(array: DevicePtrMut<Self>, index: u64, pair: [Self; 2]);
    /// [`Real::store_pair`] in shared memory.
    fn store_shared_pair(array: SharedArray<Self>, index: u32, pair: [Self; 2]);
}

macro_rules! real {
    ($type:ident: $bits:ident, $index:literal, $fma:ident) => {
        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INDEX: usize = $index;

            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                backend::$fma(self, a, b)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $type::is_finite(self)
            }
            #[inline(always)]
            #[allow(clippy::unnecessary_cast)]
            fn single(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn widen(number: f32) -> Self {
                number.into()
            }
            #[inline(always)]
            fn to_word(self) -> u64 {
                self.to_bits().into()
            }
            #[inline(always)]
            fn from_word(word: u64) -> Self {
                Self::from_bits(word as $bits)
            }
            #[inline(always)]
            fn load_pair(array: DevicePtr<Self>, index: u64) -> [Self; 2] {
                array.load_vector::<2>(index)
            }
            #[inline(always)]
            fn load_written_pair(array: DevicePtrMut<Self>, index: u64) -> [Self; 2] {
                array.load_vector::<2>(index)
            }
            #[inline(always)]
            fn load_quad(array: DevicePtr<Self>, index: u64) -> [Self; 4] {
                array.load_vector::<4>(index)
            }
            #[inline(always)]
            fn store_pair(array: DevicePtrMut<Self>, index: u64, pair: [Self; 2]) {
                array.store_vector::<2>(index, pair);
            }
            #[inline(always)]
            fn store_shared_pair(array: SharedArray<Self>, index: u32, pair: [Self; 2]) {
                array.store_vector::<2>(index, pair);
            }
        }
    };
}

real!(f32: u32, 0, fma_f32);
real!(f64: u64, 1, fma_f64);
