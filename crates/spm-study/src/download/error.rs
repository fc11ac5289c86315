//! Why a file was not fetched.

use std::io;
use std::path::{Path, PathBuf};

use indicatif::HumanBytes;

/// Why a file was not fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// This machine cannot take the file: disk full, no permission.
    #[error("cannot write {path}: {error}")]
    Local {
        /// File that was being written.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file is larger than was allowed; nothing was stored.
    #[error("the file takes {}, more than the limit of {}", HumanBytes(*.bytes), HumanBytes(*.limit))]
    TooLarge {
        /// Length in bytes; when the server does not tell it, what had arrived by then.
        bytes: u64,
        /// Largest length that was allowed.
        limit: u64,
    },
    /// No server answers at all.
    #[error("no server can be reached: {0}")]
    Unreachable(String),
    /// Servers answer, none gives the file.
    #[error("{0}")]
    Refused(String),
}

impl FetchError {
    /// What an error of the system while writing `path` becomes.
    pub(super) fn local(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::Local { path: path.to_owned(), error }
    }
}
