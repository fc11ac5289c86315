//! Binary caches of text files: the second load of a matrix at the speed of memory.
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

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use thiserror::Error;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::csr::require_csr;
use crate::matrix_market::{self, MatrixMarketError, Mode, ReadOptions};
use crate::replace::replace_file;
use crate::{Csr, CsrView, FormatError, Scalar};

/// Why a cache could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is not a matrix as this module writes it.
    #[error("{}: expected {expected}, found {found}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The matrix to be written is not in CSR.
    #[error(transparent)]
    Format(#[from] FormatError),
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
            Self::Io(source) => CacheError::Io { path, source },
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
    /// A cache of a file that was read in lenient mode does not serve strict mode.
    lenient: bool,
}

/// The array that records the text file.
const SOURCE: &str = "spm_source";

/// Bytes read from a file at a time.
const BUFFER: usize = 1 << 18;

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
        state().map_err(|source| CacheError::Io { path: text.to_owned(), source })
    }

    fn to_array(self) -> [i64; 5] {
        let Self { bytes, modified_seconds, modified_nanoseconds, lenient } = self;
        let nanoseconds = i64::from(modified_nanoseconds);
        [SOURCE_VERSION, bytes as i64, modified_seconds, nanoseconds, i64::from(lenient)]
    }

    /// Whether a cache with this record stands for the text in its state `now`.
    fn serves(record: &[i64], now: Self) -> bool {
        let strict = Self { lenient: false, ..now };
        record == strict.to_array() || now.lenient && record == now.to_array()
    }
}

/// Where the cache of a text file is: beside it, `NAME.mtx` as `NAME.mtx.f64.npz`.
pub fn path_for<T: Scalar>(text: &Path) -> PathBuf {
    let mut path = OsString::from(text);
    path.push(format!(".{}.npz", T::NAME));
    path.into()
}

/// Reads a Matrix Market file through its cache: from the cache when that is fresh, else from the
/// text, writing the cache. A damaged cache is replaced like a stale one.
///
/// # Errors
/// Those of [`matrix_market::read_csr`], and those of writing the cache.
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
        Err(source) => return Err(CacheError::Io { path, source }),
    };
    let read = || -> Result<Option<Csr<T>>, Fault> {
        let bytes = file.metadata()?.len();
        let mut archive = ZipArchive::new(BufReader::with_capacity(BUFFER, file))?;
        let record = member(&mut archive, bytes, SOURCE, npy::integers)?;
        if !Source::serves(&record, source) {
            return Ok(None);
        }
        read_archive(&mut archive, bytes).map(Some)
    };
    read().map_err(|fault| fault.in_file(&path))
}

/// Writes the cache of a text file, replacing a former one in one step. Returns where it is.
///
/// # Errors
/// [`CacheError::Io`]; [`CacheError::Format`] for a CSC matrix.
pub fn store<T: Scalar>(
    text: &Path,
    source: Source,
    matrix: CsrView<'_, T>,
) -> Result<PathBuf, CacheError> {
    let path = path_for::<T>(text);
    write_npz(&path, matrix, Some(source))?;
    Ok(path)
}

/// Reads a CSR matrix from an uncompressed `.npz` archive, of this module or of
/// `scipy.sparse.save_npz(..., compressed=False)`.
///
/// Whatever the file declares, no array has more elements than the file has bytes for, all memory is
/// at most 8 times the file's length plus 2 MiB, and time is linear in it; the indices are checked.
///
/// # Errors
/// [`CacheError::Io`]; [`CacheError::Invalid`] also for values that are not of type `T`.
pub fn load_npz<T: Scalar>(path: impl AsRef<Path>) -> Result<Csr<T>, CacheError> {
    let path = path.as_ref();
    let read = || -> Result<Csr<T>, Fault> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        read_archive(&mut ZipArchive::new(BufReader::with_capacity(BUFFER, file))?, bytes)
    };
    read().map_err(|fault| fault.in_file(path))
}

/// Writes a CSR matrix as `scipy.sparse.save_npz(..., compressed=False)` does, replacing the file
/// in one step.
///
/// # Errors
/// [`CacheError::Io`]; [`CacheError::Format`] for a CSC matrix.
pub fn save_npz<T: Scalar>(
    path: impl AsRef<Path>,
    matrix: CsrView<'_, T>,
) -> Result<(), CacheError> {
    write_npz(path.as_ref(), matrix, None)
}

