//! Vector operations, so that a solver's vectors stay on the device: y = alpha x + beta y, products
//! element by element, dot products, copies of some elements. Lengths have 64 bits.

mod axpby;
mod dot;
mod fill;
mod gather;
mod multiply;
mod scale;
mod scatter;
mod sum;

use crate::device::thread;

/// Index of the thread in a one-dimensional grid that may have more threads than 32 bits number.
#[inline(always)]
fn index() -> u64 {
    u64::from(thread::block_idx_x()) * u64::from(thread::block_dim_x())
        + u64::from(thread::thread_idx_x())
}

/// The row of the thread in a one-dimensional grid of blocks of (columns, rows).
#[inline(always)]
fn row_in_grid() -> u64 {
    u64::from(thread::block_idx_x()) * u64::from(thread::block_dim_y())
        + u64::from(thread::thread_idx_y())
}

pub use dot::{DOT_BLOCKS, DOT_ELEMENTS, DOT_THREADS};

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    pub use super::axpby::VectorAxpby;
    pub use super::dot::{VectorDot, vector_sum_shared_bytes};
    pub use super::fill::VectorFill;
    pub use super::gather::VectorGather;
    pub use super::multiply::VectorMultiply;
    pub use super::scale::VectorScale;
    pub use super::scatter::VectorScatter;
    pub use super::sum::VectorSum;
}
#[cfg(not(target_arch = "nvptx64"))]
pub use host::*;
