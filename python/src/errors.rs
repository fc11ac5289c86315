//! Python exceptions for the errors of `spm`.

use std::error::Error as _;
use std::fmt::Write as _;
use std::io::ErrorKind;

use pyo3::PyErr;
use pyo3::exceptions::{
    PyFileNotFoundError, PyMemoryError, PyOSError, PyPermissionError, PyRuntimeError, PyValueError,
};
use spm::matrix_market::{MatrixMarketError, Problem};
use spm::{Error, GpuError};
use spm_formats::FormatError;
use spm_formats::kernel::PlanError;

/// The exception of `error`, with the texts of its sources.
pub(crate) fn exception(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let of_cause = cause.to_string();
        // Some errors quote their source.
        if !text.ends_with(&of_cause) {
            let _ = write!(text, ": {of_cause}");
        }
        source = cause.source();
    }
    match &error {
        Error::Plan(PlanError::Format(FormatError::OverBudget { .. }))
        | Error::File(MatrixMarketError::Invalid { problem: Problem::Memory, .. }) => {
            PyMemoryError::new_err(text)
        }
        Error::File(MatrixMarketError::Io { cause, .. }) => match cause.kind() {
            ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
            ErrorKind::PermissionDenied => PyPermissionError::new_err(text),
            _ => PyOSError::new_err(text),
        },
        Error::Gpu(GpuError::OutOfMemory { .. } | GpuError::OverBudget(_)) => {
            PyMemoryError::new_err(text)
        }
        Error::Gpu(GpuError::Misaligned { .. }) => PyValueError::new_err(text),
        Error::Run(_) | Error::Gpu(_) => PyRuntimeError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}
