//! The procedures that ScanTrans and MergeTrans are made of (R3 IV), each with one meaning that a
//! test can state alone: prefix sums, histograms, and a sort cut into segments and merges.
//!
//! They run on a team of [`Threads`](crate::Threads), allocate nothing, and give the same result
//! for every number of threads.

mod index;
mod scan;
mod sort;

pub(super) use index::ChunksOfRows;
pub use index::{count_per_part, index_to_pointers, pointers_to_index};
pub use scan::{exclusive_scan, vertical_scan};
pub use sort::{merge, segmented_sort};
