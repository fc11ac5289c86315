//! CSR and CSC: `sprs` types with 32-bit indices and pointers.
//!
//! A user's `sprs` matrix goes in with no copy; raw slices go in through
//! [`CsrView::new`](sprs::CsMatBase::new) and its fallible siblings.
//!
//! ```text
//!     | 1 0 2 |      row pointers    0   2 3     5
//! A = | 0 3 0 |      column indices  0 2 1 0 2
//!     | 4 0 5 |      values          1 2 3 4 5
//! ```

use crate::check::{check_indices, check_length};
use crate::{FormatError, Scalar};

/// Compressed sparse rows (owning). Row pointers, column indices: `u32`.
///
/// `sprs` keeps one type for both orientations; [`require_csr`] tells them apart where it matters.
pub type Csr<T> = sprs::CsMatI<T, u32>;
/// Compressed sparse columns (owning): the same type, with columns as the outer dimension.
pub type Csc<T> = sprs::CsMatI<T, u32>;
/// A borrowed CSR matrix.
pub type CsrView<'a, T> = sprs::CsMatViewI<'a, T, u32>;
/// A borrowed CSC matrix.
pub type CscView<'a, T> = sprs::CsMatViewI<'a, T, u32>;

/// Checks that the compressed dimension is the rows.
///
/// # Errors
/// [`FormatError::WrongStorage`] for a CSC matrix.
pub fn require_csr<T>(matrix: &CsrView<'_, T>) -> Result<(), FormatError> {
    if matrix.is_csr() {
        Ok(())
    } else {
        Err(FormatError::WrongStorage { expected: "CSR", found: "CSC" })
    }
}

/// The three arrays of a CSR (or CSC) matrix as slices:
/// pointers (`outer + 1`, starting at 0), indices and values (one per stored entry).
///
/// # Panics
/// When the view is an outer slice of a larger matrix, so that its pointers do not start at 0;
/// [`sprs::CsMatBase::to_owned`] of the slice repairs that.
pub fn arrays<'a, T: Scalar>(matrix: &CsrView<'a, T>) -> (&'a [u32], &'a [u32], &'a [T]) {
    let (pointers, indices, values) = (*matrix).into_raw_storage();
    assert!(
        pointers.first() == Some(&0),
        "a slice of a larger matrix has pointers that do not start at 0"
    );
    (pointers, indices, values)
}

/// A borrowed CSR matrix whose structure has been verified, so that a kernel may index x by column
/// and walk the rows without bounds checks.
///
/// Invariants: `pointers` has `rows + 1` ascending elements from 0 to `col_indices.len()`;
/// `values` is as long as `col_indices`; every column index is below `cols`.
#[derive(Debug, Clone, Copy)]
pub struct CsrArrays<'a, T> {
    rows: usize,
    cols: usize,
    pointers: &'a [u32],
    col_indices: &'a [u32],
    values: &'a [T],
}

impl<'a, T: Scalar> CsrArrays<'a, T> {
    /// Verifies a view in O(rows + entries).
    ///
    /// The safe constructors of `sprs` promise most of this already; the unsafe ones, and views of
    /// a part of a matrix, do not.
    ///
    /// # Errors
    /// CSC storage, pointers that do not ascend from 0 to the number of entries, a column index
    /// outside the matrix.
    pub fn new(matrix: &CsrView<'a, T>) -> Result<Self, FormatError> {
        require_csr(matrix)?;
        let (pointers, col_indices, values) = (*matrix).into_raw_storage();
        Self::from_slices(matrix.rows(), matrix.cols(), pointers, col_indices, values)
    }

    /// Verifies raw slices; columns inside a row may be in any order and repeat.
    ///
    /// # Errors
    /// As [`CsrArrays::new`].
    pub fn from_slices(
        rows: usize,
        cols: usize,
        pointers: &'a [u32],
        col_indices: &'a [u32],
        values: &'a [T],
    ) -> Result<Self, FormatError> {
        check_limits(rows as u64, cols as u64, values.len() as u64)?;
        check_length("row pointers", rows + 1, pointers.len())?;
        check_length("column indices", values.len(), col_indices.len())?;
        let wrong = |position, expected| {
            Err(FormatError::InvalidStructure { what: "row pointers", position, expected })
        };
        if pointers[0] != 0 {
            return wrong(0, "0");
        }
        if let Some(row) = pointers.windows(2).position(|pair| pair[0] > pair[1]) {
            return wrong(row + 1, "at least the one before it");
        }
        if pointers[rows] as usize != values.len() {
            return wrong(rows, "the number of entries");
        }
        check_indices("column", col_indices, cols)?;
        Ok(Self { rows, cols, pointers, col_indices, values })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Row pointers, rows + 1.
    pub fn pointers(&self) -> &'a [u32] {
        self.pointers
    }

    /// Column of each entry.
    pub fn col_indices(&self) -> &'a [u32] {
        self.col_indices
    }

    /// Value of each entry.
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    /// Bytes of the three arrays.
    pub fn bytes(&self) -> u64 {
        (size_of_val(self.pointers) + size_of_val(self.col_indices) + size_of_val(self.values))
            as u64
    }
}

/// Checks rows, columns and entries against the 32-bit limits shared by all formats.
///
/// # Errors
/// [`FormatError::TooLarge`] names the first size that does not fit.
pub fn check_limits(rows: u64, cols: u64, entries: u64) -> Result<(), FormatError> {
    // rows + 1 pointers must be countable in the pointers' own type, for CSC too.
    let (limit, index_limit) = (u64::from(u32::MAX), u64::from(u32::MAX) - 1);
    for (what, size, limit) in [
        ("number of rows", rows, index_limit),
        ("number of columns", cols, index_limit),
        ("number of entries", entries, limit),
    ] {
        if size > limit {
            return Err(FormatError::TooLarge { what, size, limit });
        }
    }
    Ok(())
}

/// Row pointers of rows with these lengths: one more than there are rows. The caller has checked
/// that their sum fits 32 bits.
pub fn pointers_of(lengths: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut end = 0;
    let ends = lengths.map(|length| {
        end += length;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_that_a_kernel_could_trip_over_is_refused() {
        let check = |pointers: &[u32], columns: &[u32]| {
            let values = vec![1.0; columns.len()];
            let checked = CsrArrays::from_slices(2, 3, pointers, columns, &values);
            checked.map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[0, 1, 3], &[2, 0, 1]), Ok(()));
        for (pointers, columns, expected) in [
            (&[0, 1, 3][..], [3, 0, 1], "entry 0: column index 3 is outside 0..3"),
            (
                &[0, 4, 3],
                [2, 0, 1],
                "row pointers at position 2: must be at least the one before it",
            ),
            (&[0, 1, 2], [2, 0, 1], "row pointers at position 2: must be the number of entries"),
            (&[1, 1, 3], [2, 0, 1], "row pointers at position 0: must be 0"),
            (&[0, 3], [2, 0, 1], "row pointers: expected length 3, found 2"),
        ] {
            assert_eq!(check(pointers, &columns), Err(expected.to_owned()));
        }
        assert!(CsrArrays::<f64>::from_slices(0, 0, &[0], &[], &[]).is_ok());
    }
}
