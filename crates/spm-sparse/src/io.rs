//! Matrix Market files.

use std::path::Path;

use spm_formats::matrix_market::{self, ReadOptions};
use spm_formats::{Csr, CsrView, Scalar};

use crate::Error;

/// Reads a Matrix Market file (`.mtx`, `.mtx.gz`, `.tar.gz`) into compressed rows. Symmetry is
/// expanded, values of equal positions are summed, explicit zeros are kept.
///
/// [`matrix_market`] has the rules, and a reader with options.
///
/// ```no_run
/// let op = spm::Operator::<f64>::new(spm::read("cant.mtx")?)?;
/// # Ok::<(), spm::Error>(())
/// ```
///
/// # Errors
/// [`Error::File`], with file, line and what was expected.
pub fn read<T: Scalar>(path: impl AsRef<Path>) -> Result<Csr<T>, Error> {
    Ok(matrix_market::read_csr(path, &ReadOptions::default())?)
}

/// Writes a matrix to a Matrix Market file (`.mtx`, `.mtx.gz`) of general symmetry. Every value
/// reads back to the same bits.
///
/// # Errors
/// [`Error::File`].
pub fn write<T: Scalar>(path: impl AsRef<Path>, a: CsrView<'_, T>) -> Result<(), Error> {
    Ok(matrix_market::write_csr(path, a, &[])?)
}
