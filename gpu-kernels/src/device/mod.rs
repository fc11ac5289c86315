//! What a kernel may use of the device, with the names of `cuda_std` where it has one.
//!
//! Two bodies chosen by target: PTX (`nvptx/`) and the emulator (`emulated.rs`). Barriers,
//! shuffles and votes are convergent: all threads that they name must call them together, and on
//! nvptx64 they go through LLVM's intrinsics only, because inline assembly may be cloned into both
//! arms of a branch. Loads, stores and atomics of one thread are inline assembly, so that their
//! state space and cache hints are what this module says.

mod atomic;
mod element;
pub mod fence;
mod global;
mod real;
pub mod shared;
mod texture;
pub mod thread;
pub mod warp;

#[cfg(not(target_arch = "nvptx64"))]
#[path = "emulated.rs"]
mod backend;
#[cfg(target_arch = "nvptx64")]
#[path = "nvptx/mod.rs"]
mod backend;

pub use atomic::{AtomicAdd, AtomicWord};
pub use element::{Element, Index};
pub use global::{DevicePtr, DevicePtrMut};
pub use real::Real;
pub use texture::Texture;

/// Two numbers below 2^16 in one register; the compiler does not take them apart again before
/// [`unpack_halves`] does.
#[inline(always)]
pub fn pack_halves([low, high]: [u32; 2]) -> u32 {
    backend::pack_halves(low as u16, high as u16)
}

/// The numbers that [`pack_halves`] put together.
#[inline(always)]
pub fn unpack_halves(pair: u32) -> [u32; 2] {
    backend::unpack_halves(pair).map(u32::from)
}

/// `value`, of which the compiler knows nothing: what was computed from it before is computed again
/// instead of being kept in registers.
#[inline(always)]
pub fn opaque(value: u32) -> u32 {
    backend::opaque(value)
}

/// `dividend / divisor` without the check for 0, whose panic a kernel cannot have. The launch
/// promises a divisor that is not 0; the emulator checks.
#[inline(always)]
pub fn divide(dividend: u32, divisor: u32) -> u32 {
    #[cfg(not(target_arch = "nvptx64"))]
    assert!(divisor != 0, "division by 0");
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the contract of the launch.
    unsafe {
        core::hint::assert_unchecked(divisor != 0);
    }
    dividend / divisor
}
