//! Compressed sparse columns, owned and borrowed: the CSR of the transpose.

use std::ops::AddAssign;

use sprs::SpIndex;

use crate::check::{COLUMNS, check_compressed, check_unsorted};
use crate::convert::merge_rows;
use crate::indices::{indices_to_u32, pointers_to_u32};
use crate::{Csr, CsrView, FormatError};

/// Compressed sparse columns (owning).
///
/// ```text
///     | 1 0 2 |      col_ptr   0   2 3     5
/// A = | 0 3 0 |      row_ind   0 2 1 0 2
///     | 4 0 5 |      values    1 4 3 2 5
/// ```
///
/// The invariants are those of [`Csr`] with rows and columns exchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct Csc<T> {
    pub(crate) transposed: Csr<T>,
}

/// A borrowed CSC matrix; the layout and the invariants are those of [`Csc`].
#[derive(Debug, PartialEq)]
pub struct CscView<'a, T> {
    pub(crate) transposed: CsrView<'a, T>,
}

// A derived Copy would ask for T: Copy.
impl<T> Clone for CscView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for CscView<'_, T> {}

/// The accessors of both types; `$a` is the lifetime of borrowed arrays.
macro_rules! accessors {
    ([$($generics:tt)*] $matrix:ty $(, $a:lifetime)?) => {
        impl<$($generics)*> $matrix {
            /// Number of rows.
            pub fn rows(&self) -> usize {
                self.transposed.cols()
            }

            /// Number of columns.
            pub fn cols(&self) -> usize {
                self.transposed.rows()
            }

            /// (rows, columns).
            pub fn shape(&self) -> (usize, usize) {
                (self.rows(), self.cols())
            }

            /// Number of stored entries, explicit zeros included.
            pub fn nnz(&self) -> usize {
                self.transposed.nnz()
            }

            /// The start of each column in the other two arrays, and the end of the last column.
            pub fn col_ptr(&self) -> &$($a)? [u32] {
                self.transposed.row_ptr()
            }

            /// Row of each entry.
            pub fn row_ind(&self) -> &$($a)? [u32] {
                self.transposed.col_ind()
            }

            /// Value of each entry.
            pub fn values(&self) -> &$($a)? [T] {
                self.transposed.values()
            }

            /// Rows and values of column `col`.
            ///
            /// # Panics
            /// When there is no such column.
            pub fn col(&self, col: usize) -> (&$($a)? [u32], &$($a)? [T]) {
                self.transposed.row(col)
            }

            /// Bytes of the three arrays.
            pub fn memory_bytes(&self) -> u64 {
                self.transposed.memory_bytes()
            }
        }
    };
}

accessors!([T] Csc<T>);
accessors!(['a, T] CscView<'a, T>, 'a);

impl<T> Csc<T> {
    /// Takes the arrays of a `shape` = (rows, columns) matrix in O(columns + nnz).
    ///
    /// # Errors
    /// Arrays that break one of the invariants; [`FormatError::Unsorted`] names the column whose
    /// rows do not ascend, which [`Csc::from_unsorted`] accepts.
    pub fn new(
        shape: (usize, usize),
        col_ptr: Vec<u32>,
        row_ind: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        CscView::new(shape, &col_ptr, &row_ind, &values)?;
        Ok(Self { transposed: Csr::of_arrays(shape.0, col_ptr, row_ind, values) })
    }

    /// Borrows the matrix.
    pub fn view(&self) -> CscView<'_, T> {
        self.transposed.transposed()
    }

    /// (row, column, value) of every entry, column after column.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, &T)> {
        self.view().iter()
    }

    /// The transpose as a CSR matrix, without a copy.
    pub fn transposed(&self) -> CsrView<'_, T> {
        self.transposed.view()
    }

    /// The transpose as a CSR matrix, without a copy.
    pub fn into_transposed(self) -> Csr<T> {
        self.transposed
    }
}

impl<T: Clone> Csc<T> {
    /// Mutable value of each entry.
    pub fn values_mut(&mut self) -> &mut [T] {
        self.transposed.values_mut()
    }

    /// `col_ptr`, `row_ind`, `values`.
    pub fn into_arrays(self) -> (Vec<u32>, Vec<u32>, Vec<T>) {
        self.transposed.into_arrays()
    }
}

impl<T: Copy + AddAssign + Send + Sync> Csc<T> {
    /// As [`Csr::from_unsorted`], column by column.
    ///
    /// # Errors
    /// As [`Csc::new`], order apart; an index that does not fit 32 bits.
    pub fn from_unsorted<I: SpIndex + 'static, P: SpIndex + 'static>(
        shape: (usize, usize),
        col_ptr: Vec<P>,
        row_ind: Vec<I>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        let swapped = (shape.1, shape.0);
        let col_ptr = pointers_to_u32(&COLUMNS, swapped, col_ptr, values.len())?;
        let row_ind = indices_to_u32(&COLUMNS, row_ind)?;
        check_unsorted(&COLUMNS, swapped, (&col_ptr, &row_ind), values.len())?;
        let (col_ptr, row_ind, values) = merge_rows((col_ptr, row_ind, values));
        // SAFETY: checked all but the order inside the columns, which the merge establishes.
        let transposed = unsafe { Csr::new_unchecked(swapped, col_ptr, row_ind, values) };
        Ok(Self { transposed })
    }
}

impl<'a, T> CscView<'a, T> {
    /// Borrows the arrays of a `shape` = (rows, columns) matrix, checked in O(columns + nnz).
    ///
    /// # Errors
    /// As [`Csc::new`].
    pub fn new(
        shape: (usize, usize),
        col_ptr: &'a [u32],
        row_ind: &'a [u32],
        values: &'a [T],
    ) -> Result<Self, FormatError> {
        check_compressed(&COLUMNS, (shape.1, shape.0), (col_ptr, row_ind), values.len())?;
        Ok(Self {
            transposed: CsrView { cols: shape.0, row_ptr: col_ptr, col_ind: row_ind, values },
        })
    }

    /// (row, column, value) of every entry, column after column.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, &'a T)> + use<'a, T> {
        self.transposed.iter().map(|(col, row, value)| (row, col, value))
    }

    /// The transpose as a CSR matrix, without a copy.
    pub fn transposed(self) -> CsrView<'a, T> {
        self.transposed
    }

    /// A copy.
    pub fn to_owned(self) -> Csc<T>
    where
        T: Clone,
    {
        Csc { transposed: self.transposed.to_owned() }
    }
}

impl<'a, T> From<&'a Csc<T>> for CscView<'a, T> {
    fn from(matrix: &'a Csc<T>) -> Self {
        matrix.view()
    }
}
