//! Arrays in global memory.

use core::fmt;
use core::marker::PhantomData;

use super::backend::{self, Access, AccessIf};
use super::{Element, Index};

/// An array that no thread writes during the launch: its loads go through the read-only path
/// (`ld.global.nc`), which keeps it in L1.
#[repr(transparent)]
pub struct DevicePtr<T>(u64, PhantomData<*const T>);

/// An array that the kernel may write: plain loads and stores (`ld.global`, `st.global`).
#[repr(transparent)]
pub struct DevicePtrMut<T>(u64, PhantomData<*mut T>);

macro_rules! pointer {
    ($name:ident) => {
        impl<T> Clone for $name<T> {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        // SAFETY: an address; what lies there is used by a launch only, under its contract.
        unsafe impl<T> Send for $name<T> {}
        // SAFETY: as above.
        unsafe impl<T> Sync for $name<T> {}
        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl<T> $name<T> {
            /// Points to the array at a device address (0 for an array that is never touched).
            ///
            /// # Safety
            /// A launch that gets this pointer needs an array there that is live until the launch
            /// is done, aligned to 16 bytes or at least to what the kernel loads at once, and long
            /// enough for the kernel's sizes and indices.
            #[inline(always)]
            pub const unsafe fn from_raw(address: u64) -> Self {
                Self(address, PhantomData)
            }

            /// The device address.
            #[inline(always)]
            pub const fn as_raw(self) -> u64 {
                self.0
            }
        }

        impl<T: Element> $name<T> {
            #[inline(always)]
            fn address(self, index: impl Index) -> u64 {
                self.0.wrapping_add(index.widen().wrapping_mul(size_of::<T>() as u64))
            }
        }
    };
}

pointer!(DevicePtr);
pointer!(DevicePtrMut);

impl<T: Element> DevicePtr<T> {
    /// Element `index`, cached in L1 and L2.
    #[inline(always)]
    pub fn load(self, index: impl Index) -> T {
        T::load_read_only(self.address(index))
    }

    /// Element `index`, read once: L1 does not keep it, and it leaves L2 first (`L1::no_allocate`). A launch of a product that
    /// L2 holds has ordinary loads instead.
    #[inline(always)]
    pub fn load_streaming(self, index: impl Index) -> T {
        T::load_streaming(self.address(index))
    }

    /// Element `index`, of whose 128 bytes of L2 others are read soon: what of them is missing is fetched with it
    /// (`L2::128B`; compute capability 7.0 does without).
    #[inline(always)]
    pub fn load_with_line(self, index: impl Index) -> T {
        T::load_with_line(self.address(index))
    }

    /// [`DevicePtr::load_vector`] as [`DevicePtr::load_with_line`].
    #[inline(always)]
    pub fn load_vector_with_line<const N: usize>(self, index: impl Index) -> [T; N]
    where
        [T; N]: Element,
    {
        <[T; N]>::load_with_line(self.address(index))
    }

    /// Elements `index` to `index + N` at once; `index` must be a multiple of N, N is 2 or 4.
    #[inline(always)]
    pub fn load_vector<const N: usize>(self, index: impl Index) -> [T; N]
    where
        [T; N]: Element,
    {
        <[T; N]>::load_read_only(self.address(index))
    }

    /// [`DevicePtr::load_vector`] of data that is read once.
    #[inline(always)]
    pub fn load_vector_streaming<const N: usize>(self, index: impl Index) -> [T; N]
    where
        [T; N]: Element,
    {
        <[T; N]>::load_streaming(self.address(index))
    }

    /// The array from element `index` on.
    #[inline(always)]
    pub fn offset(self, index: impl Index) -> Self {
        Self(self.address(index), PhantomData)
    }

    /// The array from a byte on, where an element begins.
    #[inline(always)]
    pub fn byte_offset(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes), PhantomData)
    }
}

