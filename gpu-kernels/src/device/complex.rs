//! Complex elements: two numbers next to each other, moved with one instruction.

#[cfg(not(target_arch = "nvptx64"))]
pub use num_complex::Complex;

#[cfg(target_arch = "nvptx64")]
pub use plain::Complex;

use super::backend::Shuffle;
use super::{DevicePtr, DevicePtrMut, Number};

/// The arithmetic and the layout of `num_complex`, which device code does without.
#[cfg(target_arch = "nvptx64")]
mod plain {
    use core::ops::{Add, AddAssign, Mul};

    use crate::device::Real;

    /// `re` + `im` i.
    #[repr(C)]
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Complex<T> {
        /// The real part.
        pub re: T,
        /// The imaginary part.
        pub im: T,
    }

    impl<T> Complex<T> {
        /// `re` + `im` i.
        #[inline(always)]
        pub const fn new(re: T, im: T) -> Self {
            Self { re, im }
        }
    }

    impl<T: Real> Add for Complex<T> {
        type Output = Self;

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            Self::new(self.re + other.re, self.im + other.im)
        }
    }

    impl<T: Real> AddAssign for Complex<T> {
        #[inline(always)]
        fn add_assign(&mut self, other: Self) {
            *self = *self + other;
        }
    }

    impl<T: Real> Mul for Complex<T> {
        type Output = Self;

        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            let re = self.re * other.re - self.im * other.im;
            Self::new(re, self.re * other.im + self.im * other.re)
        }
    }
}

macro_rules! shuffles {
    ($($name:ident),*) => {$(
        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        fn $name(mask: u32, value: Self, argument: u32, width: u32) -> Self {
            let re = T::$name(mask, value.re, argument, width);
            Self { re, im: T::$name(mask, value.im, argument, width) }
        }
    )*};
}

impl<T: Shuffle> Shuffle for Complex<T> {
    shuffles!(shuffle_down, shuffle_up, shuffle_xor, shuffle_idx);
}

macro_rules! complex {
    ($real:ident, $index:literal) => {
        impl Number for Complex<$real> {
            const ZERO: Self = Self::new(0.0, 0.0);
            const ONE: Self = Self::new(1.0, 0.0);
            const INDEX: usize = $index;
            const IS_A_WORD: bool = false;

            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                let re = Number::mul_add(-self.im, a.im, Number::mul_add(self.re, a.re, b.re));
                let im = Number::mul_add(self.im, a.re, Number::mul_add(self.re, a.im, b.im));
                Self { re, im }
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Self { re: self.re, im: -self.im }
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }
            #[inline(always)]
            fn scaled(self, factor: Self) -> Self {
                if factor == Self::ONE { self } else { factor * self }
            }
            #[inline(always)]
            fn add_scaled(self, factor: Self, addend: Self) -> Self {
                if factor == Self::ONE {
                    self + addend
                } else {
                    Number::mul_add(factor, addend, self)
                }
            }
            #[inline(always)]
            fn to_word(self) -> u64 {
                self.re.to_word()
            }
            #[inline(always)]
            fn from_word(word: u64) -> Self {
                Self { re: Number::from_word(word), im: 0.0 }
            }
            #[inline(always)]
            fn load_pair(array: DevicePtr<Self>, index: u64) -> [Self; 2] {
                [array.load(index), array.load(index + 1)]
            }
            #[inline(always)]
            fn load_pair_with_line(array: DevicePtr<Self>, index: u64) -> [Self; 2] {
                [array.load_with_line(index), array.load_with_line(index + 1)]
            }
            #[inline(always)]
            fn load_written_pair(array: DevicePtrMut<Self>, index: u64) -> [Self; 2] {
                [array.load(index), array.load(index + 1)]
            }
            #[inline(always)]
            fn store_pair_streaming(
                array: DevicePtrMut<Self>,
                index: u64,
                [left, right]: [Self; 2],
            ) {
                array.store_streaming(index, left);
                array.store_streaming(index + 1, right);
            }
        }
    };
}

complex!(f32, 2);
complex!(f64, 3);
