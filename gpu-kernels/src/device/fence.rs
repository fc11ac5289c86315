//! Memory fences of one thread.

use super::backend;

/// Earlier accesses of this thread come before later ones for the threads of its block.
#[inline(always)]
pub fn block() {
    backend::fence_block();
}

/// Earlier accesses of this thread come before later ones for every thread of the device.
#[inline(always)]
pub fn device() {
    backend::fence_device();
}
