//! Matrices of nalgebra-sparse.

use std::sync::Arc;

use nalgebra_sparse::{CooMatrix, CscMatrix, CsrMatrix};
use spm_formats::{Csc, Csr, Scalar};

use crate::{Error, IntoCsr, from_csc, from_csr, from_triplets};

/// Converts the indices.
impl<T: Scalar> IntoCsr for CsrMatrix<T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        let shape = (self.nrows(), self.ncols());
        let (row_ptr, col_ind, values) = self.disassemble();
        Csr::from_unsorted(shape, row_ptr, col_ind, values)?.into_csr()
    }
}

/// Converts the indices, copies the values.
impl<T: Scalar> IntoCsr for &CsrMatrix<T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        let (row_ptr, col_ind, values) = self.csr_data();
        from_csr((self.nrows(), self.ncols()), row_ptr, col_ind, values)?.into_csr()
    }
}

/// Converts the indices, then regroups the entries by row.
impl<T: Scalar> IntoCsr for CscMatrix<T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        let shape = (self.nrows(), self.ncols());
        let (col_ptr, row_ind, values) = self.disassemble();
        Csc::from_unsorted(shape, col_ptr, row_ind, values)?.into_csr()
    }
}

/// Converts the indices, then regroups the entries by row.
impl<T: Scalar> IntoCsr for &CscMatrix<T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        let (col_ptr, row_ind, values) = self.csc_data();
        from_csc((self.nrows(), self.ncols()), col_ptr, row_ind, values)?.into_csr()
    }
}

/// Sorts the triplets and sums those with equal positions.
impl<T: Scalar> IntoCsr for &CooMatrix<T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        let triplets = self.triplet_iter().map(|(row, col, &value)| (row, col, value));
        from_triplets((self.nrows(), self.ncols()), triplets)?.into_csr()
    }
}

/// Sorts the triplets and sums those with equal positions.
impl<T: Scalar> IntoCsr for CooMatrix<T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        (&self).into_csr()
    }
}
