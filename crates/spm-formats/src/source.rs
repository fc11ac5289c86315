//! A CSR matrix that a plan borrows or shares.

use std::fmt;
use std::sync::Arc;

use crate::kernel::{PlanError, ProductPlan};
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

    /// The pattern with new values, before [`CsrSource::set_values`].
    ///
    /// # Errors
    /// [`FormatError::LengthMismatch`] for another number of values than the matrix has entries;
    /// [`PlanError::Values`] for a matrix to write into that this one does not share.
    pub fn view_with<'v>(&'v self, new: &'v NewValues<'_, T>) -> Result<CsrView<'v, T>, PlanError> {
        let (owner, values) = (new.owner(), new.get());
        let shares = |owner| match &self.matrix {
            Matrix::Borrowed(_) => false,
            Matrix::Shared(matrix) => Arc::ptr_eq(matrix, owner),
        };
        if owner.is_some_and(|owner| !shares(owner)) {
            return Err(PlanError::Values("the plan does not share the matrix"));
        }
        let view = self.view();
        let (expected, found) = (view.nnz(), values.len());
        if expected != found {
            return Err(FormatError::LengthMismatch { what: "values", expected, found }.into());
        }
        Ok(CsrView { values, ..view })
    }
}

impl<T: Copy> CsrSource<'_, T> {
    /// Takes new values for the pattern. `write` is called once, with the pattern and the new values, and with
    /// the values of the matrix where it has to overwrite them with the new ones.
    ///
    /// # Errors
    /// As [`CsrSource::view_with`]; nothing has changed then.
    pub fn set_values(
        &mut self,
        new: NewValues<'_, T>,
        write: impl FnOnce(CsrView<'_, T>, Option<&mut [T]>),
    ) -> Result<(), PlanError> {
        self.view_with(&new)?;
        match new {
            NewValues::Shared(values) => {
                write(CsrView { values, ..self.view() }, None);
                self.values = Some(Arc::clone(values));
            }
            NewValues::Into(owner, values) => self.write(owner, values, &mut Vec::new(), write),
            NewValues::Together(Together { owner, values, others }) => {
                self.write(owner, values, others, write);
            }
        }
        Ok(())
    }

    /// Has the values written while neither this source nor the plans of `others` share the matrix.
    fn write(
        &mut self,
        owner: &mut Arc<Csr<T>>,
        mut values: Replacement<'_, T>,
        others: &mut Plans<T>,
        write: impl FnOnce(CsrView<'_, T>, Option<&mut [T]>),
    ) {
        let shared = Unshared::new(self, owner);
        while let Some(mut plan) = others.pop() {
            let values = values.reborrow();
            let together = Together { owner: &mut *shared.owner, values, others: &mut *others };
            if plan.set_values(NewValues::Together(together)).is_ok() {
                // It has replaced those of the matrix.
                others.push(plan);
                return write(shared.owner.view(), None);
            }
        }
        let a = Arc::make_mut(shared.owner);
        match values {
            Replacement::Copied(values) => {
                let Csr { cols, row_ptr, col_ind, values: own } = a;
                write(CsrView { cols: *cols, row_ptr, col_ind, values }, Some(own.make_mut()));
            }
            swapped @ Replacement::Swapped(_) => {
                swapped.put_into(a);
                write(a.view(), None);
            }
        }
    }
}

/// A source without its reference to the matrix, so that the owner's may be the only one. It shares the
/// owner's matrix again when this is dropped, also by a panic: the plan relies on the pattern.
struct Unshared<'s, 'a, T> {
    source: &'s mut CsrSource<'a, T>,
    owner: &'s mut Arc<Csr<T>>,
}

impl<'s, 'a, T> Unshared<'s, 'a, T> {
    fn new(source: &'s mut CsrSource<'a, T>, owner: &'s mut Arc<Csr<T>>) -> Self {
        let empty = CsrView { cols: 0, row_ptr: &[0], col_ind: &[], values: &[] };
        source.matrix = Matrix::Borrowed(empty);
        Self { source, owner }
    }
}

impl<T> Drop for Unshared<'_, '_, T> {
    fn drop(&mut self) {
        *self.source = Arc::clone(self.owner).into();
    }
}

/// Values that take the place of those of a matrix.
#[derive(Debug)]
pub enum Replacement<'v, T> {
    /// They are copied.
    Copied(&'v [T]),
    /// The vector becomes the array of the matrix, and takes the former values.
    Swapped(&'v mut Vec<T>),
}

impl<T> Replacement<'_, T> {
    /// The new values.
    pub fn get(&self) -> &[T] {
        match self {
            Self::Copied(values) => values,
            Self::Swapped(values) => values,
        }
    }

    /// Puts them into a matrix with as many entries.
    ///
    /// # Panics
    /// For another number of values; nothing has changed then.
    pub fn put_into(self, a: &mut Csr<T>)
    where
        T: Clone,
    {
        assert_eq!(self.get().len(), a.nnz(), "values and entries");
        match self {
            Self::Copied(values) => a.values.make_mut().clone_from_slice(values),
            Self::Swapped(values) => a.values.swap(values),
        }
    }

    /// The same for a shorter time.
    pub fn reborrow(&mut self) -> Replacement<'_, T> {
        match self {
            Self::Copied(values) => Replacement::Copied(values),
            Self::Swapped(values) => Replacement::Swapped(values),
        }
    }
}

