//! The device module on the host: every call is forwarded to the block that the emulator runs.

use core::mem::transmute;
use core::panic::Location;
use core::sync::atomic::{AtomicU32, Ordering};

use super::{Complex, Element};
use crate::emulator::{Axis, Bytes, Call, Defect, Operation, Path, ShuffleMode, with_current};

macro_rules! from_bytes {
    ($type:ty, $bytes:expr) => {
        // SAFETY: same size; every bit pattern is a value of an element.
        unsafe { transmute::<[u8; size_of::<$type>()], $type>($bytes.0) }
    };
}

macro_rules! to_bytes {
    ($type:ty, $value:expr) => {
        // SAFETY: same size; an element has no padding.
        Bytes(unsafe { transmute::<$type, [u8; size_of::<$type>()]>($value) })
    };
}

macro_rules! special_registers {
    ($($name:ident = $method:ident $axis:ident),* $(,)?) => {$(
        pub(super) fn $name() -> u32 {
            with_current(|block| block.$method(Axis::$axis))
        }
    )*};
}

special_registers!(
    thread_idx_x = thread_idx X,
    thread_idx_y = thread_idx Y,
    block_idx_x = block_idx X,
    block_idx_y = block_idx Y,
    block_dim_x = block_dim X,
    block_dim_y = block_dim Y,
    grid_dim_x = grid_dim X,
    grid_dim_y = grid_dim Y,
);

/// A microsecond later at each call.
pub(super) fn global_timer() -> u32 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed).wrapping_mul(1000)
}

/// Nothing writes to memory of the emulator while a kernel runs.
pub(super) fn load_system(address: u64) -> u32 {
    u32::load_global(address)
}

#[inline(always)]
#[track_caller]
pub(super) fn sync_threads() {
    wait(Location::caller());
}

#[inline(never)]
fn wait(at: &'static Location<'static>) {
    with_current(|block| block.sync_threads(at));
}

/// Not generic: compiled here, with the optimisation of this crate.
#[inline(never)]
fn warp_operation(call: &Call) -> u64 {
    with_current(|block| block.warp_operation(call))
}

pub(super) fn lane_id() -> u32 {
    with_current(|block| block.lane_id())
}

#[inline(always)]
#[track_caller]
fn vote(operation: Operation, mask: u32, value: u32) -> u32 {
    let (value, at) = (u64::from(value), Location::caller());
    warp_operation(&Call { operation, mask, value, argument: 0, width: 0, at }) as u32
}

#[inline(always)]
#[track_caller]
pub(super) fn ballot(mask: u32, predicate: bool) -> u32 {
    vote(Operation::Ballot, mask, u32::from(predicate))
}

#[inline(always)]
#[track_caller]
pub(super) fn any(mask: u32, predicate: bool) -> bool {
    vote(Operation::Any, mask, u32::from(predicate)) != 0
}

#[inline(always)]
#[track_caller]
pub(super) fn all(mask: u32, predicate: bool) -> bool {
    vote(Operation::All, mask, u32::from(predicate)) != 0
}

#[inline(always)]
#[track_caller]
pub(super) fn match_any(mask: u32, value: u32) -> u32 {
    vote(Operation::MatchAny, mask, value)
}

#[inline(always)]
#[track_caller]
pub(super) fn sync_warp(mask: u32) {
    vote(Operation::Sync, mask, 0);
}

pub(super) fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

pub(super) fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

