//! A CSR matrix that a plan borrows or shares.

use std::sync::Arc;

use crate::{Csr, CsrView, FormatError};

/// A CSR matrix for a plan: borrowed, or shared so that the plan is `'static`.
///
/// ```
/// use std::sync::Arc;
/// use spm_formats::{Csr, CsrSource};
///
/// let a = Arc::new(Csr::new((1, 2), vec![0, 1], vec![1], vec![5.0])?);
/// let borrowed = CsrSource::from(a.view());
/// let shared: CsrSource<'static, f64> = CsrSource::from(&a);
/// assert_eq!(borrowed.view(), shared.view());
/// # Ok::<(), spm_formats::FormatError>(())
/// ```
#[derive(Debug)]
pub struct CsrSource<'a, T> {
    matrix: Matrix<'a, T>,
    /// Values that stand in for those of the matrix.
    values: Option<Arc<Vec<T>>>,
}

#[derive(Debug)]
enum Matrix<'a, T> {
    Borrowed(CsrView<'a, T>),
    Shared(Arc<Csr<T>>),
}

// A derived Clone would ask for T: Clone.
impl<T> Clone for CsrSource<'_, T> {
    fn clone(&self) -> Self {
        let matrix = match &self.matrix {
            Matrix::Borrowed(view) => Matrix::Borrowed(*view),
            Matrix::Shared(matrix) => Matrix::Shared(Arc::clone(matrix)),
        };
        Self { matrix, values: self.values.clone() }
    }
}

impl<T> CsrSource<'_, T> {
    /// The matrix.
    #[inline]
    pub fn view(&self) -> CsrView<'_, T> {
        let view = match &self.matrix {
            Matrix::Borrowed(view) => *view,
            Matrix::Shared(matrix) => matrix.view(),
        };
        match &self.values {
            Some(values) => CsrView { values, ..view },
            None => view,
        }
    }

    /// The same pattern with other values, in CSR order. No array is copied.
    ///
    /// # Errors
    /// [`FormatError::LengthMismatch`] for another number of values than the matrix has entries.
    pub fn with_values(&self, values: &Arc<Vec<T>>) -> Result<Self, FormatError> {
        let (expected, found) = (self.view().nnz(), values.len());
        if expected != found {
            return Err(FormatError::LengthMismatch { what: "values", expected, found });
        }
        Ok(Self { values: Some(Arc::clone(values)), ..self.clone() })
    }
}

impl<'a, T> From<CsrView<'a, T>> for CsrSource<'a, T> {
    fn from(view: CsrView<'a, T>) -> Self {
        Self { matrix: Matrix::Borrowed(view), values: None }
    }
}

impl<'a, T> From<&'a Csr<T>> for CsrSource<'a, T> {
    fn from(matrix: &'a Csr<T>) -> Self {
        matrix.view().into()
    }
}

impl<T> From<Arc<Csr<T>>> for CsrSource<'_, T> {
    fn from(matrix: Arc<Csr<T>>) -> Self {
        Self { matrix: Matrix::Shared(matrix), values: None }
    }
}

impl<T> From<&Arc<Csr<T>>> for CsrSource<'_, T> {
    fn from(matrix: &Arc<Csr<T>>) -> Self {
        Arc::clone(matrix).into()
    }
}

impl<T> From<Csr<T>> for CsrSource<'_, T> {
    fn from(matrix: Csr<T>) -> Self {
        Arc::new(matrix).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_values_stand_in_for_the_old_ones() {
        let a = Csr::new((2, 2), vec![0, 1, 2], vec![1, 0], vec![5.0, 6.0]).unwrap();
        let source = CsrSource::from(&a);
        let other = source.with_values(&Arc::new(vec![7.0, 8.0])).unwrap();
        assert_eq!(other.clone().view().values(), [7.0, 8.0]);
        assert_eq!(other.view().col_ind(), a.col_ind());
        assert_eq!(source.view(), a.view());
        let error = source.with_values(&Arc::new(vec![7.0])).unwrap_err();
        assert_eq!(error, FormatError::LengthMismatch { what: "values", expected: 2, found: 1 });
    }
}
