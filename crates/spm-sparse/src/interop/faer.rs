//! Matrices of faer, and its linear operator traits.

use std::sync::Arc;

use faer::dyn_stack::{MemStack, StackReq};
use faer::matrix_free::{BiLinOp, BiPrecond, LinOp, Precond};
use faer::sparse::{SparseColMat, SparseColMatRef, SparseRowMat, SparseRowMatRef};
use faer::traits::ComplexField;
use faer::{Index, MatMut, MatRef, Par};
use spm_formats::{Csc, Csr, Scalar};

use crate::{Error, IntoCsr, Operator};

/// Pointers, indices and values of a compressed matrix of faer, whose lines may have room at their
/// ends and be unsorted.
fn arrays<I: Index, T: Copy>(
    pointers: &[I],
    lengths: Option<&[I]>,
    indices: &[I],
    values: &[T],
) -> (Vec<usize>, Vec<usize>, Vec<T>) {
    let to_usize = |index: &I| index.zx();
    let Some(lengths) = lengths else {
        let pointers: Vec<usize> = pointers.iter().map(to_usize).collect();
        let range = pointers[0]..pointers[pointers.len() - 1];
        let indices = indices[range.clone()].iter().map(to_usize).collect();
        return (pointers, indices, values[range].to_vec());
    };
    let (mut ends, mut kept, mut kept_values) = (vec![0], Vec::new(), Vec::new());
    for (start, length) in pointers.iter().zip(lengths) {
        let line = start.zx()..start.zx() + length.zx();
        kept.extend(indices[line.clone()].iter().map(to_usize));
        kept_values.extend_from_slice(&values[line]);
        ends.push(kept.len());
    }
    (ends, kept, kept_values)
}

/// Converts the indices, copies the values.
impl<I: Index, T: Scalar> IntoCsr for SparseRowMatRef<'_, I, T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        let (structure, shape) = (self.symbolic(), (self.nrows(), self.ncols()));
        let (row_ptr, lengths) = (structure.row_ptr(), structure.row_nnz());
        let (row_ptr, col_ind, values) = arrays(row_ptr, lengths, structure.col_idx(), self.val());
        Csr::from_unsorted(shape, row_ptr, col_ind, values)?.into_csr()
    }
}

/// Converts the indices, copies the values.
impl<I: Index, T: Scalar> IntoCsr for &SparseRowMat<I, T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        self.as_ref().into_csr()
    }
}

/// Converts the indices, copies the values.
impl<I: Index, T: Scalar> IntoCsr for SparseRowMat<I, T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        self.as_ref().into_csr()
    }
}

/// Converts the indices, then regroups the entries by row.
impl<I: Index, T: Scalar> IntoCsr for SparseColMatRef<'_, I, T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        let (structure, shape) = (self.symbolic(), (self.nrows(), self.ncols()));
        let (col_ptr, lengths) = (structure.col_ptr(), structure.col_nnz());
        let (col_ptr, row_ind, values) = arrays(col_ptr, lengths, structure.row_idx(), self.val());
        Csc::from_unsorted(shape, col_ptr, row_ind, values)?.into_csr()
    }
}

/// Converts the indices, then regroups the entries by row.
impl<I: Index, T: Scalar> IntoCsr for &SparseColMat<I, T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        self.as_ref().into_csr()
    }
}

/// Converts the indices, then regroups the entries by row.
impl<I: Index, T: Scalar> IntoCsr for SparseColMat<I, T> {
    type Scalar = T;

    fn into_csr(self) -> Result<Arc<Csr<T>>, Error> {
        self.as_ref().into_csr()
    }
}

/// Calls `product` for each column of `rhs` and `out`, as slices; a column whose elements are not
/// next to each other is copied.
fn for_each_column<T: Scalar>(
    mut out: MatMut<'_, T>,
    rhs: MatRef<'_, T>,
    product: impl Fn(&[T], &mut [T]) -> Result<(), Error>,
) {
    assert_eq!(out.ncols(), rhs.ncols(), "columns of the right-hand side and of the output");
    for column in 0..rhs.ncols() {
        let (x, mut y) = (rhs.col(column), out.as_mut().col_mut(column));
        let copy: Vec<T>;
        let x = match x.try_as_col_major() {
            Some(x) => x.as_slice(),
            None => {
                copy = x.iter().copied().collect();
                &copy
            }
        };
        let done = match y.as_mut().try_as_col_major_mut() {
            Some(y) => product(x, y.as_slice_mut()),
            None => {
                let mut copy = vec![T::ZERO; y.nrows()];
                let done = product(x, &mut copy);
                y.iter_mut().zip(copy).for_each(|(y, product)| *y = product);
                done
            }
        };
        done.expect("a product with the operator's shape");
    }
}

/// Column by column on the operator's own threads: `par` and `stack` are not used.
///
/// # Panics
/// `apply` panics for matrices of other shapes, as the operators of faer do.
impl<T: Scalar + ComplexField> LinOp<T> for Operator<T> {
    fn apply_scratch(&self, _: usize, _: Par) -> StackReq {
        StackReq::EMPTY
    }

    fn nrows(&self) -> usize {
        self.rows()
    }

    fn ncols(&self) -> usize {
        self.cols()
    }

    fn apply(&self, out: MatMut<'_, T>, rhs: MatRef<'_, T>, _: Par, _: &mut MemStack) {
        for_each_column(out, rhs, |x, y| Operator::apply(self, x, y));
    }

    fn conj_apply(&self, out: MatMut<'_, T>, rhs: MatRef<'_, T>, _: Par, _: &mut MemStack) {
        for_each_column(out, rhs, |x, y| self.apply_conj(x, y));
    }
}

/// As for [`LinOp`].
impl<T: Scalar + ComplexField> BiLinOp<T> for Operator<T> {
    fn transpose_apply_scratch(&self, _: usize, _: Par) -> StackReq {
        StackReq::EMPTY
    }

    fn transpose_apply(&self, out: MatMut<'_, T>, rhs: MatRef<'_, T>, _: Par, _: &mut MemStack) {
        for_each_column(out, rhs, |x, y| Operator::apply_transpose(self, x, y));
    }

    fn adjoint_apply(&self, out: MatMut<'_, T>, rhs: MatRef<'_, T>, _: Par, _: &mut MemStack) {
        for_each_column(out, rhs, |x, y| self.apply_conj_transpose(x, y));
    }
}

/// A matrix that approximates the inverse, such as the inverted diagonal.
impl<T: Scalar + ComplexField> Precond<T> for Operator<T> {}

/// As for [`Precond`].
impl<T: Scalar + ComplexField> BiPrecond<T> for Operator<T> {}
