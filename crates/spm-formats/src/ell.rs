//! ELLPACK: every row padded to the longest, as two rectangular arrays.

/// Which dimension of the rectangle is contiguous in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// The slots of one row lie side by side (R0 2.3.1, for cores that walk rows).
    RowMajor,
    /// The same slot of neighbouring rows lies side by side (R0 2.3.2, for coalesced GPU reads).
    ColumnMajor,
}

/// ELLPACK with a pitch and row lengths.
///
/// ```text
///     | 1 0 2 |      row lengths     2 1 2          width 2
/// A = | 0 3 0 |
///     | 4 0 5 |      column indices  0 2 | 1 1* | 0 2     row-major
///                    values          1 2 | 3 0* | 4 5
///
///                    column indices  0 1 0 | 2 1* 2       column-major
///                    values          1 3 4 | 2 0* 5
/// ```
///
/// `*` is padding: value 0, and the row's last valid column again (R0 2.3.1), so that it reads an
/// element of x that is in cache; column 0 in a row without entries.
///
/// Slot `s` of row `r` is at `r * pitch + s` (row-major, pitch >= width) or `s * pitch + r`
/// (column-major, pitch >= rows). A pitch above the minimum aligns each run for the device, as
/// `cudaMallocPitch` does in R1 2.1.2; the gap holds column 0 and value 0.
///
/// Kernels that walk the padding must not let `0 x inf` reach the sum: row lengths are always kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Ell<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) entries: usize,
    pub(crate) width: usize,
    pub(crate) pitch: usize,
    pub(crate) layout: Layout,
    pub(crate) row_lengths: Vec<u32>,
    pub(crate) col_indices: Vec<u32>,
    pub(crate) values: Vec<T>,
}

/// ELLPACK without padding: each row owns two arrays of exactly its length (R4 4.1,
/// "senza zero padding").
#[derive(Debug, Clone, PartialEq)]
pub struct UnpaddedEll<T> {
    pub(crate) cols: usize,
    pub(crate) entries: usize,
    pub(crate) rows: Vec<UnpaddedRow<T>>,
}

/// One row of an [`UnpaddedEll`].
#[derive(Debug, Clone, PartialEq)]
pub struct UnpaddedRow<T> {
    /// Columns in ascending order.
    pub col_indices: Box<[u32]>,
    /// One value per column.
    pub values: Box<[T]>,
}
