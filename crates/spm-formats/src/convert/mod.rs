//! Conversions between all formats.
//!
//! All of them run on the current rayon pool, are O(slots written + rows), and give the same bits
//! for every number of threads. Conversions from CSR take any view, slices of a larger matrix
//! included.

mod coo_csr;
mod csr_ell;
mod csr_hll;
mod csr_sell;
pub(crate) mod disjoint;
mod rows;
mod tile;

pub use coo_csr::coo_to_csr;
pub use csr_ell::{EllOptions, csr_to_ell};
pub use csr_hll::csr_to_hll;
pub use csr_sell::csr_to_sell;
