//! Native part of the Python package `spm`: what its Python files call. Arrays arrive with the data type
//! that the function is for; the Python files convert what callers give.

mod arrays;
mod device;
mod dlpack;
mod errors;
mod files;
mod gpu;
mod kernels;
mod matrix;
mod operator;
mod place;
mod process;
mod results;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
#[pyo3(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::files::{read, write};
    #[pymodule_export]
    use crate::kernels::{cores, kernels};
    #[pymodule_export]
    use crate::matrix::transpose;
    #[pymodule_export]
    use crate::operator::Operator;
    #[pymodule_export]
    use crate::process::after_fork;
    #[pymodule_export]
    use crate::results::{empty, result_memory};
}
