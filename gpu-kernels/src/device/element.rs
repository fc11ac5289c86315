//! Element types of device memory.

use super::Complex;
use super::backend::Access;

mod sealed {
    pub trait Sealed {}
}

/// Plain data that a thread loads or stores with one instruction (two for `[f64; 4]`): scalars of
/// 2, 4 and 8 bytes, pairs and quads of them, and complex numbers, aligned to their size (at most 16
/// bytes).
///
/// # Safety
/// Every bit pattern is a value, there is no padding, and `Access` moves exactly
/// `size_of::<Self>()` bytes.
pub unsafe trait Element: Access + sealed::Sealed + Copy + Send + Sync + 'static {
    /// The alignment of an access, in bytes.
    const ALIGNMENT: u32;
}

macro_rules! elements {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl sealed::Sealed for [$type; 2] {}
        impl sealed::Sealed for [$type; 4] {}
        // SAFETY: numbers and arrays of them have no padding and no invalid values.
        unsafe impl Element for $type {
            const ALIGNMENT: u32 = size_of::<$type>() as u32;
        }
        // SAFETY: as above.
        unsafe impl Element for [$type; 2] {
            const ALIGNMENT: u32 = alignment(2 * size_of::<$type>());
        }
        // SAFETY: as above.
        unsafe impl Element for [$type; 4] {
            const ALIGNMENT: u32 = alignment(4 * size_of::<$type>());
        }
    )*};
}

elements!(u16, u32, i32, f32, u64, f64);

macro_rules! complex_elements {
    ($($real:ty),*) => {$(
        impl sealed::Sealed for Complex<$real> {}
        // SAFETY: two numbers of one type, in C order.
        unsafe impl Element for Complex<$real> {
            const ALIGNMENT: u32 = alignment(2 * size_of::<$real>());
        }
    )*};
}

complex_elements!(f32, f64);

const fn alignment(bytes: usize) -> u32 {
    if bytes < 16 { bytes as u32 } else { 16 }
}

/// An index into device memory: `u32`, `u64` or `usize`.
pub trait Index: Copy {
    /// Widened.
    fn widen(self) -> u64;
}

impl Index for u32 {
    #[inline(always)]
    fn widen(self) -> u64 {
        u64::from(self)
    }
}

impl Index for u64 {
    #[inline(always)]
    fn widen(self) -> u64 {
        self
    }
}

impl Index for usize {
    #[inline(always)]
    fn widen(self) -> u64 {
        self as u64
    }
}
