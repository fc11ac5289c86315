//! CSR to CSC and back, which is transposition: correct and parallel, not the fastest one.

use super::coo_csr::compressed;
use super::counting_sort::counting_sort;
use super::rows::Rows;
use crate::{Csc, CscView, Csr, CsrView, FormatError, Scalar};

/// Regroups the entries by column: a stable counting sort.
///
/// # Errors
/// A CSC matrix.
pub fn csr_to_csc<T: Scalar>(matrix: CsrView<'_, T>) -> Result<Csc<T>, FormatError> {
    let matrix = Rows::new(matrix)?;
    let (cols, values) = matrix.arrays();
    let arrays = counting_sort(matrix.cols, cols, |range| matrix.rows_of_entries(range), values);
    Ok(compressed(sprs::CSC, (matrix.rows(), matrix.cols), arrays))
}

/// Regroups the entries by row.
///
/// # Errors
/// A CSR matrix.
pub fn csc_to_csr<T: Scalar>(matrix: CscView<'_, T>) -> Result<Csr<T>, FormatError> {
    if !matrix.is_csc() {
        return Err(FormatError::WrongStorage { expected: "CSC", found: "CSR" });
    }
    Ok(csr_to_csc(matrix.transpose_into())?.transpose_into())
}
