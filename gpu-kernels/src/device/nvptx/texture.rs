//! Reads of texture objects.

use core::arch::asm;

use super::shuffle::join;

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
