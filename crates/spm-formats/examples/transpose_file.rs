//! Transposes a Matrix Market file:
//! `cargo run --release -p spm-formats --example transpose_file -- IN.mtx OUT.mtx`.
//!
//! IN may be .mtx, .mtx.gz or a .tar.gz of the SuiteSparse collection, OUT .mtx or .mtx.gz. OUT has
//! every entry of the transpose, also where IN stores one triangle of a symmetric matrix.

use std::path::Path;

use spm_formats::Csr;
use spm_formats::convert::csr_to_csc;
use spm_formats::matrix_market::{ReadOptions, read_csr, write_csr};

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output] = &*arguments else {
        return Err("usage: transpose_file IN.mtx OUT.mtx".into());
    };
    transpose_file(Path::new(input), Path::new(output))
}

pub(crate) fn transpose_file(input: &Path, output: &Path) -> Result<(), AnyError> {
    let matrix: Csr<f64> = read_csr(input, &ReadOptions::default())?;
    // The CSC arrays of A are the CSR arrays of its transpose.
    let transpose = csr_to_csc(matrix.view()).into_transposed();
    let comment = format!("transpose of {}", input.display());
    write_csr(output, transpose.view(), &[&comment])?;
    println!("{} x {}, {} entries", transpose.rows(), transpose.cols(), transpose.nnz());
    Ok(())
}
