//! SpMM kernels: Y = A X, where X and Y are dense with k columns. There is one file per kernel,
//! named like its id, which begins with its formula and its source.

mod columns;
mod csr;
mod csr_adaptive;
mod csr_adaptive_subblocks;
mod csr_column_lanes;
mod csr_entry_lanes;
mod csr_row_groups;
mod csr_segments;
mod csr_subwarp_per_element;
mod csr_thread_per_element;
mod csr_warp_per_element;
mod csr_warp_per_row;
mod ell_subwarp_per_element;
mod ell_thread_per_element;
mod rearrange;
mod reduce;
mod sell;
mod sell_column_lanes;
mod sell_thread_per_row;
mod strides;

pub use strides::Strides;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    pub use super::csr_adaptive::{CsrAdaptive, csr_adaptive_bytes};
    pub use super::csr_adaptive_subblocks::{CsrAdaptiveSubblocks, csr_adaptive_subblocks_bytes};
    pub use super::csr_column_lanes::{
        CsrColumnLanes1, CsrColumnLanes2, CsrColumnLanes4, SPLIT_SUM_BLOCK, SplitSum,
        split_sum_bytes,
    };
    pub use super::csr_entry_lanes::{CsrEntryLanes2, CsrEntryLanes4, CsrEntryLanes8};
    pub use super::csr_row_groups::{CsrRowGroups1, CsrRowGroups2, CsrRowGroups4};
    pub use super::csr_segments::{CsrSegments4, CsrSegments8};
    pub use super::csr_subwarp_per_element::CsrSubwarpPerElement;
    pub use super::csr_thread_per_element::{
        CsrThreadPerElementV1, CsrThreadPerElementV2, CsrThreadPerElementV3,
    };
    pub use super::csr_warp_per_element::CsrWarpPerElement;
    pub use super::csr_warp_per_row::CsrWarpPerRow;
    pub use super::ell_subwarp_per_element::EllSubwarpPerElement;
    pub use super::ell_thread_per_element::EllThreadPerElement;
    pub use super::rearrange::{Rearrange, TILE_COLUMNS, rearrange_bytes, rearrange_tile_rows};
    pub use super::reduce::shared_sum_bytes;
    pub use super::sell_column_lanes::{SellColumnLanes1, SellColumnLanes2, SellColumnLanes4};
    pub use super::sell_thread_per_row::{SellThreadPerRow2, SellThreadPerRow4, SellThreadPerRow8};
}
#[cfg(not(target_arch = "nvptx64"))]
pub use host::*;
