//! The kernels that there are.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use spm::Scalar;
use spm::num_complex::Complex;
use spm_cpu::spmv;

/// Labels of the kernels for y = A x with elements of this data type, as recipes have them.
#[pyfunction]
pub(crate) fn kernels(dtype: &str) -> PyResult<Vec<String>> {
    match dtype {
        "float32" => Ok(labels::<f32>()),
        "float64" => Ok(labels::<f64>()),
        "complex64" => Ok(labels::<Complex<f32>>()),
        "complex128" => Ok(labels::<Complex<f64>>()),
        other => Err(PyTypeError::new_err(format!("there are no kernels for {other}"))),
    }
}

fn labels<T: Scalar>() -> Vec<String> {
    let label = |kernel: &spmv::SpmvKernel<T>| kernel.info.label(&kernel.info.defaults());
    spmv::registry::<T>().iter().map(label).collect()
}

/// The cores that this process may use.
#[pyfunction]
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
