//! Loads and stores as inline assembly, which fixes state space, path and cache hints.

use core::arch::asm;
use core::mem::transmute;

use crate::device::Complex;

/// Moves an element between memory and registers.
#[doc(hidden)]
pub trait Access: Sized {
    fn load_global(address: u64) -> Self;
    fn load_read_only(address: u64) -> Self;
    fn load_streaming(address: u64) -> Self;
    fn load_with_line(address: u64) -> Self;
    fn load_relaxed(address: u64) -> Self;
    fn store_relaxed(address: u64, value: Self);
    fn store_global(address: u64, value: Self);
    fn store_streaming(address: u64, value: Self);
    fn load_shared(offset: u32) -> Self;
    fn store_shared(offset: u32, value: Self);
}

/// 32-bit address of a byte in the dynamic shared memory.
#[inline(always)]
pub(super) fn shared_address(offset: u32) -> u32 {
    let base: u32;
    // SAFETY: the address of a symbol.
    unsafe {
        asm!("mov.u32 {0}, spm_shared_memory;", out(reg32) base,
            options(pure, nomem, nostack, preserves_flags));
    }
    base + offset
}

/// Elements of 2, 4 or 8 bytes: one register.
macro_rules! register_access {
    ($($type:ty = $bits:ty, $class:ident, $width:literal);* $(;)?) => {$(
        impl Access for $type {
            #[inline(always)]
            fn load_global(address: u64) -> Self {
                let bits = load!("ld.global", $width, $bits, $class, address: reg64, readonly);
                // SAFETY: same size, every bit pattern is a value.
                unsafe { transmute::<$bits, $type>(bits) }
            }
            #[inline(always)]
            fn load_read_only(address: u64) -> Self {
                let bits = load!("ld.global.nc", $width, $bits, $class, address: reg64, pure, nomem);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(bits) }
            }
            #[inline(always)]
            fn load_streaming(address: u64) -> Self {
                let bits = load!("ld.global.nc.L1::no_allocate", $width, $bits, $class,
                    address: reg64, pure, nomem);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(bits) }
            }
            #[inline(always)]
            fn load_with_line(address: u64) -> Self {
                let bits = load!("ld.global.nc.L2::128B", $width, $bits, $class,
                    address: reg64, pure, nomem);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(bits) }
            }
            #[inline(always)]
            fn load_relaxed(address: u64) -> Self {
                let bits = load!("ld.relaxed.gpu.global", $width, $bits, $class, address: reg64,);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(bits) }
            }
            #[inline(always)]
            fn store_global(address: u64, value: Self) {
                // SAFETY: as above.
                let bits = unsafe { transmute::<$type, $bits>(value) };
                store!("st.global", $width, $class, address: reg64, bits);
            }
            #[inline(always)]
            fn store_streaming(address: u64, value: Self) {
                // SAFETY: as above.
                let bits = unsafe { transmute::<$type, $bits>(value) };
                store!("st.global.L1::no_allocate", $width, $class, address: reg64, bits);
            }
            #[inline(always)]
            fn store_relaxed(address: u64, value: Self) {
                // SAFETY: as above.
                let bits = unsafe { transmute::<$type, $bits>(value) };
                store!("st.relaxed.gpu.global", $width, $class, address: reg64, bits);
            }
            #[inline(always)]
            fn load_shared(offset: u32) -> Self {
                let address = shared_address(offset);
                let bits = load!("ld.shared", $width, $bits, $class, address: reg32, readonly);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(bits) }
            }
            #[inline(always)]
            fn store_shared(offset: u32, value: Self) {
                // SAFETY: as above.
                let bits = unsafe { transmute::<$type, $bits>(value) };
                let address = shared_address(offset);
                store!("st.shared", $width, $class, address: reg32, bits);
            }
        }
    )*};
}

register_access! {
    u16 = u16, reg16, "b16";
    u32 = u32, reg32, "b32";
    i32 = u32, reg32, "b32";
    f32 = u32, reg32, "b32";
    [u16; 2] = u32, reg32, "b32";
    u64 = u64, reg64, "b64";
    f64 = u64, reg64, "b64";
    [u16; 4] = u64, reg64, "b64";
    [u32; 2] = u64, reg64, "b64";
    [i32; 2] = u64, reg64, "b64";
    [f32; 2] = u64, reg64, "b64";
    Complex<f32> = u64, reg64, "b64";
}

