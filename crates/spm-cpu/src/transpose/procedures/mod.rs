//! The procedures of ScanTrans and MergeTrans (R3 IV): prefix sums, histograms, segmented sort and
//! merge.
//!
//! They run on a thread pool ([`Threads`](crate::Threads)), allocate nothing, and give the same
//! result for every number of threads.

mod index;
mod scan;
mod sort;

pub(super) use index::ChunksOfRows;
pub use index::{count_per_part, index_to_pointers, pointers_to_index};
pub use scan::{exclusive_scan, vertical_scan};
pub use sort::{merge, segmented_sort};
