//! A CSR matrix that a plan borrows or shares.

use std::sync::Arc;

use crate::{Csr, CsrView};

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
        Self { matrix }
    }
}

impl<T> CsrSource<'_, T> {
    /// The matrix.
    #[inline]
    pub fn view(&self) -> CsrView<'_, T> {
        match &self.matrix {
            Matrix::Borrowed(view) => *view,
            Matrix::Shared(matrix) => matrix.view(),
        }
    }
}

impl<'a, T> From<CsrView<'a, T>> for CsrSource<'a, T> {
    fn from(view: CsrView<'a, T>) -> Self {
        Self { matrix: Matrix::Borrowed(view) }
    }
}

impl<'a, T> From<&'a Csr<T>> for CsrSource<'a, T> {
    fn from(matrix: &'a Csr<T>) -> Self {
        matrix.view().into()
    }
}

impl<T> From<Arc<Csr<T>>> for CsrSource<'_, T> {
    fn from(matrix: Arc<Csr<T>>) -> Self {
        Self { matrix: Matrix::Shared(matrix) }
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
