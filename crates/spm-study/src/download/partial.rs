//! A file that is still being fetched, and what is needed to go on with it later.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::FetchError;
use crate::files::{remove_if_there, write_whole};

/// Where the bytes of a partial file came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// Address that was asked (before redirects).
    pub url: String,
    /// Strong entity tag of the server's file.
    pub etag: Option<String>,
    /// Its time of modification, as the server words it.
    pub last_modified: Option<String>,
    /// Its length in bytes.
    pub length: Option<u64>,
}

impl Origin {
    /// What If-Range may carry: the strong entity tag, else the time of modification.
    pub(super) fn validator(&self) -> Option<&str> {
        self.etag.as_deref().or(self.last_modified.as_deref())
    }
}

/// `FILE.part` with its origin in `FILE.part.json`, to become `FILE` once complete and verified.
#[derive(Debug)]
pub(super) struct Partial {
    target: PathBuf,
    path: PathBuf,
    origin_path: PathBuf,
}

impl Partial {
    /// The partial file of `target`.
    pub(super) fn new(target: &Path) -> Self {
        let path = suffixed(target, ".part");
        let origin_path = suffixed(target, ".part.json");
        Self { target: target.to_owned(), path, origin_path }
    }

    /// The partial file itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes there so far.
    pub(super) fn len(&self) -> u64 {
        self.path.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Where those bytes came from; `None` when that is not known, so that they are of no use.
    pub(super) fn origin(&self) -> Option<Origin> {
        serde_json::from_slice(&fs::read(&self.origin_path).ok()?).ok()
    }

    /// Whether every byte has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.origin().and_then(|origin| origin.length) == Some(self.len()) && self.path.exists()
    }

    /// Empties the file, notes its origin, and opens it.
    pub(super) fn start(&self, origin: &Origin) -> Result<File, FetchError> {
        let file = File::create(&self.path).map_err(FetchError::local(&self.path))?;
        // The origin comes second: a kill in between leaves an empty file, which is harmless,
        // where the other order would leave old bytes under a new origin.
        self.note(origin)?;
        Ok(file)
    }

    /// Notes where the bytes come from.
    pub(super) fn note(&self, origin: &Origin) -> Result<(), FetchError> {
        let text = serde_json::to_vec(origin).expect("an origin is plain strings and numbers");
        write_whole(&self.origin_path, &text).map_err(FetchError::local(&self.origin_path))
    }

    /// Opens the file at its end.
    pub(super) fn append(&self) -> Result<File, FetchError> {
        OpenOptions::new().append(true).open(&self.path).map_err(FetchError::local(&self.path))
    }

    /// Gives the file its final name.
    pub(super) fn finish(self) -> Result<(), FetchError> {
        fs::rename(&self.path, &self.target).map_err(FetchError::local(&self.target))?;
        self.discard()
    }

    /// Removes what there is.
    pub(super) fn discard(&self) -> Result<(), FetchError> {
        remove_if_there(&self.path).map_err(FetchError::local(&self.path))?;
        remove_if_there(&self.origin_path).map_err(FetchError::local(&self.origin_path))
    }
}

/// `path` with `suffix` behind its file name.
pub(super) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
