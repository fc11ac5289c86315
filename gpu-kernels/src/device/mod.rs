//! What a kernel may use of the device, with the names of `cuda_std` where it has one.
//!
//! Two bodies chosen by target: PTX (`nvptx.rs`) and the emulator (`emulated.rs`). Barriers,
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
#[path = "nvptx.rs"]
mod backend;

pub use atomic::{AtomicAdd, AtomicWord};
pub use element::{Element, Index};
pub use global::{DevicePtr, DevicePtrMut};
pub use real::Real;
pub use texture::Texture;
