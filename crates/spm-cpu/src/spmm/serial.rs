//! Serial SpMM over any [`RowWise`] matrix (R4 1.3): y_ic = sum_j a_ij x_jc.

use spm_formats::{DenseShape, Scalar};

use super::plan::{Memory, Product};
use super::rows::{RowWise, Strides, element};
use crate::scaled::{self, Update};

pub(super) struct Serial<A> {
    pub(super) a: A,
    pub(super) dense: DenseShape,
}

impl<T: Scalar, A: RowWise<T>> Product<T> for Serial<A> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }

    fn memory(&self) -> Memory {
        Memory { matrix: self.a.bytes(), plan: self.a.held_bytes() }
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        multiply(&self.a, self.dense, scaling, x, y);
    }
}

/// `y` = alpha `a` `x` + beta `y`, one element after the other.
pub(super) fn multiply<T: Scalar>(
    a: &impl RowWise<T>,
    dense: DenseShape,
    scaling: Option<Update<'_, T>>,
    x: &[T],
    y: &mut [T],
) {
    let (rows, cols) = a.shape();
    let (in_x, in_y) = (Strides::new(cols, dense), Strides::new(rows, dense));
    for row in 0..rows {
        for c in 0..dense.k {
            let y = &mut y[row * in_y.down + c * in_y.across];
            scaled::store(scaling, element(a, row, x, c, in_x), y);
        }
    }
}
