//! Compressed sparse rows, owned and borrowed, with a structure that was checked once.

use std::ops::{AddAssign, Range};

use sprs::SpIndex;

pub use crate::check::check_limits;
use crate::check::{ROWS, check_compressed, check_unsorted};
use crate::convert::{coo_to_csr, merge_rows};
use crate::indices::{indices_to_u32, pointers_to_u32, triplets_to_u32};
use crate::shared_slice::Array;
use crate::{Coo, Csc, CscView, FormatError, Scalar, SharedSlice};

/// Compressed sparse rows (owning).
///
/// ```text
///     | 1 0 2 |      row_ptr   0   2 3     5
/// A = | 0 3 0 |      col_ind   0 2 1 0 2
///     | 4 0 5 |      values    1 2 3 4 5
/// ```
///
/// Explicit zeros are stored elements like any other. Values can be replaced in place
/// ([`Csr::values_mut`]), the pattern cannot.
///
/// # Invariants
/// `unsafe` code may rely on these; every constructor checks them or has them by construction.
/// - `row_ptr` has rows + 1 elements that ascend from 0 to nnz.
/// - `col_ind` and `values` have nnz elements.
/// - The columns of a row ascend strictly and are below cols.
/// - Rows and columns are below `u32::MAX`, nnz is at most `u32::MAX`.
///
/// # Other types
/// `try_from` takes matrices of `sprs` with any index type; [`Csr::into_sprs`] goes back. Both move
/// the arrays where the index type is `u32`, and convert the indices alone where it is not.
#[derive(Debug, Clone, PartialEq)]
pub struct Csr<T> {
    pub(crate) cols: usize,
    pub(crate) row_ptr: Array<u32>,
    pub(crate) col_ind: Array<u32>,
    pub(crate) values: Array<T>,
}

/// A borrowed CSR matrix; the layout and the invariants are those of [`Csr`].
#[derive(Debug, PartialEq)]
pub struct CsrView<'a, T> {
    pub(crate) cols: usize,
    pub(crate) row_ptr: &'a [u32],
    pub(crate) col_ind: &'a [u32],
    pub(crate) values: &'a [T],
}

// A derived Copy would ask for T: Copy.
impl<T> Clone for CsrView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for CsrView<'_, T> {}

/// The accessors of both types; `$a` is the lifetime of borrowed arrays.
macro_rules! accessors {
    ([$($generics:tt)*] $matrix:ty $(, $a:lifetime)?) => {
        impl<$($generics)*> $matrix {
            /// Number of rows.
            #[inline]
            pub fn rows(&self) -> usize {
                self.row_ptr.len() - 1
            }

            /// Number of columns.
            #[inline]
            pub fn cols(&self) -> usize {
                self.cols
            }

            /// (rows, columns).
            pub fn shape(&self) -> (usize, usize) {
                (self.rows(), self.cols)
            }

            /// Number of stored entries, explicit zeros included.
            #[inline]
            pub fn nnz(&self) -> usize {
                self.col_ind.len()
            }

            /// The start of each row in the other two arrays, and the end of the last row.
            #[inline]
            pub fn row_ptr(&self) -> &$($a)? [u32] {
                &*self.row_ptr
            }

            /// Column of each entry.
            #[inline]
            pub fn col_ind(&self) -> &$($a)? [u32] {
                &*self.col_ind
            }

            /// Value of each entry.
            #[inline]
            pub fn values(&self) -> &$($a)? [T] {
                &*self.values
            }
        }
    };
}

