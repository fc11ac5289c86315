//! SpMV kernels: y = A x. There is one file per kernel, named like its id, which begins with its
//! formula and its source.

mod bsr_subwarp_per_row;
pub(crate) mod compact;
mod csr_adaptive;
mod csr_column_blocks;
mod csr_compact;
pub(crate) mod csr_ell_columns;
mod csr_merge;
pub(crate) mod csr_segmented_sum;
mod csr_subwarp_per_row;
mod csr_thread_per_row;
mod csr_thread_per_row_texture;
mod csr_warp_per_row;
mod csr_warp_per_row_shared;
mod dia_thread_per_row;
mod ell_thread_per_row;
mod ell_thread_per_row_rowmajor;
mod ell_warp_per_row;
mod entries;
mod hll_thread_per_row;
mod hll_thread_per_row_texture;
mod padded;
mod sell;
mod sell_compact;
pub(crate) mod sellp;

pub use bsr_subwarp_per_row::BSR_THREADS;
pub use csr_adaptive::ADAPTIVE_TILE_ENTRIES;
pub use csr_column_blocks::COLUMN_BLOCK_QUAD;
pub use csr_ell_columns::COLUMN_BIAS;
pub use csr_merge::MERGE_ITEMS;
pub use csr_segmented_sum::SEGMENT_THREADS;
pub use dia_thread_per_row::{Distances, MOST_DIAGONALS};

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    pub use super::bsr_subwarp_per_row::{Bsr2, Bsr3, Bsr4, Bsr5, Bsr6, Bsr8};
    pub use super::compact::{MOST_VALUES, coded_shared_bytes};
    pub use super::csr_adaptive::{
        AdaptiveTiles, CsrAdaptive, CsrAdaptiveCombine, CsrAdaptiveEqual, csr_adaptive_shared_bytes,
    };
    pub use super::csr_column_blocks::{
        ColumnBlockSums, CsrColumnBlocks, CsrColumnBlocksEqual, CsrColumnBlocksSingle,
        csr_column_blocks_shared_bytes,
    };
    pub use super::csr_compact::{CsrCompact, CsrCompactEqual, compact_columns};
    pub use super::csr_ell_columns::{
        CsrEllColumns4, CsrEllColumns4Equal, CsrEllColumns4Wide, CsrEllColumns4WideEqual,
        CsrEllColumns8, CsrEllColumns8Equal, CsrEllColumns8Wide, CsrEllColumns8WideEqual,
    };
    pub use super::csr_merge::{
        CsrMerge, CsrMergeCarry, CsrMergeEqual, csr_merge_shared_bytes, merge_tiles,
    };
    pub use super::csr_segmented_sum::{
        CsrSegmentedSum4, CsrSegmentedSum4Equal, CsrSegmentedSum4Single, CsrSegmentedSum8,
        CsrSegmentedSum8Equal, CsrSegmentedSum8Single, csr_segmented_sum_shared_bytes,
    };
    pub use super::csr_subwarp_per_row::{
        CsrSubwarpPerRow, CsrSubwarpPerRowEqual, CsrSubwarpPerRowEqualScaled,
        CsrSubwarpPerRowScaled,
    };
    pub use super::csr_thread_per_row::CsrThreadPerRow;
    pub use super::csr_thread_per_row_texture::CsrThreadPerRowTexture;
    pub use super::csr_warp_per_row::CsrWarpPerRow;
    pub use super::csr_warp_per_row_shared::{CsrWarpPerRowShared, csr_warp_per_row_shared_bytes};
    pub use super::dia_thread_per_row::{Dia, DiaDeep, DiaDeepSingle, DiaSingle};
    pub use super::ell_thread_per_row::{EllThreadPerRow, EllThreadPerRowPadded};
    pub use super::ell_thread_per_row_rowmajor::{
        EllThreadPerRowRowmajor, EllThreadPerRowRowmajorPadded,
    };
    pub use super::ell_warp_per_row::{EllWarpPerRow, EllWarpPerRowPadded};
    pub use super::hll_thread_per_row::HllThreadPerRow;
    pub use super::hll_thread_per_row_texture::HllThreadPerRowTexture;
    pub use super::sell::{SellSorted, SellUnsorted};
    pub use super::sell_compact::{
        CompactColumns, SellCompactEqualSorted, SellCompactEqualUnsorted, SellCompactSorted,
        SellCompactUnsorted,
    };
    pub use super::sellp::{
        Sellp, SellpCoded, SellpCodedSorted, SellpEqual, SellpEqualSorted, SellpSingle,
        SellpSingleSorted, SellpSorted,
    };
}
#[cfg(not(target_arch = "nvptx64"))]
pub use host::*;