impl DevicePtr<u32> {
    /// Element `index` of memory that the host may write meanwhile (`ld.relaxed.sys`).
    #[inline(always)]
    pub fn load_system(self, index: impl Index) -> u32 {
        backend::load_system(self.address(index))
    }
}

impl<T: Element> DevicePtrMut<T> {
    /// Element `index`.
    #[inline(always)]
    pub fn load(self, index: impl Index) -> T {
        T::load_global(self.address(index))
    }

    /// Element `index` from L2, where stores of all blocks arrive (`ld.relaxed.gpu`): never an older one
    /// that L1 has.
    #[inline(always)]
    pub fn load_relaxed(self, index: impl Index) -> T {
        T::load_relaxed(self.address(index))
    }

    /// Overwrites element `index` for [`DevicePtrMut::load_relaxed`] of all blocks, in no order with other accesses
    /// (`st.relaxed.gpu`).
    #[inline(always)]
    pub fn store_relaxed(self, index: impl Index, value: T) {
        T::store_relaxed(self.address(index), value);
    }

    /// Elements `index` to `index + N` at once; `index` must be a multiple of N, N is 2 or 4.
    #[inline(always)]
    pub fn load_vector<const N: usize>(self, index: impl Index) -> [T; N]
    where
        [T; N]: Element,
    {
        <[T; N]>::load_global(self.address(index))
    }

    /// Overwrites element `index`.
    #[inline(always)]
    pub fn store(self, index: impl Index, value: T) {
        T::store_global(self.address(index), value);
    }

    /// Overwrites element `index`, which is not read again soon: it does not displace other data from L1
    /// (`L1::no_allocate`).
    #[inline(always)]
    pub fn store_streaming(self, index: impl Index, value: T) {
        T::store_streaming(self.address(index), value);
    }

    /// [`DevicePtrMut::store_vector`] of data that is not read again soon.
    #[inline(always)]
    pub fn store_vector_streaming<const N: usize>(self, index: impl Index, value: [T; N])
    where
        [T; N]: Element,
    {
        <[T; N]>::store_streaming(self.address(index), value);
    }

    /// Overwrites elements `index` to `index + N` at once; `index` must be a multiple of N.
    #[inline(always)]
    pub fn store_vector<const N: usize>(self, index: impl Index, value: [T; N])
    where
        [T; N]: Element,
    {
        <[T; N]>::store_global(self.address(index), value);
    }

    /// The array from element `index` on.
    #[inline(always)]
    pub fn offset(self, index: impl Index) -> Self {
        Self(self.address(index), PhantomData)
    }

    #[inline(always)]
    pub(super) fn element_address(self, index: impl Index) -> u64 {
        self.address(index)
    }
}

impl<T: Element + AccessIf> DevicePtr<T> {
    /// Element `index` if `condition` holds, else `otherwise`: a load under a predicate, without a
    /// branch. For `u16`, `u32`, `u64`, `f32`, `f64`.
    #[inline(always)]
    pub fn load_if(self, condition: bool, index: impl Index, otherwise: T) -> T {
        T::load_read_only_if(condition, self.address(index), otherwise)
    }

    /// [`DevicePtr::load_if`] of data that is read once; see [`DevicePtr::load_streaming`].
    #[inline(always)]
    pub fn load_streaming_if(self, condition: bool, index: impl Index, otherwise: T) -> T {
        T::load_streaming_if(condition, self.address(index), otherwise)
    }
}

impl<T: Element + AccessIf> DevicePtrMut<T> {
    /// Element `index` if `condition` holds, else `otherwise`; see [`DevicePtr::load_if`].
    #[inline(always)]
    pub fn load_if(self, condition: bool, index: impl Index, otherwise: T) -> T {
        T::load_global_if(condition, self.address(index), otherwise)
    }

    /// Overwrites element `index` if `condition` holds; see [`DevicePtr::load_if`].
    #[inline(always)]
    pub fn store_if(self, condition: bool, index: impl Index, value: T) {
        T::store_global_if(condition, self.address(index), value);
    }
}