/// Predicated accesses of one instruction, without a branch.
#[doc(hidden)]
pub trait AccessIf: Sized {
    fn load_global_if(condition: bool, address: u64, otherwise: Self) -> Self;
    fn load_read_only_if(condition: bool, address: u64, otherwise: Self) -> Self;
    fn load_streaming_if(condition: bool, address: u64, otherwise: Self) -> Self;
    fn store_global_if(condition: bool, address: u64, value: Self);
    fn load_shared_if(condition: bool, offset: u32, otherwise: Self) -> Self;
    fn store_shared_if(condition: bool, offset: u32, value: Self);
}

macro_rules! load_if {
    ($instruction:literal, $width:literal, $bits:ty, $class:ident, $condition:ident,
        $address:ident: $address_class:ident, $otherwise:expr, $($option:ident),*) => {{
        let bits: $bits;
        // SAFETY: see above.
        unsafe {
            asm!("{{", ".reg .pred p;", "setp.ne.u32 p, {1}, 0;",
                concat!("mov.", $width, " {0}, {3};"),
                concat!("@p ", $instruction, ".", $width, " {0}, [{2}];"), "}}",
                out($class) bits, in(reg32) u32::from($condition), in($address_class) $address,
                in($class) $otherwise, options($($option,)* nostack, preserves_flags));
        }
        bits
    }};
}

macro_rules! store_if {
    ($instruction:literal, $width:literal, $class:ident, $condition:ident,
        $address:ident: $address_class:ident, $bits:expr) => {
        // SAFETY: see above.
        unsafe {
            asm!("{{", ".reg .pred p;", "setp.ne.u32 p, {0}, 0;",
                concat!("@p ", $instruction, ".", $width, " [{1}], {2};"), "}}",
                in(reg32) u32::from($condition), in($address_class) $address, in($class) $bits,
                options(nostack, preserves_flags));
        }
    };
}

macro_rules! access_if {
    ($($type:ty = $bits:ty, $class:ident, $width:literal);* $(;)?) => {$(
        impl AccessIf for $type {
            #[inline(always)]
            fn load_global_if(condition: bool, address: u64, otherwise: Self) -> Self {
                // SAFETY: same size, every bit pattern is a value.
                let otherwise = unsafe { transmute::<$type, $bits>(otherwise) };
                let bits = load_if!("ld.global", $width, $bits, $class, condition, address: reg64,
                    otherwise, readonly);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(bits) }
            }
            #[inline(always)]
            fn load_read_only_if(condition: bool, address: u64, otherwise: Self) -> Self {
                // SAFETY: as above.
                let otherwise = unsafe { transmute::<$type, $bits>(otherwise) };
                let bits = load_if!("ld.global.nc", $width, $bits, $class, condition,
                    address: reg64, otherwise, pure, nomem);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(bits) }
            }
            #[inline(always)]
            fn load_streaming_if(condition: bool, address: u64, otherwise: Self) -> Self {
                // SAFETY: as above.
                let otherwise = unsafe { transmute::<$type, $bits>(otherwise) };
                let bits = load_if!("ld.global.nc.L1::no_allocate", $width, $bits, $class,
                    condition, address: reg64, otherwise, pure, nomem);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(bits) }
            }
            #[inline(always)]
            fn store_global_if(condition: bool, address: u64, value: Self) {
                // SAFETY: as above.
                let bits = unsafe { transmute::<$type, $bits>(value) };
                store_if!("st.global", $width, $class, condition, address: reg64, bits);
            }
            #[inline(always)]
            fn load_shared_if(condition: bool, offset: u32, otherwise: Self) -> Self {
                let address = shared_address(offset);
                // SAFETY: as above.
                let otherwise = unsafe { transmute::<$type, $bits>(otherwise) };
                let bits = load_if!("ld.shared", $width, $bits, $class, condition, address: reg32,
                    otherwise, readonly);
                // SAFETY: as above.
                unsafe { transmute::<$bits, $type>(bits) }
            }
            #[inline(always)]
            fn store_shared_if(condition: bool, offset: u32, value: Self) {
                let address = shared_address(offset);
                // SAFETY: as above.
                let bits = unsafe { transmute::<$type, $bits>(value) };
                store_if!("st.shared", $width, $class, condition, address: reg32, bits);
            }
        }
    )*};
}

