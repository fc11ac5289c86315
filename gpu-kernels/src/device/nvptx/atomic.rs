//! Atomic operations.

use core::arch::asm;
use core::mem::transmute;

use super::access::shared_address;

/// Atomic operations on words.
#[doc(hidden)]
pub trait AtomicAccess: Sized {
    fn atomic_exchange_global(address: u64, value: Self) -> Self;
    fn atomic_compare_exchange_global(address: u64, expected: Self, new: Self) -> Self;
    fn load_acquire(address: u64) -> Self;
    fn store_release(address: u64, value: Self);
    fn atomic_exchange_shared(offset: u32, value: Self) -> Self;
    fn atomic_compare_exchange_shared(offset: u32, expected: Self, new: Self) -> Self;
}

/// Atomic addition.
#[doc(hidden)]
pub trait AtomicSum: Sized {
    fn atomic_add_global(address: u64, value: Self) -> Self;
    fn atomic_add_release(address: u64, value: Self) -> Self;
    fn atomic_add_shared(offset: u32, value: Self) -> Self;
}

macro_rules! atomic {
    ($instruction:expr, $class:ident, $address:ident: $address_class:ident, $value:expr) => {{
        let old;
        // SAFETY: see above.
        unsafe {
            asm!(concat!($instruction, " {0}, [{1}], {2};"),
                out($class) old, in($address_class) $address, in($class) $value,
                options(nostack, preserves_flags));
        }
        old
    }};
}

macro_rules! compare_exchange {
    ($instruction:expr, $class:ident, $address:ident: $address_class:ident, $expected:ident, $new:ident) => {{
        let old;
        // SAFETY: see above.
        unsafe {
            asm!(concat!($instruction, " {0}, [{1}], {2}, {3};"),
                out($class) old, in($address_class) $address, in($class) $expected,
                in($class) $new, options(nostack, preserves_flags));
        }
        old
    }};
}

macro_rules! atomic_words {
    ($($type:ty, $class:ident, $width:literal);* $(;)?) => {$(
        impl AtomicAccess for $type {
            #[inline(always)]
            fn atomic_exchange_global(address: u64, value: Self) -> Self {
                atomic!(concat!("atom.global.exch.", $width), $class, address: reg64, value)
            }
            #[inline(always)]
            fn atomic_compare_exchange_global(address: u64, expected: Self, new: Self) -> Self {
                compare_exchange!(concat!("atom.global.cas.", $width), $class, address: reg64, expected, new)
            }
            #[inline(always)]
            fn load_acquire(address: u64) -> Self {
                load!("ld.acquire.gpu.global", $width, $type, $class, address: reg64,)
            }
            #[inline(always)]
            fn store_release(address: u64, value: Self) {
                store!("st.release.gpu.global", $width, $class, address: reg64, value);
            }
            #[inline(always)]
            fn atomic_exchange_shared(offset: u32, value: Self) -> Self {
                let address = shared_address(offset);
                atomic!(concat!("atom.shared.exch.", $width), $class, address: reg32, value)
            }
            #[inline(always)]
            fn atomic_compare_exchange_shared(offset: u32, expected: Self, new: Self) -> Self {
                let address = shared_address(offset);
                compare_exchange!(concat!("atom.shared.cas.", $width), $class, address: reg32, expected, new)
            }
        }
    )*};
}

atomic_words! {
    u32, reg32, "b32";
    u64, reg64, "b64";
}

macro_rules! atomic_sums {
    ($($type:ty = $bits:ty, $class:ident, $width:literal);* $(;)?) => {$(
        impl AtomicSum for $type {
            #[inline(always)]
            fn atomic_add_global(address: u64, value: Self) -> Self {
                // SAFETY: same size, every bit pattern is a value.
                let value = unsafe { transmute::<$type, $bits>(value) };
                let old: $bits = atomic!(concat!("atom.global.add.", $width), $class, address: reg64, value);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(old) }
            }
            #[inline(always)]
            fn atomic_add_release(address: u64, value: Self) -> Self {
                // SAFETY: as above.
                let value = unsafe { transmute::<$type, $bits>(value) };
                let old: $bits =
                    atomic!(concat!("atom.release.gpu.global.add.", $width), $class, address: reg64, value);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(old) }
            }
            #[inline(always)]
            fn atomic_add_shared(offset: u32, value: Self) -> Self {
                let address = shared_address(offset);
                // SAFETY: as above.
                let value = unsafe { transmute::<$type, $bits>(value) };
                let old: $bits = atomic!(concat!("atom.shared.add.", $width), $class, address: reg32, value);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(old) }
            }
        }
    )*};
}

atomic_sums! {
    u32 = u32, reg32, "u32";
    u64 = u64, reg64, "u64";
    f32 = f32, reg32, "f32";
    f64 = f64, reg64, "f64";
}
