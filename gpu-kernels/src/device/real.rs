//! Real elements.

use core::ops::{Neg, Sub};

use super::backend::{self, Fetch};
use super::shared::SharedArray;
use super::{AtomicAdd, DevicePtr, DevicePtrMut, Number};

/// `f32` or `f64`.
pub trait Real:
    Number + Fetch + AtomicAdd + PartialOrd + Sub<Output = Self> + Neg<Output = Self>
{
    /// The number nearest to it in single precision.
    fn single(self) -> f32;
    /// A number in single precision, exactly.
    fn widen(number: f32) -> Self;
    /// Elements `index` to `index + 4` of data that is read once, with one instruction (two for `f64`); `index` must be
    /// a multiple of 4.
    fn load_quad(array: DevicePtr<Self>, index: u64) -> [Self; 4];
    /// Overwrites elements `index` and `index + 1` of shared memory with one instruction; `index` must be even.
    fn store_shared_pair(array: SharedArray<Self>, index: u32, pair: [Self; 2]);
}

macro_rules! real {
    ($type:ident: $bits:ident, $index:literal, $fma:ident) => {
        impl Number for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INDEX: usize = $index;
            const IS_A_WORD: bool = true;

            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                backend::$fma(self, a, b)
            }
            #[inline(always)]
            fn conj(self) -> Self {
                self
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $type::is_finite(self)
            }
            #[inline(always)]
            fn scaled(self, factor: Self) -> Self {
                factor * self
            }
            #[inline(always)]
            fn add_scaled(self, factor: Self, addend: Self) -> Self {
                Number::mul_add(factor, addend, self)
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
            fn load_pair_with_line(array: DevicePtr<Self>, index: u64) -> [Self; 2] {
                array.load_vector_with_line::<2>(index)
            }
            #[inline(always)]
            fn load_written_pair(array: DevicePtrMut<Self>, index: u64) -> [Self; 2] {
                array.load_vector::<2>(index)
            }
            #[inline(always)]
            fn store_pair_streaming(array: DevicePtrMut<Self>, index: u64, pair: [Self; 2]) {
                array.store_vector_streaming::<2>(index, pair);
            }
        }

        impl Real for $type {
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
            fn load_quad(array: DevicePtr<Self>, index: u64) -> [Self; 4] {
                array.load_vector_streaming::<4>(index)
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
