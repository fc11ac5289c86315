//! SELL-C-sigma: ELLPACK by chunks of C rows, after sorting rows by length inside windows of sigma.

/// SELL-C-sigma (Kreutzer, Hager, Wellein, Fehske, Bishop: "A unified sparse matrix data format
/// for efficient general sparse matrix-vector multiplication on modern processors with wide SIMD
/// units", SIAM J. Sci. Comput. 36(5), 2014).
///
/// ```text
///     | 1 0 2 |      C = 2, sigma = 4: rows sorted by length, longest first, stable
/// A = | 0 3 0 |      permutation     0 2 | 1 -
///     | 4 0 5 |      chunk offsets   0        4     6
///                    column indices  0 0 2 2  1 0*
///                    values          1 4 2 5  3 0*
/// ```
///
/// Every chunk has exactly C rows (the last is filled up with rows of length 0), column-major:
/// slot `s` of lane `i` of chunk `c` is at `chunk_offsets[c] + s * C + i`. `permutation[p]` is the
/// row of A at position `p`; it and the row lengths (by position) have one element per row of A.
/// Padding follows the rule of [`Ell`](crate::Ell).
#[derive(Debug, Clone, PartialEq)]
pub struct Sell<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) entries: usize,
    pub(crate) chunk: usize,
    pub(crate) sigma: usize,
    pub(crate) chunk_offsets: Vec<usize>,
    pub(crate) permutation: Vec<u32>,
    pub(crate) row_lengths: Vec<u32>,
    pub(crate) col_indices: Vec<u32>,
    pub(crate) values: Vec<T>,
}
