//! The device interface of kernels: threads, barriers, warp operations, memory, textures and
//! atomics, with the names of `cuda_std` where it has one.
//!
//! There are two implementations, chosen by target: PTX (`nvptx/`) and the emulator
//! (`emulated.rs`). Barriers, shuffles and votes are convergent: all threads that they name must
//! call them together. On nvptx64 they use LLVM's intrinsics only, because inline assembly may be
//! cloned into both arms of a branch. Loads, stores and atomics of one thread are inline assembly,
//! which fixes their state space and cache hints.

mod atomic;
mod complex;
mod element;
pub mod fence;
mod global;
mod number;
mod output;
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
pub use complex::Complex;
pub use element::{Element, Index};
pub use global::{DevicePtr, DevicePtrMut};
pub use number::Number;
pub use output::{Output, Sums};
pub use real::Real;
pub use texture::Texture;

/// Packs two numbers below 2^16 into one register; the compiler does not unpack them before
/// [`unpack_halves`] does.
#[inline(always)]
pub fn pack_halves([low, high]: [u32; 2]) -> u32 {
    backend::pack_halves(low as u16, high as u16)
}

/// Unpacks the numbers of [`pack_halves`].
#[inline(always)]
pub fn unpack_halves(pair: u32) -> [u32; 2] {
    backend::unpack_halves(pair).map(u32::from)
}

/// Returns `value` and hides it from the optimiser, so that values derived from it are computed
/// again instead of being kept in registers.
#[inline(always)]
pub fn opaque(value: u32) -> u32 {
    backend::opaque(value)
}

/// `dividend / divisor` without the check for 0, because a kernel must not contain a panic. The
/// launch guarantees a divisor that is not 0; the emulator checks it.
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