accessors!([T] Csr<T>);
accessors!(['a, T] CsrView<'a, T>, 'a);

impl<T> Csr<T> {
    /// Takes the arrays of a `shape` = (rows, columns) matrix in O(rows + nnz).
    ///
    /// # Errors
    /// Arrays that break one of the invariants; [`FormatError::Unsorted`] names the row whose
    /// columns do not ascend, which [`Csr::from_unsorted`] accepts.
    pub fn new(
        shape: (usize, usize),
        row_ptr: Vec<u32>,
        col_ind: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        CsrView::new(shape, &row_ptr, &col_ind, &values)?;
        Ok(Self::of_arrays(shape.1, row_ptr, col_ind, values))
    }

    /// As [`Csr::new`], with arrays that stay where they are. What overwrites or moves the arrays
    /// ([`Csr::values_mut`], [`Csr::into_arrays`]) copies them first.
    ///
    /// # Errors
    /// As [`Csr::new`].
    pub fn from_shared(
        shape: (usize, usize),
        row_ptr: SharedSlice<u32>,
        col_ind: SharedSlice<u32>,
        values: SharedSlice<T>,
    ) -> Result<Self, FormatError> {
        CsrView::new(shape, &row_ptr, &col_ind, &values)?;
        let (row_ptr, col_ind) = (Array::Shared(row_ptr), Array::Shared(col_ind));
        Ok(Self { cols: shape.1, row_ptr, col_ind, values: Array::Shared(values) })
    }

    /// The arrays have the invariants of the type.
    pub(crate) fn of_arrays(
        cols: usize,
        row_ptr: Vec<u32>,
        col_ind: Vec<u32>,
        values: Vec<T>,
    ) -> Self {
        Self { cols, row_ptr: row_ptr.into(), col_ind: col_ind.into(), values: values.into() }
    }

    /// As [`Csr::new`], without the check.
    ///
    /// # Safety
    /// The arrays have the invariants of the type.
    pub unsafe fn new_unchecked(
        shape: (usize, usize),
        row_ptr: Vec<u32>,
        col_ind: Vec<u32>,
        values: Vec<T>,
    ) -> Self {
        debug_assert_eq!(
            check_compressed(&ROWS, shape, (&row_ptr, &col_ind), values.len()),
            Ok(())
        );
        Self::of_arrays(shape.1, row_ptr, col_ind, values)
    }

    /// A `rows` x `cols` matrix without entries.
    ///
    /// # Errors
    /// Sizes beyond 32 bits.
    pub fn empty(rows: usize, cols: usize) -> Result<Self, FormatError> {
        check_limits(rows as u64, cols as u64, 0)?;
        Self::new((rows, cols), vec![0; rows + 1], Vec::new(), Vec::new())
    }

    /// Borrows the matrix.
    pub fn view(&self) -> CsrView<'_, T> {
        let Self { cols, row_ptr, col_ind, values } = self;
        CsrView { cols: *cols, row_ptr, col_ind, values }
    }

    /// Columns and values of row `row`.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, row: usize) -> (&[u32], &[T]) {
        self.view().row(row)
    }

    /// The stored entry at (`row`, `col`), by binary search.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, row: usize, col: usize) -> Option<&T> {
        self.view().get(row, col)
    }

    /// (row, column, value) of every entry, row after row.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, &T)> {
        self.view().iter()
    }

    /// The same pattern with the values that `value` makes of these.
    pub fn map<U>(&self, value: impl FnMut(&T) -> U) -> Csr<U> {
        let Self { cols, row_ptr, col_ind, values } = self;
        let (row_ptr, col_ind) = (row_ptr.clone(), col_ind.clone());
        let values = values.iter().map(value).collect::<Vec<_>>().into();
        Csr { cols: *cols, row_ptr, col_ind, values }
    }

    /// Bytes of the three arrays.
    pub fn memory_bytes(&self) -> u64 {
        self.view().memory_bytes()
    }

    /// The transpose as a CSC matrix, without a copy.
    pub fn transposed(&self) -> CscView<'_, T> {
        self.view().transposed()
    }

    /// The transpose as a CSC matrix, without a copy.
    pub fn into_transposed(self) -> Csc<T> {
        Csc { transposed: self }
    }
}

impl<T: Clone> Csr<T> {
    /// Mutable value of each entry; [shared](Csr::from_shared) values are copied first.
    pub fn values_mut(&mut self) -> &mut [T] {
        self.values.make_mut()
    }

    /// Exchanges the values of the entries for others, without a copy; [shared](Csr::from_shared) values are
    /// copied into `values`.
    ///
    /// # Errors
    /// [`FormatError::LengthMismatch`] for another number of values than entries; nothing has changed then.
    pub fn swap_values(&mut self, values: &mut Vec<T>) -> Result<(), FormatError> {
        let (expected, found) = (self.nnz(), values.len());
        if expected != found {
            return Err(FormatError::LengthMismatch { what: "values", expected, found });
        }
        self.values.swap(values);
        Ok(())
    }

    /// `row_ptr`, `col_ind`, `values`; [shared](Csr::from_shared) arrays are copied.
    pub fn into_arrays(self) -> (Vec<u32>, Vec<u32>, Vec<T>) {
        (self.row_ptr.into_vec(), self.col_ind.into_vec(), self.values.into_vec())
    }
}

