//! SpMV with the transpose of a CSR matrix: y = A^T x.

pub use crate::spmv::csr_transposed::plan;
