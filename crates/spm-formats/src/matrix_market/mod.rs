//! Matrix Market files: a parallel reader that is safe for untrusted files, and a writer.
//!
//! ```
//! use spm_formats::matrix_market::{ReadOptions, read_bytes};
//!
//! let text = b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.5\n2 1 -3\n";
//! let file = read_bytes::<f64>("example", text, &ReadOptions::default())?;
//! assert_eq!(file.coo.values(), [1.5, -3.0]);
//! # Ok::<(), spm_formats::matrix_market::MatrixMarketError>(())
//! ```
//!
//! # What is read
//! `matrix` objects, coordinate and array; all fields: real, double, integer, unsigned-integer and
//! pattern as matrices of any scalar, complex as complex matrices only; all four symmetries, expanded
//! on reading. Words of the banner in any case; blanks, tabs, blank lines, LF or CRLF, lines of any length (the 1024
//! characters of the specification are not enforced), with or without a last line end.
//! The values of an array are all stored, zeros too.
//!
//! Values are rounded once, to the nearest value of the element type; integers too, so that
//! integers beyond 2^53 (`f64`) or 2^24 (`f32`) may lose digits. `nan` and `inf` are values when
//! they are written so.
//!
//! # Strict and lenient
//! Lenient mode also reads, where strict mode gives an error:
//! - a banner with one `%`, or with blanks before it;
//! - comments after the first entry;
//! - entries above the diagonal of a symmetric, skew-symmetric or hermitian matrix (mirrored as
//!   those below), nonzeros on the diagonal of a skew-symmetric one, and imaginary parts on the diagonal
//!   of a hermitian one (kept);
//! - a real or integer hermitian matrix (symmetric);
//! - Fortran exponents (`1.0D+3`), numbers beyond the range of the element type (infinite),
//!   fractions, `nan` and `inf` in integer fields.
//!
//! # Untrusted files Time is linear in the length of the text. Memory is at most 48 bytes for each
//! byte of text, plus 256 x `chunk_bytes` for each thread, plus 2 MiB. Short comments in the header
//! take most; entries usually take at most 16 bytes (24 in a complex matrix) for each 2 bytes of text. These bounds hold for
//! any size line: a declared number of entries is used only as far as the text can hold them.
//!
//! For compressed files the bounds hold for the uncompressed text, and for an archive for
//! everything before the end of the matrix. gzip compresses up to 1032-fold, so
//! [`ReadOptions::max_text_bytes`] is the limit to set. Only one block of the text is in memory,
//! and of an archive only the names of one member. Members that are not regular files (sparse files
//! included) are skipped.
//!
//! [`read_csr`] also takes 4 bytes for each row that the file declares, and 8 while it sorts
//! entries that are out of order, up to 32 GiB. Vectors of that length are needed later.
//! [`ReadOptions::max_dimension`] limits the number of rows and columns.

pub(crate) mod blocks;
mod body;
mod containers;
mod entries;
mod error;
mod header;
mod kinds;
mod number;
mod range;
mod write;

use std::io;
use std::marker::PhantomData;
use std::path::Path;

pub use error::{MatrixMarketError, Problem};
pub use header::Header;
pub use kinds::{Field, Format, Symmetry};
pub use range::RangeFile;
pub use write::{write_coo, write_csr, write_csr_symmetric, write_text};

use crate::convert::coo_to_csr;
use crate::{Coo, Csr, Scalar};
use blocks::{Blocks, Slice};
use body::Body;
use containers::ReadText;
use error::Fault;

/// Strictness of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Follows the specification, with the exceptions that common files need.
    #[default]
    Strict,
    /// Accepts deviations that have only one possible meaning.
    Lenient,
}

/// Options of the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// Strict by default.
    pub mode: Mode,
    /// Number of threads, at least 1; `None` (the default) uses the current rayon pool.
    pub threads: Option<usize>,
    /// Bytes of text that a thread parses at a time; 256 KiB by default. Affects speed and memory,
    /// never the result.
    pub chunk_bytes: usize,
    /// Maximum length of the uncompressed text in bytes; `u64::MAX` by default. It also stops a
    /// compressed file of unknown length, since gzip compresses up to 1032-fold.
    pub max_text_bytes: u64,
    /// Maximum number of rows and of columns; `u32::MAX` (more than any matrix has) by default. A
    /// short header can declare sizes that need long vectors and row pointers.
    pub max_dimension: u32,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Strict,
            threads: None,
            chunk_bytes: 1 << 18,
            max_text_bytes: u64::MAX,
            max_dimension: u32::MAX,
        }
    }
}

/// A matrix as read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MatrixFile<T> {
    /// The entries in their order in the file, duplicates and explicit zeros included, followed by
    /// those that symmetry implies.
    pub coo: Coo<T>,
    /// The header of the file; its number of entries is that before symmetric expansion.
    pub header: Header,
}

