//! The device module in PTX.
//!
//! Loads, stores and atomics are inline assembly on integers of the element's size, which fixes the
//! state space (`.global`, `.shared`), the read-only path and the cache hints. Operations that
//! involve other threads use LLVM intrinsics, which are convergent.

use core::arch::nvptx as ptx;
use core::arch::{asm, global_asm};

// SAFETY (all accesses of this module): the address is inside an array of the launch, under the
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

mod access;
mod atomic;
mod shuffle;
mod texture;

pub(super) use access::{Access, AccessIf};
pub(super) use atomic::{AtomicAccess, AtomicSum};
pub(super) use shuffle::Shuffle;
pub(super) use texture::Fetch;

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
pub(super) fn global_timer() -> u32 {
    let nanoseconds: u32;
    // SAFETY: reads a register; not `pure`, so that every call counts.
    unsafe {
        asm!("mov.u32 {0}, %globaltimer_lo;", out(reg32) nanoseconds,
            options(nomem, nostack, preserves_flags));
    }
    nanoseconds
}

#[inline(always)]
pub(super) fn load_system(address: u64) -> u32 {
    let word: u32;
    // SAFETY: an aligned word that the launch's contract covers; not `pure`, so that every call loads.
    unsafe {
        asm!("ld.relaxed.sys.global.b32 {0}, [{1}];", out(reg32) word, in(reg64) address,
            options(readonly, nostack, preserves_flags));
    }
    word
}

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