access_if! {
    u16 = u16, reg16, "b16";
    u32 = u32, reg32, "b32";
    f32 = u32, reg32, "b32";
    u64 = u64, reg64, "b64";
    f64 = u64, reg64, "b64";
}

macro_rules! load_pair {
    ($instruction:literal, $address:ident: $address_class:ident, $($option:ident),*) => {{
        let (low, high): (u64, u64);
        // SAFETY: see above.
        unsafe {
            asm!(concat!($instruction, ".v2.b64 {{{0}, {1}}}, [{2}];"),
                out(reg64) low, out(reg64) high, in($address_class) $address,
                options($($option,)* nostack, preserves_flags));
        }
        [low, high]
    }};
}

macro_rules! store_pair {
    ($instruction:literal, $address:ident: $address_class:ident, $bits:expr) => {{
        let [low, high]: [u64; 2] = $bits;
        // SAFETY: see above.
        unsafe {
            asm!(concat!($instruction, ".v2.b64 [{0}], {{{1}, {2}}};"),
                in($address_class) $address, in(reg64) low, in(reg64) high,
                options(nostack, preserves_flags));
        }
    }};
}

/// Elements of 16 bytes: one vector instruction.
macro_rules! vector_access {
    ($($type:ty),*) => {$(
        impl Access for $type {
            #[inline(always)]
            fn load_global(address: u64) -> Self {
                let bits = load_pair!("ld.global", address: reg64, readonly);
                // SAFETY: same size, every bit pattern is a value.
                unsafe { transmute::<[u64; 2], $type>(bits) }
            }
            #[inline(always)]
            fn load_read_only(address: u64) -> Self {
                let bits = load_pair!("ld.global.nc", address: reg64, pure, nomem);
                // SAFETY: as above.
                unsafe { transmute::<[u64; 2], $type>(bits) }
            }
            #[inline(always)]
            fn load_streaming(address: u64) -> Self {
                let bits = load_pair!("ld.global.nc.L1::no_allocate", address: reg64, pure, nomem);
                // SAFETY: as above.
                unsafe { transmute::<[u64; 2], $type>(bits) }
            }
            #[inline(always)]
            fn load_with_line(address: u64) -> Self {
                let bits = load_pair!("ld.global.nc.L2::128B", address: reg64, pure, nomem);
                // SAFETY: as above.
                unsafe { transmute::<[u64; 2], $type>(bits) }
            }
            #[inline(always)]
            fn load_relaxed(address: u64) -> Self {
                let bits = load_pair!("ld.relaxed.gpu.global", address: reg64,);
                // SAFETY: as above.
                unsafe { transmute::<[u64; 2], $type>(bits) }
            }
            #[inline(always)]
            fn store_global(address: u64, value: Self) {
                // SAFETY: as above.
                store_pair!("st.global", address: reg64, unsafe { transmute::<$type, [u64; 2]>(value) });
            }
            #[inline(always)]
            fn store_streaming(address: u64, value: Self) {
                // SAFETY: as above.
                store_pair!("st.global.L1::no_allocate", address: reg64, unsafe { transmute::<$type, [u64; 2]>(value) });
            }
            #[inline(always)]
            fn store_relaxed(address: u64, value: Self) {
                // SAFETY: as above.
                store_pair!("st.relaxed.gpu.global", address: reg64, unsafe { transmute::<$type, [u64; 2]>(value) });
            }
            #[inline(always)]
            fn load_shared(offset: u32) -> Self {
                let address = shared_address(offset);
                let bits = load_pair!("ld.shared", address: reg32, readonly);
                // SAFETY: as above.
                unsafe { transmute::<[u64; 2], $type>(bits) }
            }
            #[inline(always)]
            fn store_shared(offset: u32, value: Self) {
                let address = shared_address(offset);
                // SAFETY: as above.
                store_pair!("st.shared", address: reg32, unsafe { transmute::<$type, [u64; 2]>(value) });
            }
        }
    )*};
}