/// Reads a matrix from NAME.mtx, NAME.mtx.gz, or the file NAME.mtx (in any folder) of NAME.tar.gz
/// or NAME.tgz.
///
/// A plain file that is changed while it is read gives an error.
///
/// # Errors
/// Everything that [`MatrixMarketError`] lists.
pub fn read<T: Scalar>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<MatrixFile<T>, MatrixMarketError> {
    let path = path.as_ref();
    let limit = options.max_text_bytes;
    in_pool(options.threads, || containers::read_text(path, limit, Reader::new(path, options)))?
}

/// Reads a matrix from text; `file` stands for the file's name in errors.
///
/// # Errors
/// [`MatrixMarketError::Invalid`]; [`MatrixMarketError::Threads`].
pub fn read_bytes<T: Scalar>(
    file: &str,
    text: &[u8],
    options: &ReadOptions,
) -> Result<MatrixFile<T>, MatrixMarketError> {
    in_pool(options.threads, || Reader::new(Path::new(file), options).read(Slice(text)))?
}

/// Reads a matrix and converts it to CSR: duplicates summed, explicit zeros and empty rows kept.
///
/// # Errors
/// As [`read`].
pub fn read_csr<T: Scalar>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<Csr<T>, MatrixMarketError> {
    let path = path.as_ref();
    in_pool(options.threads, || {
        let options = ReadOptions { threads: None, ..options.clone() };
        Ok(coo_to_csr(&read(path, &options)?.coo))
    })?
}

/// Runs `work` on a pool of `threads` threads, or on the current pool.
fn in_pool<R: Send>(
    threads: Option<usize>,
    work: impl FnOnce() -> R + Send,
) -> Result<R, MatrixMarketError> {
    let Some(threads) = threads else {
        return Ok(work());
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build();
    let pool =
        pool.map_err(|error| MatrixMarketError::Threads { threads, reason: error.to_string() })?;
    Ok(pool.install(work))
}

/// Refuses complex values for a real matrix.
fn check_field<T: Scalar>(header: &Header) -> Result<(), Fault> {
    if header.field == Field::Complex && !T::IS_COMPLEX {
        let expected = format!("real values for a matrix of {}", T::NAME);
        return Err(Fault::new(1, Problem::Complex, expected, "the field \"complex\""));
    }
    Ok(())
}

/// Parses a text from front to back.
struct Reader<'a, T> {
    path: &'a Path,
    options: &'a ReadOptions,
    element: PhantomData<T>,
}

impl<'a, T> Reader<'a, T> {
    fn new(path: &'a Path, options: &'a ReadOptions) -> Self {
        Self { path, options, element: PhantomData }
    }

    fn fault(&self, fault: Fault) -> MatrixMarketError {
        fault.in_file(&self.path.display().to_string())
    }

    fn io(&self, cause: io::Error) -> MatrixMarketError {
        MatrixMarketError::Io { path: self.path.to_owned(), cause }
    }

    /// Parses the header with increasing block sizes and skips it; returns it and the number of the
    /// next line.
    fn header(
        &self,
        text: &mut impl Blocks,
        mut bytes: usize,
    ) -> Result<(Header, u64), MatrixMarketError> {
        loop {
            let (block, complete) = text.fill(bytes).map_err(|source| self.io(source))?;
            let parsed = header::parse_header(block, complete, self.options);
            if let Some(parsed) = parsed.map_err(|fault| self.fault(fault))? {
                text.consume(parsed.body);
                return Ok((parsed.header, parsed.line));
            }
            bytes = bytes.max(block.len()).saturating_mul(2);
        }
    }
}

impl<T: Scalar> ReadText for Reader<'_, T> {
    type Output = MatrixFile<T>;

    fn read(self, mut text: impl Blocks) -> Result<MatrixFile<T>, MatrixMarketError> {
        let chunk_bytes = self.options.chunk_bytes.max(1);
        // Several chunks for each thread, so that the slowest does not hold up a block for long.
        let block_bytes = chunk_bytes.saturating_mul(4 * rayon::current_num_threads());
        let (header, line) = self.header(&mut text, block_bytes)?;
        check_field::<T>(&header).map_err(|fault| self.fault(fault))?;
        let mut body = Body::new(&header, self.options.mode, chunk_bytes, line, text.bytes_left())
            .map_err(|fault| self.fault(fault))?;
        loop {
            let (block, last) = text.fill(block_bytes).map_err(|source| self.io(source))?;
            let bytes = block.len();
            body.append(block).map_err(|fault| self.fault(fault))?;
            if last {
                break;
            }
            text.consume(bytes);
        }
        let (rows, cols, values) = body.finish().map_err(|fault| self.fault(fault))?;
        let shape = (header.rows as usize, header.cols as usize);
        let coo = Coo::from_valid(shape, rows, cols, values);
        Ok(MatrixFile { coo, header })
    }
}
