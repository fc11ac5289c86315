//! CSR to CSC and back (transposition) by a parallel counting sort. `spm-cpu` has faster kernels.

use super::coo_csr::compressed;
use super::counting_sort::counting_sort;
use crate::{Csc, CscView, Csr, CsrView, Scalar};

/// Regroups the entries by column: a stable counting sort.
pub fn csr_to_csc<T: Scalar>(matrix: CsrView<'_, T>) -> Csc<T> {
    transpose(matrix).into_transposed()
}

/// Regroups the entries by row.
pub fn csc_to_csr<T: Scalar>(matrix: CscView<'_, T>) -> Csr<T> {
    transpose(matrix.transposed())
}

/// The CSR form of the transpose.
fn transpose<T: Scalar>(matrix: CsrView<'_, T>) -> Csr<T> {
    let rows = |range| matrix.rows_of_entries(range);
    let arrays = counting_sort(matrix.cols(), matrix.col_ind(), rows, matrix.values());
    compressed((matrix.cols(), matrix.rows()), arrays)
}
