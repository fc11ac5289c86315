//! CSR to CSC, and the procedures that transpositions are made of.

mod bucket_pieces;
mod bucket_sort;
mod bucket_width;
mod buckets;
mod duplicates;
mod index_to_pointers;
mod merge;
mod merge_trans;
mod move_entries;
mod pointers_to_index;
mod rows;
mod scan;
mod segmented_sort;
mod tile;

pub use bucket_pieces::*;
pub use bucket_sort::*;
pub use bucket_width::*;
pub use buckets::*;
pub use duplicates::*;
pub use index_to_pointers::*;
pub use merge::*;
#[cfg(not(target_arch = "nvptx64"))]
pub use merge_trans::*;
pub use move_entries::*;
#[cfg(not(target_arch = "nvptx64"))]
pub use pointers_to_index::*;
pub use scan::*;
pub use segmented_sort::*;
pub use tile::TILE_ITEMS;