fn write_npz<T: Scalar>(
    path: &Path,
    matrix: CsrView<'_, T>,
    source: Option<Source>,
) -> Result<(), CacheError> {
    require_csr(&matrix)?;
    let pointers = matrix.proper_indptr();
    replace_file(path, |file| {
        let mut archive = Archive { zip: ZipWriter::new(file) };
        // SciPy's own index types: 64 bits only where 32 signed bits do not do.
        let (rows, cols) = matrix.shape();
        let largest = rows.max(cols).max(matrix.nnz());
        let wide = i32::try_from(largest).is_err();
        let index = |index: &u32| u64::from(*index).to_le_bytes();
        for (name, indices) in [("indices", matrix.indices()), ("indptr", &pointers[..])] {
            if wide {
                archive.add(name, "<i8", indices, index)?;
            } else {
                archive.add(name, "<i4", indices, |index| index.to_le_bytes())?;
            }
        }
        archive.start("format", "|S3", "()", 3)?.write_all(b"csr")?;
        archive.add("shape", "<i8", &[rows as u64, cols as u64], |size| size.to_le_bytes())?;
        if T::BYTES == 4 {
            let bytes = |value: &T| (value.to_bits64() as u32).to_le_bytes();
            archive.add("data", "<f4", matrix.data(), bytes)?;
        } else {
            archive.add("data", "<f8", matrix.data(), |value| value.to_bits64().to_le_bytes())?;
        }
        if let Some(source) = source {
            archive.add(SOURCE, "<i8", &source.to_array(), |number| number.to_le_bytes())?;
        }
        archive.zip.finish()?;
        Ok(())
    })
    .map_err(|source| CacheError::Io { path: path.to_owned(), source })
}

/// An archive that is being written.
struct Archive<W: Write + Seek> {
    zip: ZipWriter<W>,
}

impl<W: Write + Seek> Archive<W> {
    /// Begins the array `name` of `bytes` bytes.
    fn start(
        &mut self,
        name: &str,
        descr: &str,
        shape: &str,
        bytes: usize,
    ) -> io::Result<&mut ZipWriter<W>> {
        let header = npy::header(descr, shape);
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(header.len() + bytes >= u32::MAX as usize);
        self.zip.start_file(format!("{name}.npy"), options)?;
        self.zip.write_all(&header)?;
        Ok(&mut self.zip)
    }

    /// Adds a vector.
    fn add<E, const WIDTH: usize>(
        &mut self,
        name: &str,
        descr: &str,
        elements: &[E],
        bytes: impl Fn(&E) -> [u8; WIDTH],
    ) -> io::Result<()> {
        let shape = format!("({},)", elements.len());
        let out = self.start(name, descr, &shape, WIDTH * elements.len())?;
        let mut piece = Vec::with_capacity(WIDTH * npy::PIECE);
        for elements in elements.chunks(npy::PIECE) {
            piece.clear();
            elements.iter().for_each(|element| piece.extend_from_slice(&bytes(element)));
            out.write_all(&piece)?;
        }
        Ok(())
    }
}

/// Opens the array `name` of an archive and hands its header and its elements to `read`.
fn member<A: Read + Seek, R>(
    archive: &mut ZipArchive<A>,
    file_bytes: u64,
    name: &str,
    read: impl FnOnce(&npy::Header, &mut dyn Read) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let file = format!("{name}.npy");
    if archive.index_for_name(&file).is_none() {
        return Err(Fault::new(format!("an array {file}"), "none"));
    }
    let mut entry = archive.by_name(&file)?;
    if entry.compression() != CompressionMethod::Stored {
        let found = format!("{file} compressed");
        return Err(Fault::new("an uncompressed archive", found));
    }
    if entry.size() > file_bytes {
        let found = format!("{file} of {} bytes in a file of {file_bytes}", entry.size());
        return Err(Fault::new("arrays inside the file", found));
    }
    let bytes = entry.size();
    let header = npy::Header::read(&mut entry, bytes).map_err(|fault| fault.within(&file))?;
    let result = read(&header, &mut entry).map_err(|fault| fault.within(&file))?;
    // Reading to the end is what makes the archive compare its checksum.
    if entry.read(&mut [0])? != 0 {
        return Err(Fault::new(format!("the end of {file}"), "more bytes"));
    }
    Ok(result)
}

fn read_archive<A: Read + Seek, T: Scalar>(
    archive: &mut ZipArchive<A>,
    file_bytes: u64,
) -> Result<Csr<T>, Fault> {
    let format = member(archive, file_bytes, "format", npy::text)?;
    if format != "csr" {
        return Err(Fault::new("the format \"csr\"", format!("{format:?}")));
    }
    let shape = member(archive, file_bytes, "shape", npy::integers)?;
    let [rows, cols] = shape[..] else {
        return Err(Fault::new("a shape of 2 sizes", format!("{} sizes", shape.len())));
    };
    let size = |size: i64| {
        u32::try_from(size).map_err(|_| Fault::new("sizes that fit 32 bits", size.to_string()))
    };
    let (rows, cols) = (size(rows)? as usize, size(cols)? as usize);
    let pointers = member(archive, file_bytes, "indptr", npy::indices)?;
    let indices = member(archive, file_bytes, "indices", npy::indices)?;
    let values: Vec<T> = member(archive, file_bytes, "data", npy::values)?;
    if u32::try_from(indices.len()).is_err() {
        return Err(Fault::new("at most 2^32 - 1 entries", indices.len().to_string()));
    }
    Csr::try_new((rows, cols), pointers, indices, values)
        .map_err(|(_, _, _, error)| Fault::new("arrays of a CSR matrix", error.to_string()))
}
