//! SpMM kernels: Y = A X, where X and Y are dense with k columns. There is one file per kernel,
//! named like its id, which begins with its formula and its source.

mod bsr_row_split;
mod columns;
mod csr;
mod csr_adaptive;
mod csr_adaptive_subblocks;
mod csr_nonzero_split;
mod csr_row_split;
mod csr_segmented_sum;
mod csr_stream;
mod csr_subwarp_per_element;
mod csr_thread_per_element;
mod csr_vector;
mod csr_warp_per_element;
mod csr_warp_per_row;
mod ell_subwarp_per_element;
mod ell_thread_per_element;
mod rearrange;
mod reduce;
mod sell;
mod sell_row_split;
mod sell_thread_per_row;
mod strides;

pub use columns::COLUMN_THREADS;
pub use strides::Strides;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    pub use super::bsr_row_split::{
        BsrRowSplit2x1, BsrRowSplit2x2, BsrRowSplit2x4, BsrRowSplit3x1, BsrRowSplit3x2,
        BsrRowSplit3x4, BsrRowSplit4x1, BsrRowSplit4x2, BsrRowSplit4x4, BsrRowSplit5x1,
        BsrRowSplit5x2, BsrRowSplit5x4, BsrRowSplit6x1, BsrRowSplit6x2, BsrRowSplit6x4,
        BsrRowSplit8x1, BsrRowSplit8x2, BsrRowSplit8x4,
    };
    pub use super::csr_adaptive::{CsrAdaptive, csr_adaptive_bytes};
    pub use super::csr_adaptive_subblocks::{CsrAdaptiveSubblocks, csr_adaptive_subblocks_bytes};
    pub use super::csr_nonzero_split::{CsrNonzeroSplit1, CsrNonzeroSplit2, CsrNonzeroSplit4};
    pub use super::csr_row_split::{
        CsrRowSplit1, CsrRowSplit2, CsrRowSplit4, SPLIT_SUM_BLOCK, SplitSum, split_sum_bytes,
    };
    pub use super::csr_segmented_sum::{CsrSegmentedSum4, CsrSegmentedSum8};
    pub use super::csr_stream::{
        CsrStream1, CsrStream2, CsrStream4, STREAM_AT_ONCE, csr_stream_bytes,
    };
    pub use super::csr_subwarp_per_element::CsrSubwarpPerElement;
    pub use super::csr_thread_per_element::{
        CsrThreadPerElementV1, CsrThreadPerElementV2, CsrThreadPerElementV3,
    };
    pub use super::csr_vector::{CsrVector2, CsrVector4, CsrVector8};
    pub use super::csr_warp_per_element::CsrWarpPerElement;
    pub use super::csr_warp_per_row::CsrWarpPerRow;
    pub use super::ell_subwarp_per_element::EllSubwarpPerElement;
    pub use super::ell_thread_per_element::EllThreadPerElement;
    pub use super::rearrange::{Rearrange, TILE_COLUMNS, rearrange_bytes, rearrange_tile_rows};
    pub use super::reduce::shared_sum_bytes;
    pub use super::sell_row_split::{SellRowSplit1, SellRowSplit2, SellRowSplit4};
    pub use super::sell_thread_per_row::{SellThreadPerRow2, SellThreadPerRow4, SellThreadPerRow8};
}
#[cfg(not(target_arch = "nvptx64"))]
pub use host::*;
