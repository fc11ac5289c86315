//! Thread and block indices, and the barrier of a block.

use super::backend;

macro_rules! special_registers {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {$(
        $(#[$meta])*
        #[inline(always)]
        pub fn $name() -> u32 {
            backend::$name()
        }
    )*};
}

special_registers!(
    /// Index of the thread in its block, x.
    thread_idx_x,
    /// Index of the thread in its block, y.
    thread_idx_y,
    /// Index of the block in the grid, x.
    block_idx_x,
    /// Index of the block in the grid, y.
    block_idx_y,
    /// Threads of a block in x.
    block_dim_x,
    /// Threads of a block in y.
    block_dim_y,
    /// Blocks of the grid in x.
    grid_dim_x,
    /// Blocks of the grid in y.
    grid_dim_y,
);

/// Index of the thread in a one-dimensional grid of one-dimensional blocks.
#[inline(always)]
pub fn index_1d() -> u32 {
    block_idx_x() * block_dim_x() + thread_idx_x()
}

/// The low half of the device's clock, in nanoseconds; it goes on in steps of up to a microsecond (`%globaltimer_lo`).
#[inline(always)]
pub fn global_timer() -> u32 {
    backend::global_timer()
}

/// Waits for every thread of the block (`bar.sync 0`); orders shared and global memory among them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn sync_threads() {
    backend::sync_threads();
}
