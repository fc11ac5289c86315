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
    let (pointers, indices, values) = matrix.clone().into_raw_storage();
    assert!(
        pointers.first() == Some(&0),
        "a slice of a larger matrix has pointers that do not start at 0"
    );
    (pointers, indices, values)
}

/// Number of stored entries of row `row`.
pub fn row_length<T>(matrix: &CsrView<'_, T>, row: usize) -> usize {
    matrix.indptr().nnz_in_outer_sz(row)
}

/// Checks rows, columns and entries against the 32-bit limits shared by all formats.
///
/// # Errors
/// [`FormatError::TooLarge`] names the first size that does not fit.
pub fn check_limits(rows: u64, cols: u64, entries: u64) -> Result<(), FormatError> {
    // Every index is below its bound, so 2^32 - 1 rows still index with u32.
    let limit = u64::from(u32::MAX);
    for (what, size) in
        [("number of rows", rows), ("number of columns", cols), ("number of entries", entries)]
    {
        if size > limit {
            return Err(FormatError::TooLarge { what, size, limit });
        }
    }
    Ok(())
}
