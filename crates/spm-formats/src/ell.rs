//! ELLPACK: every row padded to the longest, as two rectangular arrays.

use crate::Scalar;

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
///
/// # Invariants
/// `unsafe` code may rely on these; every constructor upholds them.
/// - Every column index, padding and gap included, is < cols, or the matrix has no slots.
/// - Both arrays have rows x pitch (row-major) or width x pitch (column-major) elements; the pitch
///   is at least width or rows. Where a slot exists, `position(row, slot)` is inside the arrays.
/// - There is one length per row, each at most width; they sum up to entries.
/// - The columns of a row ascend strictly; values of padding and gap are 0.
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
///
/// # Invariants
/// `unsafe` code may rely on these; every constructor upholds them.
/// - Both arrays of a row have the same length; the lengths sum up to entries.
/// - The columns of a row ascend strictly and are < cols.
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

impl<T: Scalar> Ell<T> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries, padding not counted.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Slots that each row has: the length of the longest row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Elements from one run of the contiguous dimension to the next.
    pub fn pitch(&self) -> usize {
        self.pitch
    }

    /// The contiguous dimension.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Position of slot `slot` of row `row` in both arrays.
    #[inline]
    pub fn position(&self, row: usize, slot: usize) -> usize {
        match self.layout {
            Layout::RowMajor => row * self.pitch + slot,
            Layout::ColumnMajor => slot * self.pitch + row,
        }
    }

    /// Entries of each row.
    pub fn row_lengths(&self) -> &[u32] {
        &self.row_lengths
    }

    /// Column of every slot, padding included.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// Value of every slot, padding included.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Number of slots, padding included.
    pub fn slots(&self) -> usize {
        self.values.len()
    }

    /// Slots per stored entry: 1 without padding, 1 for a matrix without slots.
    pub fn padding_ratio(&self) -> f64 {
        padding_ratio(self.slots(), self.entries)
    }

    /// Bytes of all arrays.
    pub fn memory_bytes(&self) -> u64 {
        let bytes = size_of_val(&*self.col_indices)
            + size_of_val(&*self.values)
            + size_of_val(&*self.row_lengths);
        bytes as u64
    }
}

/// Slots per stored entry; 1 where there are no slots.
pub(crate) fn padding_ratio(slots: usize, entries: usize) -> f64 {
    if slots == 0 { 1.0 } else { slots as f64 / entries as f64 }
}

impl<T: Scalar> UnpaddedEll<T> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The columns and values of every row.
    pub fn row_arrays(&self) -> &[UnpaddedRow<T>] {
        &self.rows
    }

    /// Length of the longest row.
    pub fn width(&self) -> usize {
        self.rows.iter().map(|row| row.values.len()).max().unwrap_or(0)
    }

    /// Bytes of all arrays, the rows' own descriptors included.
    pub fn memory_bytes(&self) -> u64 {
        let bytes = size_of_val(&*self.rows) + self.entries * (size_of::<u32>() + T::BYTES);
        bytes as u64
    }
}