impl<T: Copy + AddAssign + Send + Sync> Csr<T> {
    /// Takes rows whose columns may be in any order and repeat: sorts them, and sums the values of
    /// equal columns in their stored order. Indices and pointers of any type of `sprs`, signed ones
    /// included; pointers may start above 0, as those of a slice of a larger matrix do.
    ///
    /// # Errors
    /// As [`Csr::new`], order apart; an index that does not fit 32 bits.
    pub fn from_unsorted<I: SpIndex + 'static, P: SpIndex + 'static>(
        shape: (usize, usize),
        row_ptr: Vec<P>,
        col_ind: Vec<I>,
        values: Vec<T>,
    ) -> Result<Self, FormatError> {
        let row_ptr = pointers_to_u32(&ROWS, shape, row_ptr, values.len())?;
        let col_ind = indices_to_u32(&ROWS, col_ind)?;
        check_unsorted(&ROWS, shape, (&row_ptr, &col_ind), values.len())?;
        let (row_ptr, col_ind, values) = merge_rows((row_ptr, col_ind, values));
        // SAFETY: checked all but the order inside the rows, which the merge establishes.
        Ok(unsafe { Self::new_unchecked(shape, row_ptr, col_ind, values) })
    }
}

impl<T: Scalar> Csr<T> {
    /// Compresses (row, column, value) triplets in any order; the values of equal positions are
    /// summed in their order.
    ///
    /// # Errors
    /// An index outside the matrix, sizes beyond 32 bits.
    pub fn from_triplets<I: SpIndex>(
        shape: (usize, usize),
        triplets: impl IntoIterator<Item = (I, I, T)>,
    ) -> Result<Self, FormatError> {
        let (row_ind, col_ind, values) = triplets_to_u32(triplets)?;
        Ok(coo_to_csr(&Coo::new(shape.0, shape.1, row_ind, col_ind, values)?))
    }
}

impl<'a, T> CsrView<'a, T> {
    /// Borrows the arrays of a `shape` = (rows, columns) matrix, checked in O(rows + nnz).
    ///
    /// # Errors
    /// As [`Csr::new`].
    pub fn new(
        shape: (usize, usize),
        row_ptr: &'a [u32],
        col_ind: &'a [u32],
        values: &'a [T],
    ) -> Result<Self, FormatError> {
        check_compressed(&ROWS, shape, (row_ptr, col_ind), values.len())?;
        Ok(Self { cols: shape.1, row_ptr, col_ind, values })
    }

    /// As [`CsrView::new`], without the check.
    ///
    /// # Safety
    /// The arrays have the invariants of the type.
    pub unsafe fn new_unchecked(
        shape: (usize, usize),
        row_ptr: &'a [u32],
        col_ind: &'a [u32],
        values: &'a [T],
    ) -> Self {
        debug_assert_eq!(check_compressed(&ROWS, shape, (row_ptr, col_ind), values.len()), Ok(()));
        Self { cols: shape.1, row_ptr, col_ind, values }
    }

    /// The positions of the entries of row `row` in `col_ind` and `values`.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn row_range(&self, row: usize) -> Range<usize> {
        self.row_ptr[row] as usize..self.row_ptr[row + 1] as usize
    }

    /// Columns and values of row `row`.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [T]) {
        let range = self.row_range(row);
        (&self.col_ind[range.clone()], &self.values[range])
    }

    /// The stored entry at (`row`, `col`), by binary search.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn get(&self, row: usize, col: usize) -> Option<&'a T> {
        let (cols, values) = self.row(row);
        let at = cols.binary_search(&u32::try_from(col).ok()?).ok()?;
        Some(&values[at])
    }

    /// (row, column, value) of every entry, row after row.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, &'a T)> + use<'a, T> {
        let view = *self;
        (0..view.rows()).flat_map(move |row| {
            let (cols, values) = view.row(row);
            cols.iter().zip(values).map(move |(&col, value)| (row, col as usize, value))
        })
    }

    /// Bytes of the three arrays.
    pub fn memory_bytes(&self) -> u64 {
        (size_of_val(self.row_ptr) + size_of_val(self.col_ind) + size_of_val(self.values)) as u64
    }

    /// The transpose as a CSC matrix, without a copy.
    pub fn transposed(self) -> CscView<'a, T> {
        CscView { transposed: self }
    }

    /// A copy.
    pub fn to_owned(self) -> Csr<T>
    where
        T: Clone,
    {
        let Self { cols, row_ptr, col_ind, values } = self;
        Csr::of_arrays(cols, row_ptr.to_vec(), col_ind.to_vec(), values.to_vec())
    }
}

impl<'a, T> From<&'a Csr<T>> for CsrView<'a, T> {
    fn from(matrix: &'a Csr<T>) -> Self {
        matrix.view()
    }
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
