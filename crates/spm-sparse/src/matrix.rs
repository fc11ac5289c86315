//! What an operator can be made of.

use std::sync::Arc;

use spm_formats::sprs::{CompressedStorage, CsMatI, CsMatViewI, SpIndex, TriMatI, TriMatViewI};
use spm_formats::{Coo, Csc, CscView, Csr, CsrView, Scalar, convert};

use crate::Error;

/// A matrix that an [`Operator`](crate::Operator) can be made of.
///
/// The table of the [crate documentation](crate#matrices) says what each implementation copies.
pub trait IntoCsr {
    /// Element type of the matrix.
    type Scalar: Scalar;

    /// The matrix in compressed rows.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more rows, columns or entries than 32-bit numbers count;
    /// [`Error::Matrix`] for arrays that are not those of a matrix.
    fn into_csr(self) -> Result<Arc<Csr<Self::Scalar>>, Error>;
}

/// Shares the matrix.
impl<T: Scalar> IntoCsr for Arc<Csr<T>> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        Ok(self)
    }
}

/// Moves the matrix.
impl<T: Scalar> IntoCsr for Csr<T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        Ok(Arc::new(self))
    }
}

/// Copies the matrix.
impl<T: Scalar> IntoCsr for CsrView<'_, T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        self.to_owned().into_csr()
    }
}

/// Regroups the entries by row.
impl<T: Scalar> IntoCsr for Csc<T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        self.view().into_csr()
    }
}

/// Regroups the entries by row.
impl<T: Scalar> IntoCsr for CscView<'_, T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        convert::csc_to_csr(self).into_csr()
    }
}

/// Sorts the entries and sums those with equal positions.
impl<T: Scalar> IntoCsr for Coo<T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        convert::coo_to_csr(&self).into_csr()
    }
}

/// Moves the values, and the indices where they are `u32`; in column storage regroups the entries.
impl<T: Scalar, I: SpIndex + 'static, P: SpIndex + 'static> IntoCsr for CsMatI<T, I, P> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        match self.storage() {
            CompressedStorage::CSR => Csr::try_from(self)?.into_csr(),
            CompressedStorage::CSC => Csc::try_from(self)?.into_csr(),
        }
    }
}

/// Copies the matrix; in column storage regroups the entries.
impl<T: Scalar, I: SpIndex + 'static, P: SpIndex + 'static> IntoCsr for CsMatViewI<'_, T, I, P> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        match self.storage() {
            CompressedStorage::CSR => Csr::try_from(self)?.into_csr(),
            CompressedStorage::CSC => Csc::try_from(self)?.into_csr(),
        }
    }
}

/// Copies the matrix; in column storage regroups the entries.
impl<T: Scalar, I: SpIndex + 'static, P: SpIndex + 'static> IntoCsr for &CsMatI<T, I, P> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        self.view().into_csr()
    }
}

/// Sorts the triplets and sums those with equal positions.
impl<T: Scalar, I: SpIndex> IntoCsr for TriMatViewI<'_, T, I> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        let places = self.row_inds().iter().zip(self.col_inds());
        let triplets = places.zip(self.data()).map(|((&row, &col), &value)| (row, col, value));
        from_triplets((self.rows(), self.cols()), triplets)?.into_csr()
    }
}

/// Sorts the triplets and sums those with equal positions.
impl<T: Scalar, I: SpIndex> IntoCsr for &TriMatI<T, I> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        self.view().into_csr()
    }
}

/// Sorts the triplets and sums those with equal positions.
impl<T: Scalar, I: SpIndex> IntoCsr for TriMatI<T, I> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        self.view().into_csr()
    }
}

/// The matrix of `shape` = (rows, columns) with these (row, column, value) triplets, in any order.
/// Values of equal positions are summed in their order. Indices of any integer type, from 0.
///
/// ```
/// let a = spm::from_triplets((2, 3), [(1, 2, 5.0), (0, 0, 1.0), (1, 2, 0.5)])?;
/// assert_eq!((a.nnz(), a.get(1, 2)), (2, Some(&5.5)));
/// # Ok::<(), spm::Error>(())
/// ```
///
/// # Errors
/// [`Error::Matrix`] for an index outside the matrix, [`Error::TooLarge`].
pub fn from_triplets<T: Scalar, I: SpIndex>(
    shape: (usize, usize),
    triplets: impl IntoIterator<Item = (I, I, T)>,
) -> Result<Csr<T>, Error> {
    Ok(Csr::from_triplets(shape, triplets)?)
}

/// The matrix of `shape` = (rows, columns) in compressed rows: the entries of row i are those at
/// `row_ptr[i]..row_ptr[i + 1]` of `col_ind` and `values`. Copies.
///
/// Indices and pointers of any integer types. The columns of a row may be in any order and repeat:
/// values of equal columns are summed. Pointers may start above 0, as those of a slice of a larger
/// matrix do.
///
/// ```
/// // Row 0 is not sorted.
/// let a = spm::from_csr((2, 3), &[0_i64, 2, 3], &[2_i32, 0, 1], &[2.0, 1.0, 3.0])?;
/// assert_eq!(a.row(0), (&[0, 2][..], &[1.0, 2.0][..]));
/// # Ok::<(), spm::Error>(())
/// ```
///
/// # Errors
/// [`Error::Matrix`] for arrays that do not fit together, [`Error::TooLarge`].
pub fn from_csr<T, P, I>(
    shape: (usize, usize),
    row_ptr: &[P],
    col_ind: &[I],
    values: &[T],
) -> Result<Csr<T>, Error>
where
    T: Scalar,
    P: SpIndex + 'static,
    I: SpIndex + 'static,
{
    let (row_ptr, col_ind) = (row_ptr.to_vec(), col_ind.to_vec());
    Ok(Csr::from_unsorted(shape, row_ptr, col_ind, values.to_vec())?)
}

/// As [`from_csr`], for compressed columns: the entries of column j are those at
/// `col_ptr[j]..col_ptr[j + 1]` of `row_ind` and `values`.
///
/// # Errors
/// As [`from_csr`].
pub fn from_csc<T, P, I>(
    shape: (usize, usize),
    col_ptr: &[P],
    row_ind: &[I],
    values: &[T],
) -> Result<Csc<T>, Error>
where
    T: Scalar,
    P: SpIndex + 'static,
    I: SpIndex + 'static,
{
    let (col_ptr, row_ind) = (col_ptr.to_vec(), row_ind.to_vec());
    Ok(Csc::from_unsorted(shape, col_ptr, row_ind, values.to_vec())?)
}
