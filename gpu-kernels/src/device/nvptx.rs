//! The device module's body in PTX.
//!
//! Loads, stores and atomics are inline assembly on integers of the element's size: the state space
//! (`.global`, `.shared`), the read-only path and the cache hints are then exactly these. What
//! involves other threads goes through LLVM intrinsics, which are convergent.

use core::arch::nvptx as ptx;
use core::arch::{asm, global_asm};
use core::mem::transmute;

use super::warp::WARP_SIZE;

global_asm!(".extern .shared .align 16 .b8 spm_shared_memory[];");

unsafe extern "C" {
    #[link_name = "llvm.fma.f32"]
    safe fn llvm_fma_f32(a: f32, b: f32, c: f32) -> f32;
    #[link_name = "llvm.fma.f64"]
    safe fn llvm_fma_f64(a: f64, b: f64, c: f64) -> f64;
    #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.all"]
    safe fn llvm_sync_threads(barrier: u32);
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    safe fn llvm_lane_id() -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
    safe fn llvm_shuffle_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
    safe fn llvm_shuffle_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    safe fn llvm_shuffle_xor(mask: u32, value: u32, lane_mask: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    safe fn llvm_shuffle_idx(mask: u32, value: u32, source: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    safe fn llvm_ballot(mask: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.vote.any.sync"]
    safe fn llvm_any(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.all.sync"]
    safe fn llvm_all(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.match.any.sync.i32"]
    safe fn llvm_match_any(mask: u32, value: u32) -> u32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    safe fn llvm_sync_warp(mask: u32);
}

macro_rules! special_registers {
    ($($name:ident = $intrinsic:ident),* $(,)?) => {$(
        #[inline(always)]
        pub(super) fn $name() -> u32 {
            // SAFETY: reads a special register.
            unsafe { ptx::$intrinsic() }
        }
    )*};
}

special_registers!(
    thread_idx_x = _thread_idx_x,
    thread_idx_y = _thread_idx_y,
    block_idx_x = _block_idx_x,
    block_idx_y = _block_idx_y,
    block_dim_x = _block_dim_x,
    block_dim_y = _block_dim_y,
    grid_dim_x = _grid_dim_x,
    grid_dim_y = _grid_dim_y,
);

#[inline(always)]
pub(super) fn sync_threads() {
    llvm_sync_threads(0);
}

#[inline(always)]
pub(super) fn lane_id() -> u32 {
    llvm_lane_id()
}

#[inline(always)]
pub(super) fn ballot(mask: u32, predicate: bool) -> u32 {
    llvm_ballot(mask, predicate)
}

#[inline(always)]
pub(super) fn any(mask: u32, predicate: bool) -> bool {
    llvm_any(mask, predicate)
}

#[inline(always)]
pub(super) fn all(mask: u32, predicate: bool) -> bool {
    llvm_all(mask, predicate)
}

#[inline(always)]
pub(super) fn match_any(mask: u32, value: u32) -> u32 {
    llvm_match_any(mask, value)
}

#[inline(always)]
pub(super) fn sync_warp(mask: u32) {
    llvm_sync_warp(mask);
}

#[inline(always)]
pub(super) fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    llvm_fma_f32(a, b, c)
}

#[inline(always)]
pub(super) fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    llvm_fma_f64(a, b, c)
}

#[inline(always)]
pub(super) fn pack_halves(low: u16, high: u16) -> u32 {
    let pair: u32;
    // SAFETY: registers only.
    unsafe {
        asm!("mov.b32 {0}, {{{1}, {2}}};", out(reg32) pair, in(reg16) low, in(reg16) high,
            options(pure, nomem, nostack, preserves_flags));
    }
    pair
}

#[inline(always)]
pub(super) fn opaque(value: u32) -> u32 {
    let same: u32;
    // SAFETY: registers only; not `pure`, so that every call counts.
    unsafe {
        asm!("mov.b32 {0}, {1};", out(reg32) same, in(reg32) value,
            options(nomem, nostack, preserves_flags));
    }
    same
}

#[inline(always)]
pub(super) fn unpack_halves(pair: u32) -> [u16; 2] {
    let (low, high): (u16, u16);
    // SAFETY: registers only.
    unsafe {
        asm!("mov.b32 {{{0}, {1}}}, {2};", out(reg16) low, out(reg16) high, in(reg32) pair,
            options(pure, nomem, nostack, preserves_flags));
    }
    [low, high]
}

#[inline(always)]
pub(super) fn fence_block() {
    // SAFETY: orders memory, changes nothing.
    unsafe { asm!("fence.acq_rel.cta;", options(nostack, preserves_flags)) }
}

#[inline(always)]
pub(super) fn fence_device() {
    // SAFETY: orders memory, changes nothing.
    unsafe { asm!("fence.acq_rel.gpu;", options(nostack, preserves_flags)) }
}

/// Moves an element between memory and registers.
#[doc(hidden)]
pub trait Access: Sized {
    fn load_global(address: u64) -> Self;
    fn load_read_only(address: u64) -> Self;
    fn load_streaming(address: u64) -> Self;
    fn store_global(address: u64, value: Self);
    fn load_shared(offset: u32) -> Self;
    fn store_shared(offset: u32, value: Self);
}

/// 32-bit address of a byte in the dynamic shared memory.
#[inline(always)]
fn shared_address(offset: u32) -> u32 {
    let base: u32;
    // SAFETY: the address of a symbol.
    unsafe {
        asm!("mov.u32 {0}, spm_shared_memory;", out(reg32) base,
            options(pure, nomem, nostack, preserves_flags));
    }
    base + offset
}

// SAFETY (all of the accesses below): the address is inside an array of the launch, under the
// contract of `DevicePtr::from_raw` or of the size of shared memory; the emulator checks that the
// kernel keeps to it. What is loaded read-only is not written during the launch, so the load is a
// function of its address.

macro_rules! load {
    ($instruction:literal, $width:literal, $bits:ty, $class:ident, $address:ident: $address_class:ident, $($option:ident),*) => {{
        let bits: $bits;
        // SAFETY: see above.
        unsafe {
            asm!(concat!($instruction, ".", $width, " {0}, [{1}];"),
                out($class) bits, in($address_class) $address,
                options($($option,)* nostack, preserves_flags));
        }
        bits
    }};
}

macro_rules! store {
    ($instruction:literal, $width:literal, $class:ident, $address:ident: $address_class:ident, $bits:expr) => {
        // SAFETY: see above.
        unsafe {
            asm!(concat!($instruction, ".", $width, " [{0}], {1};"),
                in($address_class) $address, in($class) $bits, options(nostack, preserves_flags));
        }
    };
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
            fn store_global(address: u64, value: Self) {
                // SAFETY: as above.
                let bits = unsafe { transmute::<$type, $bits>(value) };
                store!("st.global", $width, $class, address: reg64, bits);
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
}

/// Accesses of one instruction under a predicate, which needs no branch.
#[doc(hidden)]
pub trait AccessIf: Sized {
    fn load_global_if(condition: bool, address: u64, otherwise: Self) -> Self;
    fn load_read_only_if(condition: bool, address: u64, otherwise: Self) -> Self;
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
            fn store_global(address: u64, value: Self) {
                // SAFETY: as above.
                store_pair!("st.global", address: reg64, unsafe { transmute::<$type, [u64; 2]>(value) });
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

vector_access!([u32; 4], [i32; 4], [f32; 4], [u64; 2], [f64; 2]);

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
            fn store_global(address: u64, [a, b, c, d]: Self) {
                <[$scalar; 2]>::store_global(address, [a, b]);
                <[$scalar; 2]>::store_global(address + 16, [c, d]);
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

/// Values that go from lane to lane.
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
fn join([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

shuffle_as! {
    i32 = |v: i32| [v as u32], |[v]: [u32; 1]| v as i32;
    f32 = |v: f32| [v.to_bits()], |[v]: [u32; 1]| f32::from_bits(v);
    u64 = halves, join;
    f64 = |v: f64| halves(v.to_bits()), |v| f64::from_bits(join(v));
}

/// Values that a texture object holds.
#[doc(hidden)]
pub trait Fetch: Sized {
    fn fetch(texture: u64, index: u32) -> Self;
}

/// The four channels of texel `index`; a texel with fewer leaves the rest 0.
#[inline(always)]
fn fetch_channels(texture: u64, index: u32) -> [u32; 4] {
    let (a, b, c, d): (u32, u32, u32, u32);
    // SAFETY: a live texture object, under the contract of `Texture::from_raw`.
    unsafe {
        asm!("tex.1d.v4.s32.s32 {{{0}, {1}, {2}, {3}}}, [{4}, {{{5}}}];",
            out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d,
            in(reg64) texture, in(reg32) index,
            options(pure, nomem, nostack, preserves_flags));
    }
    [a, b, c, d]
}

impl Fetch for f32 {
    #[inline(always)]
    fn fetch(texture: u64, index: u32) -> Self {
        f32::from_bits(fetch_channels(texture, index)[0])
    }
}

impl Fetch for f64 {
    #[inline(always)]
    fn fetch(texture: u64, index: u32) -> Self {
        let [low, high, ..] = fetch_channels(texture, index);
        f64::from_bits(join([low, high]))
    }
}

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
