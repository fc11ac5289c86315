//! Conversions between all formats.
//!
//! All conversions run on the current rayon pool and give the same bits for every number of
//! threads. They take O(rows + stored elements), except R4's row scans, which take O(rows x
//! entries).

mod coo_csr;
mod cost;
mod counting_sort;
mod csr_bsr;
mod csr_csc;
mod csr_ell;
mod csr_hll;
mod csr_sell;
mod padded_csr;
mod registry;
mod row_scan;
mod rows;
mod single_pass;
mod tile;
mod via_csr;

pub(crate) use coo_csr::merge_rows;
pub use coo_csr::{coo_to_csc, coo_to_csr, csr_to_coo};
pub use csr_bsr::{
    BLOCK_SIZES, BlockRowsMut, DetectedBlocks, best_blocks, bsr_to_csr, csr_to_bsr, detect_blocks,
};
pub use csr_csc::{csc_to_csr, csr_to_csc};
pub use csr_ell::{EllOptions, csr_to_ell, csr_to_unpadded_ell};
pub use csr_hll::csr_to_hll;
pub use csr_sell::csr_to_sell;
pub use padded_csr::{ell_to_csr, hll_to_csr, sell_to_csr, unpadded_ell_to_csr};
pub use registry::{
    ConversionInput, ConversionKernel, ConversionPlan, Converted, ROW_SCAN_LIMIT, find, registry,
};
pub use row_scan::{coo_to_csr_row_scan, coo_to_ell_padded, coo_to_ell_unpadded};
pub use single_pass::{coo_to_csr_single_pass, coo_to_ell_single_pass};
pub use via_csr::{
    bsr_to_coo, coo_to_bsr, coo_to_ell, coo_to_hll, coo_to_sell, coo_to_unpadded_ell, csc_to_coo,
    ell_to_coo, hll_to_coo, sell_to_coo, unpadded_ell_to_coo,
};
