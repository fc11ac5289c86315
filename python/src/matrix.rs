//! Operations on matrices that need no operator.

use numpy::PyArray1;
use pyo3::prelude::*;
use spm_formats::convert;

use crate::arrays::{Arrays, Csr4, Number, by_dtype, to_python};
use crate::process::detached;

/// The arrays of the transpose in compressed rows, sorted.
#[pyfunction]
pub(crate) fn transpose<'py>(arrays: &Bound<'py, PyAny>) -> PyResult<Csr4<'py>> {
    let arrays: Arrays<'py> = arrays.extract()?;
    by_dtype!(&arrays.data, transpose_typed(&arrays))
}

fn transpose_typed<'py, T: Number>(
    data: &Bound<'py, PyArray1<T>>,
    arrays: &Arrays<'_>,
) -> PyResult<Csr4<'py>> {
    let matrix = arrays.to_csr(data)?.matrix;
    let transpose = detached(data.py(), || convert::csr_to_csc(matrix.view()).into_transposed())?;
    Ok(to_python(data.py(), transpose))
}
