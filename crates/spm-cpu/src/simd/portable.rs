//! Portable vectors: plain arrays, without target-specific instructions.

use spm_formats::Scalar;

use super::{HALF, Isa, LANES};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

impl<T: Scalar> Isa<T> for Portable {
    type Vector = [T; LANES];
    type Half = [T; HALF];
    type Few = *const T;
    const MOST_VECTORS: usize = 2;

    #[inline(always)]
    unsafe fn splat(value: T) -> [T; LANES] {
        [value; LANES]
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> [T; LANES] {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<[T; LANES]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_some(lanes: u8, from: *const T) -> [T; LANES] {
        std::array::from_fn(|lane| {
            // SAFETY: the caller's promise.
            if lanes >> lane & 1 == 1 { unsafe { *from.wrapping_add(lane) } } else { T::ZERO }
        })
    }
    #[inline(always)]
    unsafe fn store(to: *mut T, vector: [T; LANES]) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<[T; LANES]>().write_unaligned(vector) }
    }
    #[inline(always)]
    unsafe fn store_some(lanes: u8, to: *mut T, vector: [T; LANES]) {
        for (lane, value) in vector.into_iter().enumerate() {
            if lanes >> lane & 1 == 1 {
                // SAFETY: the caller's promise.
                unsafe { to.wrapping_add(lane).write(value) };
            }
        }
    }
    #[inline(always)]
    unsafe fn stream(to: *mut T, vector: [T; LANES]) {
        // SAFETY: the caller's promise.
        unsafe { Self::store(to, vector) };
    }
    #[inline(always)]
    unsafe fn stream_fence() {}
    #[inline(always)]
    unsafe fn add(a: [T; LANES], b: [T; LANES]) -> [T; LANES] {
        std::array::from_fn(|lane| a[lane] + b[lane])
    }
    #[inline(always)]
    unsafe fn mul(a: [T; LANES], b: [T; LANES]) -> [T; LANES] {
        std::array::from_fn(|lane| a[lane] * b[lane])
    }
    #[inline(always)]
    unsafe fn mul_add(a: [T; LANES], b: [T; LANES], c: [T; LANES]) -> [T; LANES] {
        // Not fused: without the instruction that is a call of the mathematics library.
        std::array::from_fn(|lane| a[lane] * b[lane] + c[lane])
    }
    #[inline(always)]
    unsafe fn gather_u8(from: *const T, index: *const u8) -> [T; LANES] {
        // SAFETY: the caller's promise.
        std::array::from_fn(|lane| unsafe { *from.add(usize::from(*index.add(lane))) })
    }
    #[inline(always)]
    unsafe fn gather_u16(from: *const T, index: *const u16) -> [T; LANES] {
        // SAFETY: the caller's promise.
        std::array::from_fn(|lane| unsafe { *from.add(usize::from(*index.add(lane))) })
    }
    #[inline(always)]
    unsafe fn gather_pairs(from: *const T, index: *const u16) -> ([T; LANES], [T; LANES]) {
        // SAFETY: the caller's promise.
        let at =
            |lane: usize, behind| unsafe { *from.add(usize::from(*index.add(lane / 2)) + behind) };
        (std::array::from_fn(|lane| at(lane, 0)), std::array::from_fn(|lane| at(lane, 1)))
    }
    #[inline(always)]
    unsafe fn gather_u32(from: *const T, index: *const u32) -> [T; LANES] {
        // SAFETY: the caller's promise.
        std::array::from_fn(|lane| unsafe { *from.add(*index.add(lane) as usize) })
    }
    #[inline(always)]
    unsafe fn few(from: *const T) -> *const T {
        from
    }
    #[inline(always)]
    unsafe fn pick(few: *const T, index: *const u8) -> [T; LANES] {
        // SAFETY: the caller's promise.
        unsafe { Self::gather_u8(few, index) }
    }
    #[inline(always)]
    unsafe fn keep(mask: u8, vector: [T; LANES]) -> [T; LANES] {
        std::array::from_fn(|lane| if mask >> lane & 1 == 0 { T::ZERO } else { vector[lane] })
    }
    #[inline(always)]
    unsafe fn gather_some(lanes: u8, from: *const T, index: &[u32; LANES]) -> [T; LANES] {
        // Without a branch for each lane.
        std::array::from_fn(|lane| {
            let is_there = lanes >> lane & 1 == 1;
            let at = if is_there { index[lane] as usize } else { 0 };
            // SAFETY: the caller's promise.
            let element = unsafe { *from.add(at) };
            if is_there { element } else { T::ZERO }
        })
    }
    #[inline(always)]
    unsafe fn scatter_u16(to: *mut T, index: *const u16, vector: [T; LANES]) {
        for (lane, value) in vector.into_iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { *to.add(usize::from(*index.add(lane))) = value };
        }
    }
    #[inline(always)]
    unsafe fn shift_up<const N: usize>(vector: [T; LANES]) -> ([T; LANES], [T; LANES]) {
        let low = std::array::from_fn(|l| if l < N { T::ZERO } else { vector[l - N] });
        let out = std::array::from_fn(|l| if l < N { vector[l + LANES - N] } else { T::ZERO });
        (low, out)
    }
    #[inline(always)]
    unsafe fn sum(v: [T; LANES]) -> T {
        ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
    }
    #[inline(always)]
    unsafe fn splat_half(value: T) -> [T; HALF] {
        [value; HALF]
    }
    #[inline(always)]
    unsafe fn load_half(from: *const T) -> [T; HALF] {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<[T; HALF]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_half(to: *mut T, half: [T; HALF]) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<[T; HALF]>().write_unaligned(half) }
    }
    #[inline(always)]
    unsafe fn add_half(a: [T; HALF], b: [T; HALF]) -> [T; HALF] {
        std::array::from_fn(|lane| a[lane] + b[lane])
    }
    #[inline(always)]
    unsafe fn mul_add_half(a: [T; HALF], b: [T; HALF], c: [T; HALF]) -> [T; HALF] {
        std::array::from_fn(|lane| a[lane] * b[lane] + c[lane])
    }
}
