//! Reads through the texture unit (R2 VI-A).

use core::fmt;
use core::marker::PhantomData;

use super::{Index, Real};

/// A texture object over a linear array: 32-bit float channels for `f32`, two 32-bit signed integer
/// channels, which hold the low and the high half, for `f64`.
#[repr(transparent)]
pub struct Texture<T>(u64, PhantomData<*const T>);

impl<T> Clone for Texture<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Texture<T> {}
// SAFETY: a handle; what it names is used by a launch only, under its contract.
unsafe impl<T> Send for Texture<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Texture<T> {}
impl<T> fmt::Debug for Texture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "texture {:#x}", self.0)
    }
}

impl<T> Texture<T> {
    /// Wraps the handle of a texture object (`cuTexObjectCreate`).
    ///
    /// # Safety
    /// A launch that gets this texture needs the object and its array live until it is done, with
    /// the channels of `T`.
    #[inline(always)]
    pub const unsafe fn from_raw(handle: u64) -> Self {
        Self(handle, PhantomData)
    }

    /// The handle.
    #[inline(always)]
    pub const fn as_raw(self) -> u64 {
        self.0
    }
}

impl<T: Real> Texture<T> {
    /// Element `index` (`tex1Dfetch`).
    #[inline(always)]
    pub fn fetch(self, index: impl Index) -> T {
        T::fetch(self.0, index.widen() as u32)
    }
}
