//! Conversions from CSR to the formats of the SpMV kernels, and statistics for the choice of a
//! kernel.

mod bsr;
mod column_blocks;
mod diagonals;
mod dictionary;
mod ell_columns;
mod padded;
mod pattern;
mod segments;
mod sellp;
mod stats;
mod values;

pub(crate) use bsr::{SlicedBsr, SlicedRow};

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    pub use super::bsr::{
        BSR_SAMPLES, BsrColumns, BsrCounts, BsrFullColumns, BsrOrder, BsrValues, MOST_BLOCK_SIZE,
    };
    pub use super::column_blocks::{
        ColumnBlockColumns, ColumnBlockCounts, ColumnBlockEnds, ColumnBlockEntries,
        ColumnBlockEntriesSingle,
    };
    pub use super::diagonals::{
        DIAGONAL_BLOCK, DIAGONAL_TABLE, DiagonalPlaces, DiagonalPlacesSingle, FindDiagonals,
        NO_DIAGONAL, diagonal_shared_bytes,
    };
    pub use super::dictionary::{FindValues, NO_VALUE, VALUE_TABLE};
    pub use super::ell_columns::EllColumns;
    pub use super::padded::{
        BlockOffsets, BlockWidths, LengthKeys, PaddedElements, RowLengths, WindowKeys,
    };
    pub use super::pattern::{FAR_COLUMNS, PATTERN_PAIRS, SAMPLED_ROWS};
    pub use super::segments::{
        SegmentEntries, SegmentEntriesSingle, SegmentFlags, SegmentHeaders, SegmentRanks,
        SegmentRowMarks, SegmentRows, SegmentValues,
    };
    pub use super::sellp::{
        MOST_SIGMA, SellpColumns, SellpMeasure, SellpOrder, SellpValues, SellpValuesCoded,
        SellpValuesSingle,
    };
    pub use super::stats::{SURVEY_BLOCK, Survey, survey_shared_bytes};
    pub use super::values::{NO_POSITION, Numbers, PlacedValues, Positions};
}
#[cfg(not(target_arch = "nvptx64"))]
pub use host::*;
