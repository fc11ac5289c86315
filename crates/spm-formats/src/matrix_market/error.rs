//! Errors of reading and writing Matrix Market files.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::kinds::Symmetry;

/// Why a matrix could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MatrixMarketError {
    /// The file could not be opened, read, decompressed or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system or of the decompressor.
        cause: io::Error,
    },
    /// The text is not valid. The error is the same for every number of threads.
    #[error("{file}:{line}: expected {expected}, found {found}")]
    Invalid {
        /// The file.
        file: String,
        /// Line number, from 1.
        line: u64,
        /// What kind of mistake it is.
        problem: Problem,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The name of the file does not tell how it is packed.
    #[error(
        "{}: expected a name that ends in .mtx, .mtx.gz, .tar.gz or .tgz",
        path.display()
    )]
    UnknownEnding {
        /// The file.
        path: PathBuf,
    },
    /// The archive does not hold the matrix that its name promises.
    #[error("{}: expected a file named {member} in the archive, found none", path.display())]
    NotInArchive {
        /// The archive.
        path: PathBuf,
        /// File name looked for.
        member: String,
    },
    /// The matrix to write does not have the symmetry that its banner would name.
    #[error(
        "{}: expected a {symmetry} matrix, found {found}",
        path.display()
    )]
    NotSymmetric {
        /// The file.
        path: PathBuf,
        /// The symmetry asked for.
        symmetry: Symmetry,
        /// The sizes, or an entry that contradicts the symmetry.
        found: String,
    },
    /// The thread pool asked for could not be started.
    #[error("{threads} threads could not be started: {reason}")]
    Threads {
        /// Number of threads asked for.
        threads: usize,
        /// What the thread pool said.
        reason: String,
    },
}

/// Kinds of mistakes in the text of a Matrix Market file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// The banner is missing or malformed, or its words do not go together.
    Banner,
    /// The size line is missing or malformed, or its numbers do not go together.
    Size,
    /// A size does not fit 32-bit indices.
    TooLarge,
    /// An index is not a number, or is outside the matrix.
    Index,
    /// A value is missing, not a number, or beyond the range of its type.
    Value,
    /// A line goes on after its last number.
    ExtraToken,
    /// More or fewer entries than the size line declares.
    EntryCount,
    /// An entry contradicts the symmetry of the banner.
    Symmetry,
    /// A comment between entries, in strict mode.
    Comment,
    /// The matrix is complex and a real one was asked for.
    Complex,
    /// The entries do not fit in memory.
    Memory,
}

/// A mistake at a line, before the name of the file is attached.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) line: u64,
    pub(crate) problem: Problem,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Fault {
    #[cold]
    pub(crate) fn new(
        line: u64,
        problem: Problem,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { line, problem, expected: expected.into(), found: found.into() }
    }

    pub(crate) fn in_file(self, file: &str) -> MatrixMarketError {
        let Self { line, problem, expected, found } = self;
        MatrixMarketError::Invalid { file: file.to_owned(), line, problem, expected, found }
    }
}

/// How a piece of the file is shown in an error: quoted, shortened, harmless to a terminal.
pub(crate) fn quoted(text: &[u8]) -> String {
    const SHOWN: usize = 40;
    let shown = &text[..text.len().min(SHOWN)];
    let dots = if text.len() > SHOWN { "..." } else { "" };
    format!("\"{}{dots}\"", String::from_utf8_lossy(shown).escape_debug())
}
