//! Warp operations: shuffles, votes, matches and the warp barrier. `mask` has a bit for every lane
//! that takes part; each of them must call with the same mask.

use super::backend::{self, Shuffle};

/// Threads in a warp.
pub const WARP_SIZE: u32 = 32;
/// Every lane of a warp.
pub const FULL_MASK: u32 = u32::MAX;

/// Lane of the thread in its warp, 0 to 31.
#[inline(always)]
pub fn lane_id() -> u32 {
    backend::lane_id()
}

/// Lanes `first` to `first + width` of a warp as a mask; `width` from 1 to 32.
#[inline(always)]
pub fn lanes(first: u32, width: u32) -> u32 {
    (FULL_MASK >> (WARP_SIZE - width)) << first
}

macro_rules! shuffles {
    ($($(#[$meta:meta])* $name:ident $argument:ident),* $(,)?) => {$(
        $(#[$meta])*
        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        pub fn $name<T: Shuffle>(mask: u32, value: T, $argument: u32, width: u32) -> T {
            T::$name(mask, value, $argument, width)
        }
    )*};
}

shuffles!(
    /// The value of lane `lane + delta` of the same segment of `width` lanes (a power of two), or
    /// the own one where the segment ends.
    shuffle_down delta,
    /// The value of lane `lane - delta` of the same segment, or the own one at its start.
    shuffle_up delta,
    /// The value of lane `lane ^ lane_mask` inside segments of `width` lanes.
    shuffle_xor lane_mask,
    /// The value of lane `source` (modulo `width`) of the same segment.
    shuffle_idx source,
);

/// A bit for every lane of `mask` whose `predicate` holds.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    backend::ballot(mask, predicate)
}

/// Whether `predicate` holds on any lane of `mask`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn any(mask: u32, predicate: bool) -> bool {
    backend::any(mask, predicate)
}

/// Whether `predicate` holds on all lanes of `mask`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn all(mask: u32, predicate: bool) -> bool {
    backend::all(mask, predicate)
}

/// A bit for every lane of `mask` that holds the same `value` as this one.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn match_any(mask: u32, value: u32) -> u32 {
    backend::match_any(mask, value)
}

/// Waits for the lanes of `mask`; orders shared and global memory among them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn sync_warp(mask: u32) {
    backend::sync_warp(mask);
}
