//! What the tests share.

use spm::{Coo, Csr, Layout, Scalar};
use spm_formats::{DenseShape, convert};
use spm_testing::generate;
use spm_testing::reference::{self, Reference};

/// Matrices of every size class: empty, tiny, below and above the size from which threads are used,
/// wide, with empty rows and with a long row.
pub(crate) const MATRICES: [&str; 6] = [
    "diagonal[n=5]",
    "stencil5[n=30]",
    "stencil27[n=14]",
    "uniform[rows=300,cols=9000,entries=20000]",
    "uniform[rows=9000,cols=300,entries=20000]",
    "powerlaw[rows=4000,cols=4000,entries=30000,longest=2000]",
];

pub(crate) fn matrix<T: Scalar>(name: &str) -> Csr<T> {
    generate::named(name).unwrap().generate().unwrap()
}

pub(crate) fn bits<T: Scalar>(values: &[T]) -> Vec<u128> {
    values.iter().map(|value| value.to_bits128()).collect()
}

/// alpha A x + beta y as one product of the reference: [alpha A, beta I] times x above y. alpha is a
/// power of 2, so that its products with the values are exact.
pub(crate) fn scaled<T: Scalar>(
    a: &Csr<T>,
    alpha: T,
    x: &[T],
    beta: T,
    y: &[T],
) -> Reference<T::Wide> {
    let (mut rows, mut cols, mut values) = (Vec::new(), Vec::new(), Vec::new());
    if alpha != T::ZERO {
        for (row, col, &value) in a.iter() {
            rows.push(row as u32);
            cols.push(col as u32);
            values.push(alpha * value);
        }
    }
    if beta != T::ZERO {
        for row in 0..a.rows() {
            rows.push(row as u32);
            cols.push((a.cols() + row) as u32);
            values.push(beta);
        }
    }
    let both = Coo::new(a.rows(), a.cols() + a.rows(), rows, cols, values).unwrap();
    reference::spmv(&both, &[x, y].concat())
}

/// A^T as CSR.
pub(crate) fn transposed<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    let coo = convert::csr_to_coo(a.view());
    let (col_ptr, row_ind, values) = reference::transpose(&coo);
    Csr::new((a.cols(), a.rows()), col_ptr, row_ind, values).unwrap()
}

/// A X by the reference.
pub(crate) fn many<T: Scalar>(a: &Csr<T>, x: &[T], k: usize, layout: Layout) -> Reference<T::Wide> {
    reference::spmm(&convert::csr_to_coo(a.view()), x, DenseShape { k, layout })
}

pub(crate) fn accept<T: Scalar>(what: &str, y: &[T], expected: &Reference<T::Wide>) {
    let errors = reference::compare(y, expected);
    assert!(errors.acceptable(), "{what}: {errors:?}");
}
