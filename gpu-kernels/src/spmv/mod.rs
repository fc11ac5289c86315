//! y = A x.

mod csr_thread_per_row;
mod csr_warp_per_row;
mod reduce;

#[cfg(not(target_arch = "nvptx64"))]
pub use {csr_thread_per_row::CsrThreadPerRow, csr_warp_per_row::CsrWarpPerRow};
