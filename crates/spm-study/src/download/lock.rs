//! The lock file: what was downloaded, from where, with which hash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::files::write_whole;

/// Name of the lock file in the destination folder.
pub(super) const FILE_NAME: &str = "suitesparse.lock.json";

/// How far an archive's contents are known to be the collection's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verified {
    /// Its SHA-256 is the catalogue's.
    Catalogue,
    /// Its SHA-256 is the one that an earlier download recorded here.
    EarlierDownload,
    /// The catalogue has another SHA-256 or none; the archive is whole and the matrix has the
    /// dimensions and the entries that are published for it.
    Dimensions,
}

/// One downloaded matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Locked {
    /// SHA-256 of the archive NAME.tar.gz, in hexadecimal.
    pub sha256_tar_gz: String,
    /// Its length in bytes.
    pub tar_gz_bytes: u64,
    /// Where it came from.
    pub url: String,
    /// When, as an HTTP date.
    pub retrieved: String,
    /// What its contents were compared with.
    pub verified: Verified,
    /// Length of NAME.mtx in bytes.
    pub mtx_bytes: u64,
    /// Other files of the archive that were kept; `None` when they were not asked for.
    pub extras: Option<Vec<String>>,
}

/// All downloaded matrices by `GROUP/NAME`.
#[derive(Debug)]
pub(super) struct LockFile {
    path: PathBuf,
    matrices: BTreeMap<String, Locked>,
}

impl LockFile {
    /// Reads the lock file of the folder `dest`; none there is an empty one.
    ///
    /// # Errors
    /// When the file is there and cannot be read or understood.
    pub(super) fn open(dest: &Path) -> anyhow::Result<Self> {
        let path = dest.join(FILE_NAME);
        let matrices = match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| {
                format!("{} is not a lock file of this command", path.display())
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => {
                return Err(error).with_context(|| format!("reading {}", path.display()));
            }
        };
        Ok(Self { path, matrices })
    }

    /// What is recorded of `GROUP/NAME`.
    pub(super) fn get(&self, id: &str) -> Option<&Locked> {
        self.matrices.get(id)
    }

    /// Records a matrix and writes the file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn record(&mut self, id: String, locked: Locked) -> anyhow::Result<()> {
        self.matrices.insert(id, locked);
        let mut text = serde_json::to_vec_pretty(&self.matrices)?;
        text.push(b'\n');
        write_whole(&self.path, &text).with_context(|| format!("writing {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_read_again() {
        let dest = tempfile::tempdir().unwrap();
        let locked = Locked {
            sha256_tar_gz: "ab".repeat(32),
            tar_gz_bytes: 17,
            url: "http://127.0.0.1/MM/HB/west0067.tar.gz".into(),
            retrieved: "Sun, 06 Nov 1994 08:49:37 GMT".into(),
            verified: Verified::Dimensions,
            mtx_bytes: 34,
            extras: Some(vec!["west0067_b.mtx".into()]),
        };
        let mut lock = LockFile::open(dest.path()).unwrap();
        assert_eq!(lock.get("HB/west0067"), None);
        lock.record("HB/west0067".into(), locked.clone()).unwrap();
        assert_eq!(LockFile::open(dest.path()).unwrap().get("HB/west0067"), Some(&locked));
    }

    #[test]
    fn another_file_of_that_name_is_not_overwritten() {
        let dest = tempfile::tempdir().unwrap();
        std::fs::write(dest.path().join(FILE_NAME), "precious").unwrap();
        let error = LockFile::open(dest.path()).unwrap_err();
        assert!(format!("{error:#}").contains("not a lock file"), "{error:#}");
    }
}