impl<'v, T> From<&'v [T]> for Replacement<'v, T> {
    fn from(values: &'v [T]) -> Self {
        Self::Copied(values)
    }
}

impl<'v, T> From<&'v mut Vec<T>> for Replacement<'v, T> {
    fn from(values: &'v mut Vec<T>) -> Self {
        Self::Swapped(values)
    }
}

/// New values for the pattern of a plan's matrix, in CSR order.
#[derive(Debug)]
pub enum NewValues<'v, T> {
    /// An array that a plan which reads the values in CSR order keeps, beside its matrix.
    Shared(&'v Arc<Vec<T>>),
    /// Values for the matrix that the plan shares: in place if nobody else shares it, otherwise in a copy, which
    /// takes its place.
    Into(&'v mut Arc<Csr<T>>, Replacement<'v, T>),
    /// The same for several plans that share one matrix; [`NewValues::together`] makes it.
    Together(Together<'v, T>),
}

/// Plans that own or share their matrices.
type Plans<T> = Vec<Box<dyn ProductPlan<T>>>;

/// Values for several plans. The fields are private: while a plan writes them, others rely on the pattern of a
/// matrix that they do not share.
pub struct Together<'v, T> {
    owner: &'v mut Arc<Csr<T>>,
    values: Replacement<'v, T>,
    others: &'v mut Plans<T>,
}

impl<T> fmt::Debug for Together<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Together").field("others", &self.others.len()).finish_non_exhaustive()
    }
}

impl<'v, T> NewValues<'v, T> {
    /// Values for a plan and for `others`, which all share the matrix `owner`: they come into it once, in
    /// place if nobody else shares it. A plan of `others` that does not take them is removed.
    pub fn together(
        owner: &'v mut Arc<Csr<T>>,
        values: Replacement<'v, T>,
        others: &'v mut Vec<Box<dyn ProductPlan<T>>>,
    ) -> Self {
        Self::Together(Together { owner, values, others })
    }

    /// The values.
    pub fn get(&self) -> &[T] {
        match self {
            Self::Shared(values) => values,
            Self::Into(_, values) | Self::Together(Together { values, .. }) => values.get(),
        }
    }

    /// The matrix that takes them, which the plan has to share.
    fn owner(&self) -> Option<&Arc<Csr<T>>> {
        match self {
            Self::Shared(_) => None,
            Self::Into(owner, _) | Self::Together(Together { owner, .. }) => Some(owner),
        }
    }