pub(super) fn pack_halves(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

pub(super) fn opaque(value: u32) -> u32 {
    value
}

pub(super) fn unpack_halves(pair: u32) -> [u16; 2] {
    [pair as u16, (pair >> 16) as u16]
}

/// Does nothing, because the threads of the emulator run one at a time.
pub(super) fn fence_block() {}

/// As [`fence_block`].
pub(super) fn fence_device() {}

pub(super) fn check_shared_index(index: u32, length: u32) {
    if index >= length {
        with_current(|block| block.fail(Defect::SharedIndex { index, length }));
    }
}

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

macro_rules! access {
    ($($type:ty),* $(,)?) => {$(
        impl Access for $type {
            fn load_global(address: u64) -> Self {
                let bytes = with_current(|block| {
                    block.load_global(Path::Plain, "load", address, <$type>::ALIGNMENT)
                });
                from_bytes!($type, bytes)
            }
            fn load_read_only(address: u64) -> Self {
                let bytes = with_current(|block| {
                    block.load_global(Path::ReadOnly, "load", address, <$type>::ALIGNMENT)
                });
                from_bytes!($type, bytes)
            }
            fn load_relaxed(address: u64) -> Self {
                Self::load_global(address)
            }
            fn store_relaxed(address: u64, value: Self) {
                Self::store_global(address, value);
            }
            fn load_streaming(address: u64) -> Self {
                Self::load_read_only(address)
            }
            fn load_with_line(address: u64) -> Self {
                Self::load_read_only(address)
            }
            fn store_global(address: u64, value: Self) {
                let bytes = to_bytes!($type, value);
                with_current(|block| {
                    block.store_global("store", address, <$type>::ALIGNMENT, bytes);
                });
            }
            fn store_streaming(address: u64, value: Self) {
                Self::store_global(address, value);
            }
            fn load_shared(offset: u32) -> Self {
                let bytes = with_current(|block| block.load_shared(offset, <$type>::ALIGNMENT));
                from_bytes!($type, bytes)
            }
            fn store_shared(offset: u32, value: Self) {
                let bytes = to_bytes!($type, value);
                with_current(|block| block.store_shared(offset, <$type>::ALIGNMENT, bytes));
            }
        }
    )*};
}

access!(
    u16,
    u32,
    i32,
    f32,
    u64,
    f64,
    [u16; 2],
    [u32; 2],
    [i32; 2],
    [f32; 2],
    [u64; 2],
    [f64; 2],
    [u16; 4],
    [u32; 4],
    [i32; 4],
    [f32; 4],
    [u64; 4],
    [f64; 4],
    Complex<f32>,
    Complex<f64>,
);

/// Conditional accesses.
#[doc(hidden)]
pub trait AccessIf: Access {
    fn load_global_if(condition: bool, address: u64, otherwise: Self) -> Self {
        if condition { Self::load_global(address) } else { otherwise }
    }
    fn load_read_only_if(condition: bool, address: u64, otherwise: Self) -> Self {
        if condition { Self::load_read_only(address) } else { otherwise }
    }
    fn load_streaming_if(condition: bool, address: u64, otherwise: Self) -> Self {
        if condition { Self::load_streaming(address) } else { otherwise }
    }
    fn store_global_if(condition: bool, address: u64, value: Self) {
        if condition {
            Self::store_global(address, value);
        }
    }
    fn load_shared_if(condition: bool, offset: u32, otherwise: Self) -> Self {
        if condition { Self::load_shared(offset) } else { otherwise }
    }
    fn store_shared_if(condition: bool, offset: u32, value: Self) {
        if condition {
            Self::store_shared(offset, value);
        }
    }
}

impl AccessIf for u16 {}
impl AccessIf for u32 {}
impl AccessIf for f32 {}
impl AccessIf for u64 {}
impl AccessIf for f64 {}
impl AccessIf for Complex<f32> {}
impl AccessIf for Complex<f64> {}

/// Values that a shuffle can exchange.
#[doc(hidden)]
pub trait Shuffle: Copy {
    fn shuffle_down(mask: u32, value: Self, delta: u32, width: u32) -> Self;
    fn shuffle_up(mask: u32, value: Self, delta: u32, width: u32) -> Self;
    fn shuffle_xor(mask: u32, value: Self, lane_mask: u32, width: u32) -> Self;
    fn shuffle_idx(mask: u32, value: Self, source: u32, width: u32) -> Self;
}

macro_rules! shuffle_method {
    ($name:ident, $mode:ident, $to:expr, $from:expr) => {
        #[inline(always)]
        #[track_caller]
        fn $name(mask: u32, value: Self, argument: u32, width: u32) -> Self {
            let (at, operation) = (Location::caller(), Operation::Shuffle(ShuffleMode::$mode));
            $from(warp_operation(&Call { operation, mask, value: $to(value), argument, width, at }))
        }
    };
}

macro_rules! shuffle {
    ($($type:ty = $to:expr, $from:expr);* $(;)?) => {$(
        impl Shuffle for $type {
            shuffle_method!(shuffle_down, Down, $to, $from);
            shuffle_method!(shuffle_up, Up, $to, $from);
            shuffle_method!(shuffle_xor, Xor, $to, $from);
            shuffle_method!(shuffle_idx, Idx, $to, $from);
        }
    )*};
}

shuffle! {
    u32 = u64::from, |bits| bits as u32;
    i32 = |value| value as u32 as u64, |bits| bits as i32;
    f32 = |value: f32| u64::from(value.to_bits()), |bits| f32::from_bits(bits as u32);
    u64 = |value| value, |bits| bits;
    f64 = f64::to_bits, f64::from_bits;
}

/// Values that a texture object holds.
#[doc(hidden)]
pub trait Fetch: Sized {
    fn fetch(texture: u64, index: u32) -> Self;
}

macro_rules! fetch {
    ($($type:ty),*) => {$(
        impl Fetch for $type {
            fn fetch(texture: u64, index: u32) -> Self {
                let size = size_of::<$type>() as u64;
                let bytes = with_current(|block| {
                    block.load_global(Path::ReadOnly, "texture fetch", texture + u64::from(index) * size, size as u32)
                });
                from_bytes!($type, bytes)
            }
        }
    )*};
}

fetch!(f32, f64);

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

macro_rules! update {
    ($type:ty, global $address:ident, |$old:ident| $new:expr) => {
        with_current(|block| {
            let alignment = <$type>::ALIGNMENT;
            let $old = from_bytes!(
                $type,
                block.load_global(Path::Plain, "atomic operation", $address, alignment)
            );
            let new: $type = $new;
            block.store_global("atomic operation", $address, alignment, to_bytes!($type, new));
            $old
        })
    };
    ($type:ty, shared $offset:ident, |$old:ident| $new:expr) => {{
        let bytes = with_current(|block| {
            block.update_shared($offset, |bytes| {
                let $old = from_bytes!($type, bytes);
                let new: $type = $new;
                to_bytes!($type, new)
            })
        });
        from_bytes!($type, bytes)
    }};
}

macro_rules! atomic_words {
    ($($type:ty),*) => {$(
        impl AtomicAccess for $type {
            fn atomic_exchange_global(address: u64, value: Self) -> Self {
                update!($type, global address, |old| { let _ = old; value })
            }
            fn atomic_compare_exchange_global(address: u64, expected: Self, new: Self) -> Self {
                update!($type, global address, |old| if old == expected { new } else { old })
            }
            fn load_acquire(address: u64) -> Self {
                Self::load_global(address)
            }
            fn store_release(address: u64, value: Self) {
                Self::store_global(address, value);
            }
            fn atomic_exchange_shared(offset: u32, value: Self) -> Self {
                update!($type, shared offset, |old| { let _ = old; value })
            }
            fn atomic_compare_exchange_shared(offset: u32, expected: Self, new: Self) -> Self {
                update!($type, shared offset, |old| if old == expected { new } else { old })
            }
        }
    )*};
}

atomic_words!(u32, u64);

macro_rules! atomic_sums {
    ($($type:ty = $add:expr);* $(;)?) => {$(
        impl AtomicSum for $type {
            fn atomic_add_global(address: u64, value: Self) -> Self {
                update!($type, global address, |old| $add(old, value))
            }
            fn atomic_add_release(address: u64, value: Self) -> Self {
                Self::atomic_add_global(address, value)
            }
            fn atomic_add_shared(offset: u32, value: Self) -> Self {
                update!($type, shared offset, |old| $add(old, value))
            }
        }
    )*};
}

atomic_sums! {
    u32 = u32::wrapping_add;
    u64 = u64::wrapping_add;
    f32 = |a, b| a + b;
    f64 = |a, b| a + b;
}
