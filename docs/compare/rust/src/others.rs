//! SpMM and transposition, ours and other crates', for spmm_cpu.py and transpose_cpu.py.

use std::error::Error;

use faer::sparse::linalg::matmul::sparse_dense_matmul;
use faer::sparse::{SparseRowMatRef, SymbolicSparseRowMatRef};
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{ArrayView2, ArrayViewMut2};
use spm_cpu::{PlanOptions, prefer_huge_pages, spmm, transpose};
use spm_formats::kernel::{TransposeOutput, split_label};
use spm_formats::{Csr, DenseShape, Layout, sprs};

use crate::median;

fn faer_view(a: &Csr<f64>) -> SparseRowMatRef<'_, u32, f64> {
    let (pointers, columns, values) = a.view().into_raw_storage();
    let structure =
        SymbolicSparseRowMatRef::new_checked(a.rows(), a.cols(), pointers, None, columns);
    SparseRowMatRef::new(structure, values)
}

/// Y = A X, row-major, on a cache line and large pages as the other side has it.
pub(crate) fn time_spmm(
    a: &Csr<f64>,
    name: &str,
    k: usize,
    threads: usize,
    seconds: f64,
) -> Result<String, Box<dyn Error>> {
    let (mut x, mut y) = (vec![], vec![]);
    let (x, y) = (aligned(&mut x, a.cols() * k), aligned(&mut y, a.rows() * k));
    x.iter_mut().enumerate().for_each(|(i, x)| *x = (i as f64).sin());
    y.fill(0.0);
    match name {
        "sprs" => {
            let x = ArrayView2::from_shape((a.cols(), k), &*x)?;
            // It adds to Y; clearing Y first, as a user must, is not timed.
            let median = median(seconds, || {
                let y = ArrayViewMut2::from_shape((a.rows(), k), &mut *y).expect("rows x k");
                sprs::prod::csr_mulacc_dense_rowmaj(a.view(), x, y);
            });
            Ok(format!("{median:e} sprs"))
        }
        "faer" => {
            let matrix = faer_view(a);
            let x = MatRef::from_row_major_slice(x, a.cols(), k);
            let parallel = if threads == 1 { Par::Seq } else { Par::rayon(threads) };
            let mut y = MatMut::from_row_major_slice_mut(y, a.rows(), k);
            let median = median(seconds, || {
                sparse_dense_matmul(y.as_mut(), Accum::Replace, matrix, x, 1.0, parallel);
            });
            Ok(format!("{median:e} faer"))
        }
        label => {
            let (id, text) = split_label(label);
            let kernel = spmm::find::<f64>(id).ok_or("no such kernel")?;
            let parameters = kernel.info.parse_parameters(text)?;
            let options = PlanOptions::with_threads(threads);
            let dense = DenseShape { k, layout: Layout::RowMajor };
            let mut plan = kernel.plan(&a.view(), dense, &parameters, &options)?;
            let median = median(seconds, || plan.run(x, y).expect("right lengths"));
            let choice = plan.choice().unwrap_or_else(|| kernel.info.label(&parameters));
            Ok(format!("{median:e} {choice}"))
        }
    }
}

/// CSR to CSC. The other crates allocate what they return, and that is timed, its release too.
pub(crate) fn time_transpose(
    a: &Csr<f64>,
    name: &str,
    threads: usize,
    seconds: f64,
) -> Result<String, Box<dyn Error>> {
    match name {
        "sprs" => Ok(format!("{:e} sprs", median(seconds, || drop(a.to_csc())))),
        "faer" => {
            let matrix = faer_view(a);
            let run = || drop(matrix.to_col_major().expect("enough memory"));
            Ok(format!("{:e} faer", median(seconds, run)))
        }
        label => {
            let (id, text) = split_label(label);
            let kernel = transpose::find::<f64>(id).ok_or("no such kernel")?;
            let parameters = kernel.info.parse_parameters(text)?;
            let options = PlanOptions::with_threads(threads);
            let mut plan = kernel.plan(&a.view(), &parameters, &options)?;
            let mut output = TransposeOutput::new(a.cols(), a.nnz());
            prefer_huge_pages(&mut output.indices);
            prefer_huge_pages(&mut output.values);
            let median = median(seconds, || plan.run(&mut output).expect("right lengths"));
            let choice = plan.choice().unwrap_or_else(|| kernel.info.label(&parameters));
            Ok(format!("{median:e} {choice}"))
        }
    }
}

fn aligned(storage: &mut Vec<f64>, len: usize) -> &mut [f64] {
    *storage = vec![0.0; len + 8];
    prefer_huge_pages(storage);
    let start = storage.as_ptr().align_offset(64);
    &mut storage[start..start + len]
}
