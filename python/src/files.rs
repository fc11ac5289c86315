//! Matrix Market files.

use std::path::PathBuf;

use numpy::{Complex64, PyArray1};
use pyo3::prelude::*;
use spm::matrix_market::{self, MatrixMarketError, Problem, ReadOptions};
use spm::{Csr, Error};

use crate::arrays::{Arrays, Csr4, Number, by_dtype, to_python};
use crate::errors::exception;
use crate::process::{detached, interruptible};

/// A matrix as its file says: real, or complex.
enum Read {
    Real(Csr<f64>),
    Complex(Csr<Complex64>),
}

/// The arrays of the matrix of a file.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, path: PathBuf, complex: bool) -> PyResult<Csr4<'_>> {
    let options = ReadOptions::default();
    let read = interruptible(py, move || {
        let complex_values = || matrix_market::read_csr(&path, &options).map(Read::Complex);
        if complex {
            return complex_values();
        }
        match matrix_market::read_csr(&path, &options) {
            Err(MatrixMarketError::Invalid { problem: Problem::Complex, .. }) => complex_values(),
            read => read.map(Read::Real),
        }
    });
    match read?.map_err(exception)? {
        Read::Real(matrix) => Ok(to_python(py, matrix)),
        Read::Complex(matrix) => Ok(to_python(py, matrix)),
    }
}

/// Writes a matrix.
#[pyfunction]
pub(crate) fn write(path: PathBuf, arrays: &Bound<'_, PyAny>) -> PyResult<()> {
    let arrays: Arrays<'_> = arrays.extract()?;
    by_dtype!(&arrays.data, write_typed(&arrays, path))
}

fn write_typed<T: Number>(
    data: &Bound<'_, PyArray1<T>>,
    arrays: &Arrays<'_>,
    path: PathBuf,
) -> PyResult<()> {
    let matrix = arrays.to_csr(data)?.matrix;
    let written: Result<(), Error> = detached(data.py(), || spm::write(path, matrix.view()))?;
    written.map_err(exception)
}