vector_access!([u32; 4], [i32; 4], [f32; 4], [u64; 2], [f64; 2], Complex<f64>);

/// A branch around the access.
impl<T> AccessIf for Complex<T>
where
    Self: Access,
{
    #[inline(always)]
    fn load_global_if(condition: bool, address: u64, otherwise: Self) -> Self {
        if condition { Self::load_global(address) } else { otherwise }
    }
    #[inline(always)]
    fn load_read_only_if(condition: bool, address: u64, otherwise: Self) -> Self {
        if condition { Self::load_read_only(address) } else { otherwise }
    }
    #[inline(always)]
    fn load_streaming_if(condition: bool, address: u64, otherwise: Self) -> Self {
        if condition { Self::load_streaming(address) } else { otherwise }
    }
    #[inline(always)]
    fn store_global_if(condition: bool, address: u64, value: Self) {
        if condition {
            Self::store_global(address, value);
        }
    }
    #[inline(always)]
    fn load_shared_if(condition: bool, offset: u32, otherwise: Self) -> Self {
        if condition { Self::load_shared(offset) } else { otherwise }
    }
    #[inline(always)]
    fn store_shared_if(condition: bool, offset: u32, value: Self) {
        if condition {
            Self::store_shared(offset, value);
        }
    }
}

/// Elements of 32 bytes: two vector instructions.
macro_rules! double_vector_access {
    ($($scalar:ty),*) => {$(
        impl Access for [$scalar; 4] {
            #[inline(always)]
            fn load_global(address: u64) -> Self {
                let ([a, b], [c, d]) = (<[$scalar; 2]>::load_global(address), <[$scalar; 2]>::load_global(address + 16));
                [a, b, c, d]
            }
            #[inline(always)]
            fn load_read_only(address: u64) -> Self {
                let ([a, b], [c, d]) = (<[$scalar; 2]>::load_read_only(address), <[$scalar; 2]>::load_read_only(address + 16));
                [a, b, c, d]
            }
            #[inline(always)]
            fn load_streaming(address: u64) -> Self {
                let ([a, b], [c, d]) = (<[$scalar; 2]>::load_streaming(address), <[$scalar; 2]>::load_streaming(address + 16));
                [a, b, c, d]
            }
            #[inline(always)]
            fn load_with_line(address: u64) -> Self {
                let ([a, b], [c, d]) = (<[$scalar; 2]>::load_with_line(address), <[$scalar; 2]>::load_with_line(address + 16));
                [a, b, c, d]
            }
            #[inline(always)]
            fn load_relaxed(address: u64) -> Self {
                let ([a, b], [c, d]) = (<[$scalar; 2]>::load_relaxed(address), <[$scalar; 2]>::load_relaxed(address + 16));
                [a, b, c, d]
            }
            #[inline(always)]
            fn store_relaxed(address: u64, [a, b, c, d]: Self) {
                <[$scalar; 2]>::store_relaxed(address, [a, b]);
                <[$scalar; 2]>::store_relaxed(address + 16, [c, d]);
            }
            #[inline(always)]
            fn store_global(address: u64, [a, b, c, d]: Self) {
                <[$scalar; 2]>::store_global(address, [a, b]);
                <[$scalar; 2]>::store_global(address + 16, [c, d]);
            }
            #[inline(always)]
            fn store_streaming(address: u64, [a, b, c, d]: Self) {
                <[$scalar; 2]>::store_streaming(address, [a, b]);
                <[$scalar; 2]>::store_streaming(address + 16, [c, d]);
            }
            #[inline(always)]
            fn load_shared(offset: u32) -> Self {
                let ([a, b], [c, d]) = (<[$scalar; 2]>::load_shared(offset), <[$scalar; 2]>::load_shared(offset + 16));
                [a, b, c, d]
            }
            #[inline(always)]
            fn store_shared(offset: u32, [a, b, c, d]: Self) {
                <[$scalar; 2]>::store_shared(offset, [a, b]);
                <[$scalar; 2]>::store_shared(offset + 16, [c, d]);
            }
        }
    )*};
}

double_vector_access!(u64, f64);
