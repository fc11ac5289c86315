//! Shuffles by convergent LLVM intrinsics.

use super::{llvm_shuffle_down, llvm_shuffle_idx, llvm_shuffle_up, llvm_shuffle_xor};
use crate::device::warp::WARP_SIZE;

/// Values that a shuffle can exchange.
#[doc(hidden)]
pub trait Shuffle: Copy {
    fn shuffle_down(mask: u32, value: Self, delta: u32, width: u32) -> Self;
    fn shuffle_up(mask: u32, value: Self, delta: u32, width: u32) -> Self;
    fn shuffle_xor(mask: u32, value: Self, lane_mask: u32, width: u32) -> Self;
    fn shuffle_idx(mask: u32, value: Self, source: u32, width: u32) -> Self;
}

/// The last operand of `shfl`: the segment's mask in bits 8 to 12, the last lane in bits 0 to 4.
#[inline(always)]
fn clamp(width: u32, last: u32) -> u32 {
    ((WARP_SIZE - width) << 8) | last
}

impl Shuffle for u32 {
    #[inline(always)]
    fn shuffle_down(mask: u32, value: Self, delta: u32, width: u32) -> Self {
        llvm_shuffle_down(mask, value, delta, clamp(width, 31))
    }
    #[inline(always)]
    fn shuffle_up(mask: u32, value: Self, delta: u32, width: u32) -> Self {
        llvm_shuffle_up(mask, value, delta, clamp(width, 0))
    }
    #[inline(always)]
    fn shuffle_xor(mask: u32, value: Self, lane_mask: u32, width: u32) -> Self {
        llvm_shuffle_xor(mask, value, lane_mask, clamp(width, 31))
    }
    #[inline(always)]
    fn shuffle_idx(mask: u32, value: Self, source: u32, width: u32) -> Self {
        llvm_shuffle_idx(mask, value, source, clamp(width, 31))
    }
}

macro_rules! shuffle_as {
    ($($type:ty = $to:expr, $from:expr);* $(;)?) => {$(
        impl Shuffle for $type {
            #[inline(always)]
            fn shuffle_down(mask: u32, value: Self, delta: u32, width: u32) -> Self {
                $from($to(value).map(|part| u32::shuffle_down(mask, part, delta, width)))
            }
            #[inline(always)]
            fn shuffle_up(mask: u32, value: Self, delta: u32, width: u32) -> Self {
                $from($to(value).map(|part| u32::shuffle_up(mask, part, delta, width)))
            }
            #[inline(always)]
            fn shuffle_xor(mask: u32, value: Self, lane_mask: u32, width: u32) -> Self {
                $from($to(value).map(|part| u32::shuffle_xor(mask, part, lane_mask, width)))
            }
            #[inline(always)]
            fn shuffle_idx(mask: u32, value: Self, source: u32, width: u32) -> Self {
                $from($to(value).map(|part| u32::shuffle_idx(mask, part, source, width)))
            }
        }
    )*};
}

#[inline(always)]
fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

#[inline(always)]
pub(super) fn join([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

shuffle_as! {
    i32 = |v: i32| [v as u32], |[v]: [u32; 1]| v as i32;
    f32 = |v: f32| [v.to_bits()], |[v]: [u32; 1]| f32::from_bits(v);
    u64 = halves, join;
    f64 = |v: f64| halves(v.to_bits()), |v| f64::from_bits(join(v));
}
