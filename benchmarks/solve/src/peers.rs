//! The matrix in the types of the other libraries, and their products.

use std::error::Error;

use faer::sparse::SparseRowMat;
use faer::sparse::linalg::matmul::sparse_dense_matmul;
use faer::{Accum, MatMut, MatRef, Par};
use nalgebra_sparse::CsrMatrix;
use nalgebra_sparse::na::{DMatrixView, DMatrixViewMut};
use nalgebra_sparse::ops::Op;
use nalgebra_sparse::ops::serial::spmm_csr_dense;
use spm::{Csr, sprs};

/// The names of the libraries, in the order of [`Peers::product`].
pub const NAMES: [&str; 3] = ["sprs", "faer", "nalgebra-sparse"];

/// One matrix in the types of the libraries.
pub struct Peers {
    sprs: sprs::CsMat<f64>,
    faer: SparseRowMat<usize, f64>,
    nalgebra: CsrMatrix<f64>,
}

impl Peers {
    pub fn new(a: &Csr<f64>) -> Result<Self, Box<dyn Error>> {
        let to_usize = |indices: &[u32]| indices.iter().map(|&i| i as usize).collect::<Vec<_>>();
        let (row_ptr, col_ind) = (to_usize(a.row_ptr()), to_usize(a.col_ind()));
        let (rows, cols) = a.shape();
        let values = a.values().to_vec();
        let triplets: Vec<_> =
            a.iter().map(|(row, col, &v)| faer::sparse::Triplet::new(row, col, v)).collect();
        let faer = SparseRowMat::try_new_from_triplets(rows, cols, &triplets);
        Ok(Self {
            sprs: sprs::CsMat::new((rows, cols), row_ptr.clone(), col_ind.clone(), values.clone()),
            faer: faer.map_err(|error| format!("{error:?}"))?,
            nalgebra: CsrMatrix::try_from_csr_data(rows, cols, row_ptr, col_ind, values)?,
        })
    }

    /// y = A x with a library of [`NAMES`]. One that has no threads uses one.
    pub fn product(&self, library: usize, threads: usize, x: &[f64], y: &mut [f64]) {
        match library {
            0 => {
                y.fill(0.0);
                sprs::prod::mul_acc_mat_vec_csr(self.sprs.view(), x, y);
            }
            1 => {
                let (cols, rows) = (x.len(), y.len());
                let x = MatRef::from_column_major_slice(x, cols, 1);
                let y = MatMut::from_column_major_slice_mut(y, rows, 1);
                sparse_dense_matmul(y, Accum::Replace, self.faer.as_ref(), x, 1.0, par(threads));
            }
            _ => {
                let (cols, rows) = (x.len(), y.len());
                let x = DMatrixView::from_slice(x, cols, 1);
                let y = DMatrixViewMut::from_slice(y, rows, 1);
                spmm_csr_dense(0.0, y, 1.0, Op::NoOp(&self.nalgebra), Op::NoOp(x));
            }
        }
    }

    /// y = A^T x with faer.
    pub fn transposed(&self, threads: usize, x: &[f64], y: &mut [f64]) {
        let (rows, cols) = (x.len(), y.len());
        let x = MatRef::from_column_major_slice(x, rows, 1);
        let y = MatMut::from_column_major_slice_mut(y, cols, 1);
        let a = self.faer.as_ref().transpose();
        sparse_dense_matmul(y, Accum::Replace, a, x, 1.0, par(threads));
    }
}

fn par(threads: usize) -> Par {
    if threads == 1 { Par::Seq } else { Par::rayon(threads) }
}
