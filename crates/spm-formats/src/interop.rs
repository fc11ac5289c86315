//! Conversions from and to the matrices of `sprs`.
//!
//! Safe code can break the invariants of `sprs` matrices (`modify` checks after it has mutated), so
//! every conversion from them checks the structure.

use sprs::{CompressedStorage, CsMatI, CsMatViewI, SpIndex};

use crate::check::{Axes, COLUMNS, ROWS};
use crate::indices::{indices_to_u32, pointers_to_u32};
use crate::{Csc, CscView, Csr, CsrView, FormatError};

/// Checks the orientation of a matrix.
fn require(expected: CompressedStorage, found: CompressedStorage) -> Result<(), FormatError> {
    let name = |storage| if storage == CompressedStorage::CSR { "CSR" } else { "CSC" };
    if expected == found {
        return Ok(());
    }
    Err(FormatError::WrongStorage { expected: name(expected), found: name(found) })
}

/// Pointers, indices and values of a matrix of `shape` = (outer, inner).
type Arrays<T> = (Vec<u32>, Vec<u32>, Vec<T>);

/// The arrays of `matrix`, with indices of 32 bits and pointers from 0.
fn to_arrays<T, I: SpIndex + 'static, P: SpIndex + 'static>(
    axes: &Axes,
    shape: (usize, usize),
    (pointers, indices, values): (Vec<P>, Vec<I>, Vec<T>),
) -> Result<Arrays<T>, FormatError> {
    let pointers = pointers_to_u32(axes, shape, pointers, values.len())?;
    Ok((pointers, indices_to_u32(axes, indices)?, values))
}

/// Moves the values, and the indices too where they are `u32`; pointers that do not begin at 0, as
/// those of `slice_outer(..).to_owned()`, are counted from the first one.
impl<T, I: SpIndex + 'static, P: SpIndex + 'static> TryFrom<CsMatI<T, I, P>> for Csr<T> {
    type Error = FormatError;

    fn try_from(matrix: CsMatI<T, I, P>) -> Result<Self, FormatError> {
        require(CompressedStorage::CSR, matrix.storage())?;
        let shape = matrix.shape();
        let (row_ptr, col_ind, values) = to_arrays(&ROWS, shape, matrix.into_raw_storage())?;
        Self::new(shape, row_ptr, col_ind, values)
    }
}

/// As for [`Csr`].
impl<T, I: SpIndex + 'static, P: SpIndex + 'static> TryFrom<CsMatI<T, I, P>> for Csc<T> {
    type Error = FormatError;

    fn try_from(matrix: CsMatI<T, I, P>) -> Result<Self, FormatError> {
        require(CompressedStorage::CSC, matrix.storage())?;
        let (rows, cols) = matrix.shape();
        let (col_ptr, row_ind, values) =
            to_arrays(&COLUMNS, (cols, rows), matrix.into_raw_storage())?;
        Self::new((rows, cols), col_ptr, row_ind, values)
    }
}

/// Copies; slices of a larger matrix included.
impl<T: Clone, I: SpIndex + 'static, P: SpIndex + 'static> TryFrom<CsMatViewI<'_, T, I, P>>
    for Csr<T>
{
    type Error = FormatError;

    fn try_from(matrix: CsMatViewI<'_, T, I, P>) -> Result<Self, FormatError> {
        require(CompressedStorage::CSR, matrix.storage())?;
        matrix.to_owned().try_into()
    }
}

/// Copies; slices of a larger matrix included.
impl<T: Clone, I: SpIndex + 'static, P: SpIndex + 'static> TryFrom<CsMatViewI<'_, T, I, P>>
    for Csc<T>
{
    type Error = FormatError;

    fn try_from(matrix: CsMatViewI<'_, T, I, P>) -> Result<Self, FormatError> {
        require(CompressedStorage::CSC, matrix.storage())?;
        matrix.to_owned().try_into()
    }
}

/// Refuses a slice of a larger matrix, whose pointers do not begin at 0.
fn whole(axes: &Axes, pointers: &[u32]) -> Result<(), FormatError> {
    if pointers.first().is_none_or(|&first| first == 0) {
        return Ok(());
    }
    let expected = "0; a slice of a larger matrix is converted to an owning type";
    Err(FormatError::InvalidStructure { what: axes.pointers, position: 0, expected })
}

/// Borrows; a slice of a larger matrix is refused: `Csr::try_from` copies it.
impl<'a, T> TryFrom<CsMatViewI<'a, T, u32>> for CsrView<'a, T> {
    type Error = FormatError;

    fn try_from(matrix: CsMatViewI<'a, T, u32>) -> Result<Self, FormatError> {
        require(CompressedStorage::CSR, matrix.storage())?;
        let shape = matrix.shape();
        let (row_ptr, col_ind, values) = matrix.into_raw_storage();
        whole(&ROWS, row_ptr)?;
        Self::new(shape, row_ptr, col_ind, values)
    }
}

/// As for [`CsrView`].
impl<'a, T> TryFrom<CsMatViewI<'a, T, u32>> for CscView<'a, T> {
    type Error = FormatError;

    fn try_from(matrix: CsMatViewI<'a, T, u32>) -> Result<Self, FormatError> {
        require(CompressedStorage::CSC, matrix.storage())?;
        let shape = matrix.shape();
        let (col_ptr, row_ind, values) = matrix.into_raw_storage();
        whole(&COLUMNS, col_ptr)?;
        Self::new(shape, col_ptr, row_ind, values)
    }
}

/// Borrows.
impl<'a, T> TryFrom<&'a CsMatI<T, u32>> for CsrView<'a, T> {
    type Error = FormatError;

    fn try_from(matrix: &'a CsMatI<T, u32>) -> Result<Self, FormatError> {
        matrix.view().try_into()
    }
}

/// Borrows.
impl<'a, T> TryFrom<&'a CsMatI<T, u32>> for CscView<'a, T> {
    type Error = FormatError;

    fn try_from(matrix: &'a CsMatI<T, u32>) -> Result<Self, FormatError> {
        matrix.view().try_into()
    }
}

impl<T: Clone> Csr<T> {
    /// The same matrix as a type of `sprs`, arrays moved; [shared](Csr::from_shared) arrays are copied.
    pub fn into_sprs(self) -> CsMatI<T, u32> {
        let shape = self.shape();
        let (row_ptr, col_ind, values) = self.into_arrays();
        // SAFETY: the invariants of Csr are those of sprs.
        unsafe { CsMatI::new_unchecked(CompressedStorage::CSR, shape, row_ptr, col_ind, values) }
    }
}

impl<T: Clone> Csc<T> {
    /// The same matrix as a type of `sprs`, arrays moved.
    pub fn into_sprs(self) -> CsMatI<T, u32> {
        self.into_transposed().into_sprs().transpose_into()
    }
}

impl<'a, T> CsrView<'a, T> {
    /// The same matrix as a view of `sprs`.
    pub fn as_sprs(self) -> CsMatViewI<'a, T, u32> {
        let Self { row_ptr, col_ind, values, .. } = self;
        let (storage, shape) = (CompressedStorage::CSR, self.shape());
        // SAFETY: the invariants of CsrView are those of sprs.
        unsafe { CsMatViewI::new_unchecked(storage, shape, row_ptr, col_ind, values) }
    }
}

impl<'a, T> CscView<'a, T> {
    /// The same matrix as a view of `sprs`.
    pub fn as_sprs(self) -> CsMatViewI<'a, T, u32> {
        self.transposed().as_sprs().transpose_into()
    }
}
