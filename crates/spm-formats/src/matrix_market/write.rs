//! Writes matrices as Matrix Market text.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;

use super::containers::{Container, container_of};
use super::error::MatrixMarketError;
use crate::convert::csr_to_coo;
use crate::replace::replace_file;
use crate::{Coo, CsrView, Scalar};

/// Entries that one thread formats at a time.
const PIECE: usize = 1 << 15;

/// Writes a matrix as `matrix coordinate real general` to NAME.mtx or NAME.mtx.gz, replacing the
/// file in one step: an interrupted write leaves the former one.
///
/// Every value is the shortest text that reads back to the same bits, of both `f32` and `f64`;
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
    let path = path.as_ref();
    let written = match container_of(path) {
        Some(Container::Plain) => replace_file(path, |file| write_text(file, matrix, comments)),
        Some(Container::Gzip) => replace_file(path, |file| {
            let mut gzip = GzEncoder::new(file, Compression::default());
            write_text(&mut gzip, matrix, comments)?;
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

/// Writes the text of [`write_coo`] to any writer.
///
/// # Errors
/// Those of `out`.
pub fn write_text<T: Scalar>(
    out: &mut impl Write,
    matrix: &Coo<T>,
    comments: &[&str],
) -> io::Result<()> {
    writeln!(out, "%%MatrixMarket matrix coordinate real general")?;
    for line in comments.iter().flat_map(|comment| comment.lines()) {
        writeln!(out, "%{line}")?;
    }
    writeln!(out, "{} {} {}", matrix.rows(), matrix.cols(), matrix.entries())?;
    let pieces: Vec<usize> = (0..matrix.entries()).step_by(PIECE).collect();
    // A few pieces a thread at a time, so that the text is never in memory as a whole.
    for group in pieces.chunks(4 * rayon::current_num_threads()) {
        let texts: Vec<Vec<u8>> =
            group.par_iter().map(|&start| format_entries(matrix, start)).collect();
        for text in texts {
            out.write_all(&text)?;
        }
    }
    Ok(())
}

fn format_entries<T: Scalar>(matrix: &Coo<T>, start: usize) -> Vec<u8> {
    let end = (start + PIECE).min(matrix.entries());
    let mut text = Vec::with_capacity(32 * (end - start));
    let (mut plain, mut scientific) = (Vec::new(), Vec::new());
    for entry in start..end {
        let (row, col) = (matrix.row_ind()[entry], matrix.col_ind()[entry]);
        let value = matrix.values()[entry];
        plain.clear();
        scientific.clear();
        let magnitude = value.abs().to_f64();
        // Beyond these the plain form is mostly zeros.
        let moderate = value == T::ZERO || !value.is_finite() || (1e-5..1e20).contains(&magnitude);
        let written = write!(text, "{} {} ", u64::from(row) + 1, u64::from(col) + 1)
            .and_then(|()| write!(scientific, "{value:e}"))
            .and_then(|()| if moderate { write!(plain, "{value}") } else { Ok(()) });
        written.expect("writing to memory does not fail");
        let shorter =
            if moderate && plain.len() <= scientific.len() { &plain } else { &scientific };
        text.extend_from_slice(shorter);
        text.push(b'\n');
    }
    text
}