    /// Whether the values are copied into the matrix.
    pub fn are_copied(&self) -> bool {
        match self {
            Self::Shared(_) => false,
            Self::Into(_, values) | Self::Together(Together { values, .. }) => {
                matches!(values, Replacement::Copied(_))
            }
        }
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

    fn matrix() -> Csr<f64> {
        Csr::new((2, 2), vec![0, 1, 2], vec![1, 0], vec![5.0, 6.0]).unwrap()
    }

    fn copy(view: CsrView<'_, f64>, own: Option<&mut [f64]>) {
        assert_eq!(view.col_ind(), matrix().col_ind());
        own.into_iter().for_each(|own| own.copy_from_slice(view.values()));
    }

    #[test]
    fn new_values_stand_in_for_the_old_ones() {
        let a = matrix();
        let mut source = CsrSource::from(&a);
        let before = source.clone();
        let new = Arc::new(vec![7.0, 8.0]);
        source.set_values(NewValues::Shared(&new), copy).unwrap();
        assert_eq!(source.clone().view().values(), [7.0, 8.0]);
        assert!(std::ptr::eq(source.view().values(), new.as_slice()));
        assert_eq!(source.view().col_ind(), a.col_ind());
        assert_eq!(before.view(), a.view());
        let error = source.set_values(NewValues::Shared(&Arc::new(vec![7.0])), copy).unwrap_err();
        let expected = FormatError::LengthMismatch { what: "values", expected: 2, found: 1 };
        assert_eq!(error, expected.into());
    }

    #[test]
    fn new_values_are_written_into_a_shared_matrix() {
        let mut a = Arc::new(matrix());
        let mut source = CsrSource::from(&a);
        source.set_values(NewValues::Shared(&Arc::new(vec![1.0, 2.0])), copy).unwrap();
        let place = a.values().as_ptr();
        source.set_values(NewValues::Into(&mut a, [7.0, 8.0].as_slice().into()), copy).unwrap();
        assert_eq!((source.view().values(), a.values()), (&[7.0, 8.0][..], &[7.0, 8.0][..]));
        assert_eq!((a.values().as_ptr(), source.view().values().as_ptr()), (place, place));
        // Somebody else keeps the old ones.
        let other = Arc::clone(&a);
        source.set_values(NewValues::Into(&mut a, [3.0, 4.0].as_slice().into()), copy).unwrap();
        assert_eq!((other.values(), a.values()), (&[7.0, 8.0][..], &[3.0, 4.0][..]));
        assert_eq!(source.view(), a.view());
        // A vector changes places with the matrix's.
        let mut new = vec![1.0, 9.0];
        let place = new.as_ptr();
        drop(other);
        let swapped = NewValues::Into(&mut a, (&mut new).into());
        assert!(!swapped.are_copied());
        source
            .set_values(swapped, |view, own| assert!(own.is_none() && view.values() == [1.0, 9.0]))
            .unwrap();
        assert_eq!(
            (a.values(), a.values().as_ptr(), new),
            (&[1.0, 9.0][..], place, vec![3.0, 4.0])
        );
        assert_eq!((source.view(), Arc::strong_count(&a)), (a.view(), 2));
        // Errors change nothing.
        assert!(source.set_values(NewValues::Into(&mut a, [0.0].as_slice().into()), copy).is_err());
        let mut foreign = Arc::new(matrix());
        let error = source
            .set_values(NewValues::Into(&mut foreign, [0.0, 0.0].as_slice().into()), copy)
            .unwrap_err();
        assert_eq!(error, PlanError::Values("the plan does not share the matrix"));
        assert_eq!((source.view(), foreign), (a.view(), Arc::new(matrix())));
        let mut borrowed = CsrSource::from(a.view());
        assert!(
            borrowed
                .set_values(
                    NewValues::Into(&mut Arc::clone(&a), [0.0, 0.0].as_slice().into()),
                    copy
                )
                .is_err()
        );
    }
}
