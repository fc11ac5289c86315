//! Binary caches of Matrix Market files, so that a matrix loads quickly the second time.
//!
//! A cache is an uncompressed `.npz` archive of a CSR matrix as `scipy.sparse.save_npz` writes it
//! (`indices`, `indptr`, `format`, `shape`, `data`), so that `scipy.sparse.load_npz` opens it. One
//! more array, `spm_source`, which SciPy passes over, records the text file that it came from.
//!
//! ```no_run
//! use spm_formats::cache;
//! use spm_formats::matrix_market::ReadOptions;
//!
//! // Reads the text and writes `matrix.mtx.f64.npz`; from then on reads that.
//! let matrix = cache::read_csr::<f64>("matrix.mtx", &ReadOptions::default())?;
//! # Ok::<(), cache::CacheError>(())
//! ```

mod npy;
mod npz;
mod range;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use thiserror::Error;

pub use npz::{load_npz, save_npz};
pub use range::NpzFile;

use crate::matrix_market::{self, MatrixMarketError, Mode, ReadOptions};
use crate::{Csr, CsrView, Scalar};

/// Why a cache could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The file could not be opened, read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The file is not a matrix as this module writes it.
    #[error("{}: expected {expected}, found {found}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The text file could not be read.
    #[error(transparent)]
    Text(#[from] MatrixMarketError),
}

/// What is wrong inside an archive, before the name of the file is attached.
#[derive(Debug)]
enum Fault {
    Io(io::Error),
    Invalid { expected: String, found: String },
}

impl Fault {
    fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Invalid { expected: expected.into(), found: found.into() }
    }

    fn within(self, member: &str) -> Self {
        match self {
            Self::Invalid { expected, found } => {
                Self::Invalid { expected: format!("{expected} in {member}"), found }
            }
            io => io,
        }
    }

    fn in_file(self, path: &Path) -> CacheError {
        let path = path.to_owned();
        match self {
            Self::Io(cause) => CacheError::Io { path, cause },
            Self::Invalid { expected, found } => CacheError::Invalid { path, expected, found },
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<zip::result::ZipError> for Fault {
    fn from(error: zip::result::ZipError) -> Self {
        match error {
            zip::result::ZipError::Io(error) => Self::Io(error),
            other => Self::new("an .npz archive of a CSR matrix", other.to_string()),
        }
    }
}

/// The state of a text file: a cache made from another state is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    bytes: u64,
    modified_seconds: i64,
    modified_nanoseconds: u32,
    /// Whether the file was read in lenient mode. Such a cache is not used in strict mode.
    lenient: bool,
}

/// The array that records the text file.
const SOURCE: &str = "spm_source";

/// First element of `spm_source`; another one means another layout, hence a stale cache.
const SOURCE_VERSION: i64 = 1;

impl Source {
    /// The state of the text file `text` now, and the mode in which it is read.
    ///
    /// # Errors
    /// [`CacheError::Io`] when there is no such file.
    pub fn of(text: &Path, mode: Mode) -> Result<Self, CacheError> {
        let state = || -> io::Result<Self> {
            let metadata = std::fs::metadata(text)?;
            let modified = metadata.modified()?;
            // Times before 1970 count backwards; they need to be told apart, not to be right.
            let (since, sign) = match modified.duration_since(UNIX_EPOCH) {
                Ok(since) => (since, 1),
                Err(before) => (before.duration(), -1),
            };
            Ok(Self {
                bytes: metadata.len(),
                modified_seconds: sign * since.as_secs() as i64,
                modified_nanoseconds: since.subsec_nanos(),
                lenient: mode == Mode::Lenient,
            })
        };
        state().map_err(|cause| CacheError::Io { path: text.to_owned(), cause })
    }

    fn to_array(self) -> [i64; 5] {
        let Self { bytes, modified_seconds, modified_nanoseconds, lenient } = self;
        let nanoseconds = i64::from(modified_nanoseconds);
        [SOURCE_VERSION, bytes as i64, modified_seconds, nanoseconds, i64::from(lenient)]
    }

    /// Whether a cache with this record is valid for the text in its state `now`.
    fn serves(record: &[i64], now: Self) -> bool {
        let strict = Self { lenient: false, ..now };
        record == strict.to_array() || now.lenient && record == now.to_array()
    }
}

/// The path of the cache of a text file: beside it, `NAME.mtx.f64.npz` for `NAME.mtx`.
pub fn path_for<T: Scalar>(text: &Path) -> PathBuf {
    let mut path = OsString::from(text);
    path.push(format!(".{}.npz", T::NAME));
    path.into()
}

/// Reads a Matrix Market file through its cache.
///
/// A fresh cache is read. Otherwise the text is read and the cache is written; a damaged cache is
/// replaced like a stale one. The limits of `options` apply to the text. The memory of reading a
/// cache is bounded by its length ([`load_npz`]).
///
/// # Errors
/// Those of [`matrix_market::read_csr`], and those of writing the cache (a folder that is not
/// writable).
pub fn read_csr<T: Scalar>(
    text: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<Csr<T>, CacheError> {
    let text = text.as_ref();
    // Looked at before the text is read: a change meanwhile makes the new cache stale.
    let source = Source::of(text, options.mode)?;
    if let Ok(Some(matrix)) = load(text, source) {
        return Ok(matrix);
    }
    let matrix = matrix_market::read_csr(text, options)?;
    store(text, source, matrix.view())?;
    Ok(matrix)
}

/// The cached matrix of a text file, or `None` when there is no cache or it is stale.
///
/// # Errors
/// [`CacheError::Io`] and [`CacheError::Invalid`] when there is a cache that cannot be read.
pub fn load<T: Scalar>(text: &Path, source: Source) -> Result<Option<Csr<T>>, CacheError> {
    let path = path_for::<T>(text);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(CacheError::Io { path, cause }),
    };
    let read = || -> Result<Option<Csr<T>>, Fault> {
        let bytes = file.metadata()?.len();
        let mut archive = npz::open_archive(file)?;
        let record = npz::member(&mut archive, bytes, SOURCE, npy::integers)?;
        if !Source::serves(&record, source) {
            return Ok(None);
        }
        npz::read_archive(&mut archive, bytes).map(Some)
    };
    read().map_err(|fault| fault.in_file(&path))
}

/// Writes the cache of a text file, replacing a former one in one step. Returns where it is.
///
/// # Errors
/// [`CacheError::Io`].
pub fn store<T: Scalar>(
    text: &Path,
    source: Source,
    matrix: CsrView<'_, T>,
) -> Result<PathBuf, CacheError> {
    let path = path_for::<T>(text);
    npz::write_npz(&path, matrix, Some(source))?;
    Ok(path)
}
