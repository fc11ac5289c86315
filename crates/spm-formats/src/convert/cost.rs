//! Bytes that conversions from COO allocate at most, their result included.

use crate::{Coo, Scalar, UnpaddedEll};

/// Bytes of pointers, indices and values.
pub(super) fn compressed<T: Scalar>(outer: usize, entries: usize) -> u64 {
    4 * (outer as u64 + 1) + entries as u64 * (size_of::<u32>() + T::BYTES) as u64
}

/// Bytes of a word for each of `count` elements.
fn words(count: usize) -> u64 {
    count as u64 * size_of::<u32>() as u64
}

/// Bytes in which threads sort the rows of a matrix whose longest row has at most `longest` entries:
/// pairs in an array that grows, and what a stable sort takes beside it.
pub(super) fn scratch<T: Scalar>(coo: &Coo<T>, longest: usize) -> u64 {
    let at_once = longest.saturating_mul(rayon::current_num_threads()).min(coo.entries());
    at_once as u64 * 4 * size_of::<(u32, u32, T)>() as u64
}

/// Of a stable counting sort of so many entries by one of `keys_end` keys.
pub(super) fn counting_sort<T: Scalar>(keys_end: usize, entries: usize) -> u64 {
    compressed::<T>(keys_end, entries) + words((2 * entries).max(keys_end))
}

/// Of [`coo_to_csr`](super::coo_to_csr).
pub(super) fn coo_to_csr<T: Scalar>(coo: &Coo<T>, longest: usize) -> u64 {
    let lengths = words(coo.rows());
    counting_sort::<T>(coo.rows(), coo.entries()) + lengths + scratch(coo, longest)
}

/// Of [`coo_to_csr_row_scan`](super::coo_to_csr_row_scan).
pub(super) fn row_scan<T: Scalar>(coo: &Coo<T>, longest: usize) -> u64 {
    compressed::<T>(coo.rows(), coo.entries()) + words(coo.rows()) + scratch(coo, longest)
}

/// Of [`coo_to_csr_single_pass`](super::coo_to_csr_single_pass).
pub(super) fn single_pass<T: Scalar>(coo: &Coo<T>, longest: usize) -> u64 {
    // A cursor for each row, and a position for each entry.
    row_scan(coo, longest) + words(coo.rows()) + words(coo.entries())
}

/// Of [`coo_to_ell_unpadded`](super::coo_to_ell_unpadded).
pub(super) fn unpadded<T: Scalar>(coo: &Coo<T>, longest: usize) -> u64 {
    let rows = UnpaddedEll::<T>::bytes_of(coo.rows(), coo.entries());
    rows + words(coo.rows()) + scratch(coo, longest)
}

/// Of [`coo_to_ell_single_pass`](super::coo_to_ell_single_pass), which keeps `of_row` bytes for each
/// row until it is finished.
pub(super) fn unpadded_single_pass<T: Scalar>(coo: &Coo<T>, longest: usize, of_row: usize) -> u64 {
    unpadded(coo, longest) + words(coo.entries()) + (coo.rows() * of_row) as u64
}
