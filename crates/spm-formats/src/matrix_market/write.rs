//! Writes matrices as Matrix Market text.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::containers::{Container, container_of};
use super::error::MatrixMarketError;
use super::kinds::{Field, Symmetry};
use crate::convert::csr_to_coo;
use crate::replace::replace_file;
use crate::{Coo, Csr, CsrView, RealScalar, Scalar, parallel};

/// Entries that one thread formats at a time.
const PIECE: usize = 1 << 15;

/// Writes a matrix as `matrix coordinate real general`, or `complex general`, to NAME.mtx or
/// NAME.mtx.gz, replacing the file in one step: an interrupted write leaves the former one.
///
/// Every number is the shortest text that reads back to the same bits, of both `f32` and `f64`;
/// `NaN` loses its sign and payload. Entries keep their order, duplicates and explicit zeros stay.
/// A comment with several lines becomes several comment lines.
///
/// # Errors
/// [`MatrixMarketError::Io`]; [`MatrixMarketError::UnknownEnding`].
pub fn write_coo<T: Scalar>(
    path: impl AsRef<Path>,
    matrix: &Coo<T>,
    comments: &[&str],
) -> Result<(), MatrixMarketError> {
    write_file(path.as_ref(), matrix, Symmetry::General, comments)
}

/// Writes the entries of `matrix` under a banner with `symmetry`.
fn write_file<T: Scalar>(
    path: &Path,
    matrix: &Coo<T>,
    symmetry: Symmetry,
    comments: &[&str],
) -> Result<(), MatrixMarketError> {
    let written = match container_of(path) {
        Some(Container::Plain) => {
            replace_file(path, |file| write_entries(file, matrix, symmetry, comments))
        }
        Some(Container::Gzip) => replace_file(path, |file| {
            let mut gzip = GzEncoder::new(file, Compression::default());
            write_entries(&mut gzip, matrix, symmetry, comments)?;
            gzip.finish().map(drop)
        }),
        Some(Container::TarGzip) | None => {
            return Err(MatrixMarketError::UnknownEnding { path: path.to_owned() });
        }
    };
    written.map_err(|cause| MatrixMarketError::Io { path: path.to_owned(), cause })
}

/// [`write_coo`] of a matrix in CSR; other formats go through their conversion to either.
///
/// # Errors
/// As [`write_coo`].
pub fn write_csr<T: Scalar>(
    path: impl AsRef<Path>,
    matrix: CsrView<'_, T>,
    comments: &[&str],
) -> Result<(), MatrixMarketError> {
    write_coo(path, &csr_to_coo(matrix), comments)
}

/// As [`write_csr`], with `symmetry` in the banner: the entries above the diagonal are left out.
///
/// # Errors
/// As [`write_coo`]; [`MatrixMarketError::NotSymmetric`] for a matrix that does not have the symmetry,
/// in its entries or in its stored zeros.
pub fn write_csr_symmetric<T: Scalar>(
    path: impl AsRef<Path>,
    matrix: CsrView<'_, T>,
    symmetry: Symmetry,
    comments: &[&str],
) -> Result<(), MatrixMarketError> {
    let path = path.as_ref();
    if symmetry == Symmetry::General {
        return write_csr(path, matrix, comments);
    }
    if let Some(found) = contradiction(matrix, symmetry) {
        return Err(MatrixMarketError::NotSymmetric { path: path.to_owned(), symmetry, found });
    }
    let lower = matrix.iter().filter(|(row, col, _)| row >= col);
    let lower = lower.map(|(row, col, &value)| (row, col, value));
    let lower = Csr::from_triplets(matrix.shape(), lower).expect("entries of a matrix");
    write_file(path, &csr_to_coo(lower.view()), symmetry, comments)
}

/// Why a matrix does not have the symmetry.
fn contradiction<T: Scalar>(matrix: CsrView<'_, T>, symmetry: Symmetry) -> Option<String> {
    let (rows, cols) = matrix.shape();
    if rows != cols {
        return Some(format!("{rows} x {cols}"));
    }
    let mirrored = |row, col, value: T| {
        matrix.get(col, row).is_some_and(|&other| other == symmetry.mirrored(value))
    };
    let (row, col, value) = matrix.iter().find(|&(row, col, &value)| !mirrored(row, col, value))?;
    Some(format!("{value} at row {}, column {}", row + 1, col + 1))
}

/// Writes the text of [`write_coo`] to any writer.
///
/// # Errors
/// Those of `out`.
pub fn write_text<T: Scalar>(
    out: &mut impl Write,
    matrix: &Coo<T>,
    comments: &[&str],
) -> io::Result<()> {
    write_entries(out, matrix, Symmetry::General, comments)
}

fn write_entries<T: Scalar>(
    out: &mut impl Write,
    matrix: &Coo<T>,
    symmetry: Symmetry,
    comments: &[&str],
) -> io::Result<()> {
    let field = if T::IS_COMPLEX { Field::Complex } else { Field::Real };
    writeln!(out, "%%MatrixMarket matrix coordinate {field} {symmetry}")?;
    for line in comments.iter().flat_map(|comment| comment.lines()) {
        writeln!(out, "%{line}")?;
    }
    writeln!(out, "{} {} {}", matrix.rows(), matrix.cols(), matrix.entries())?;
    let pieces: Vec<usize> = (0..matrix.entries()).step_by(PIECE).collect();
    // A few pieces a thread at a time, so that the text is never in memory as a whole.
    for group in pieces.chunks(4 * rayon::current_num_threads()) {
        let texts = parallel::map(group.len(), 1, |piece| format_entries(matrix, group[piece]));
        for text in texts {
            out.write_all(&text)?;
        }
    }
    Ok(())
}

fn format_entries<T: Scalar>(matrix: &Coo<T>, start: usize) -> Vec<u8> {
    let end = (start + PIECE).min(matrix.entries());
    let mut text = Vec::with_capacity(32 * (end - start));
    let mut number = Number::default();
    for entry in start..end {
        let (row, col) = (matrix.row_ind()[entry], matrix.col_ind()[entry]);
        let value = matrix.values()[entry];
        write!(text, "{} {} ", u64::from(row) + 1, u64::from(col) + 1).expect(MEMORY);
        number.append(value.re(), &mut text);
        if T::IS_COMPLEX {
            text.push(b' ');
            number.append(value.im(), &mut text);
        }
        text.push(b'\n');
    }
    text
}

/// What a write to memory that fails would say.
const MEMORY: &str = "writing to memory does not fail";

/// Buffers for the text of a number.
#[derive(Default)]
struct Number {
    plain: Vec<u8>,
    scientific: Vec<u8>,
}

impl Number {
    /// Appends the shortest text that reads back to the same bits.
    fn append<R: RealScalar>(&mut self, value: R, text: &mut Vec<u8>) {
        let Self { plain, scientific } = self;
        plain.clear();
        scientific.clear();
        write!(scientific, "{value:e}").expect(MEMORY);
        // Beyond these the plain form is mostly zeros.
        let moderate = (1e-5..1e20).contains(&value.abs().to_f64());
        let moderate = moderate || value == R::ZERO || !value.is_finite();
        if moderate {
            write!(plain, "{value}").expect(MEMORY);
        }
        let shorter = if moderate && plain.len() <= scientific.len() { plain } else { scientific };
        text.extend_from_slice(shorter);
    }
}
