//! ELLPACK: every row is padded to the length of the longest row, in two rectangular arrays.

use crate::check::{check_length, check_limits};
use crate::padding::{Padded, padded_accessors};
use crate::{FormatError, Scalar};

/// The contiguous dimension of a rectangular array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// The stored elements of one row are contiguous (R0 2.3.1, for CPU cores).
    RowMajor,
    /// The elements of one column of the array are contiguous (R0 2.3.2, for coalesced GPU reads).
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
/// `*` is padding: value 0, and the column of the row's last entry (R0 2.3.1), so that it reads an
/// element of x that is likely to be cached. In a row without entries the column is 0.
///
/// Stored element `s` of row `r` is at `r * pitch + s` (row-major, pitch >= width) or `s * pitch +
/// r` (column-major, pitch >= rows). A pitch above the minimum aligns each row or column for the
/// device, as `cudaMallocPitch` does in R1 2.1.2; the gap holds column 0 and value 0.
///
/// Row lengths are always stored, because a kernel that multiplies the padding must not add `0 x
/// inf`.
///
/// # Invariants
/// `unsafe` code may rely on these; every constructor upholds them.
/// - Every column index, padding and gap included, is < cols, or the matrix has no stored elements.
/// - Both arrays have rows x pitch (row-major) or width x pitch (column-major) elements; the pitch
///   is at least width or rows. Where a stored element exists, `position(row, stored element)` is
///   inside the arrays.
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
    pub(crate) col_ind: Vec<u32>,
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
    pub col_ind: Box<[u32]>,
    /// One value per column.
    pub values: Box<[T]>,
}

padded_accessors!(Ell);

impl<T: Scalar> Ell<T> {
    /// Takes the arrays of a `shape` = (rows, columns) matrix; `extent` = (width, pitch).
    ///
    /// # Errors
    /// Arrays that break one of the invariants, sizes beyond 32 bits.
    pub fn new(
        shape: (usize, usize),
        layout: Layout,
        extent: (usize, usize),
        row_lengths: Vec<u32>,
        col_ind: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        let ((rows, cols), (width, pitch)) = (shape, extent);
        let arrays =
            Padded { rows, cols, row_lengths: &row_lengths, col_ind: &col_ind, values: &values };
        let entries = arrays.check_sizes()?;
        // Run by run: (least pitch, number of runs).
        let (run, runs) = match layout {
            Layout::RowMajor => (width, rows),
            Layout::ColumnMajor => (rows, width),
        };
        if pitch < run {
            let expected = "at least the width (row-major) or the rows (column-major)";
            return Err(FormatError::InvalidParameter { what: "pitch", expected, found: pitch });
        }
        arrays.check_stored_elements(pitch as u128 * runs as u128)?;
        if let Some(position) = row_lengths.iter().position(|&length| length as usize > width) {
            let (what, expected) = ("row length", "at most the width");
            return Err(FormatError::InvalidStructure { what, position, expected });
        }
        match layout {
            // The gap is checked as padding: stored elements after the width, or rows after the last.
            Layout::RowMajor => {
                for (row, &length) in row_lengths.iter().enumerate() {
                    arrays.check_lane(length as usize, pitch, row * pitch, 1)?;
                }
            }
            Layout::ColumnMajor if width > 0 => {
                let lengths = row_lengths.iter().copied().chain(std::iter::repeat(0));
                for (row, length) in lengths.take(pitch).enumerate() {
                    arrays.check_lane(length as usize, width, row, pitch)?;
                }
            }
            Layout::ColumnMajor => {}
        }
        Ok(Self { rows, cols, entries, width, pitch, layout, row_lengths, col_ind, values })
    }

    /// Stored elements of each row, at least the length of the longest row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Elements from the start of one row (row-major) or column (column-major) to the next.
    pub fn pitch(&self) -> usize {
        self.pitch
    }

    /// The contiguous dimension.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Position of stored element `element`, below the width, of row `row` in both arrays.
    #[inline]
    pub fn position(&self, row: usize, element: usize) -> usize {
        match self.layout {
            Layout::RowMajor => row * self.pitch + element,
            Layout::ColumnMajor => element * self.pitch + row,
        }
    }
}

impl<T: Scalar> UnpaddedEll<T> {
    /// Takes the rows of a matrix with `cols` columns.
    ///
    /// # Errors
    /// Rows that break one of the invariants, sizes beyond 32 bits.
    pub fn new(cols: usize, rows: Vec<UnpaddedRow<T>>) -> Result<Self, FormatError> {
        let mut entries = 0;
        for row in &rows {
            check_length("column indices", row.values.len(), row.col_ind.len())?;
            if let Some(i) = row.col_ind.windows(2).position(|pair| pair[0] >= pair[1]) {
                let (what, expected) = ("column index", "above the one before it in the row");
                let position = entries + i + 1;
                return Err(FormatError::InvalidStructure { what, position, expected });
            }
            // Ascending, so the last one is the largest.
            if let Some(&index) = row.col_ind.last().filter(|&&col| col as usize >= cols) {
                let entry = entries + row.col_ind.len() - 1;
                return Err(FormatError::IndexOutOfBounds {
                    entry,
                    axis: "column",
                    index,
                    bound: cols,
                });
            }
            entries += row.values.len();
        }
        check_limits(rows.len() as u64, cols as u64, entries as u64)?;
        Ok(Self { cols, entries, rows })
    }

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
        Self::bytes_of(self.rows(), self.entries)
    }

    /// Bytes that a matrix with so many rows and entries takes; saturates at `u64::MAX`.
    pub fn bytes_of(rows: usize, entries: usize) -> u64 {
        let row = size_of::<UnpaddedRow<T>>() as u64;
        let entry = (size_of::<u32>() + T::BYTES) as u64;
        (rows as u64).saturating_mul(row).saturating_add((entries as u64).saturating_mul(entry))
    }
}
