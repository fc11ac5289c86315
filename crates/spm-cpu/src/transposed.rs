//! SpMV with the transpose of a CSR matrix, y = A^T x, or with its conjugate transpose, y = A^H x.

pub use crate::spmv::csr_transposed::{plan, plan_conjugate};
