//! CSR to CSC, and the procedures that transpositions are made of.

mod block_scan;
mod index_to_pointers;
mod merge;
mod merge_trans;
mod place;
mod pointers_to_index;
mod rows;
mod scan;
mod scan_trans;
mod segmented_sort;

pub use index_to_pointers::*;
pub use merge::*;
#[cfg(not(target_arch = "nvptx64"))]
pub use merge_trans::*;
pub use place::ITEMS;
#[cfg(not(target_arch = "nvptx64"))]
pub use pointers_to_index::*;
pub use rows::SEGMENT;
pub use scan::*;
pub use scan_trans::*;
pub use segmented_sort::*;
