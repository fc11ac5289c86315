//! Serial SpMM over any [`RowWise`] matrix (R4 1.3): y_ic = sum_j a_ij x_jc.

use spm_formats::{DenseShape, Scalar};

use super::plan::{Memory, Product};
use super::rows::{RowWise, Strides, element};

pub(super) struct Serial<A> {
    pub(super) a: A,
    pub(super) dense: DenseShape,
    /// The label that `auto` reports if it has chosen this plan.
    pub(super) choice: Option<String>,
}

impl<T: Scalar, A: RowWise<T>> Product<T> for Serial<A> {
    fn shape(&self) -> (usize, usize) {
        self.a.shape()
    }

    fn memory(&self) -> Memory {
        Memory { matrix: self.a.bytes(), plan: self.a.held_bytes() }
    }

    fn multiply(&mut self, x: &[T], y: &mut [T]) {
        let (rows, cols) = self.a.shape();
        let (in_x, in_y) = (Strides::new(cols, self.dense), Strides::new(rows, self.dense));
        for row in 0..rows {
            for c in 0..self.dense.k {
                y[row * in_y.down + c * in_y.across] = element(&self.a, row, x, c, in_x);
            }
        }
    }

    fn choice(&self) -> Option<String> {
        self.choice.clone()
    }
}
