//! One matrix: fetched, verified, unpacked, recorded, given its final name.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, anyhow};
use sha2::{Digest, Sha256};

use super::archive::{self, ArchiveError};
use super::error::FetchError;
use super::fetch::{Fetcher, Request};
use super::lock::{LockFile, Locked, Verified};
use super::partial::{Partial, suffixed};
use super::select::Target;
use crate::files::remove_if_there;
use crate::hash::hexadecimal;

/// What is kept of an archive besides NAME.mtx.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keep {
    /// The archive itself.
    pub archive: bool,
    /// Right-hand sides, solutions, coordinates.
    pub extras: bool,
}

/// The files of one matrix in the destination folder.
#[derive(Debug)]
pub(super) struct Place {
    /// `DEST/GROUP/NAME.mtx`.
    pub matrix: PathBuf,
    /// `DEST/GROUP/NAME.tar.gz`.
    pub archive: PathBuf,
    /// `DEST/GROUP/NAME/`, for right-hand sides and the like.
    pub extras: PathBuf,
}

impl Place {
    /// Where the files of `target` lie below `dest`.
    pub(super) fn new(dest: &Path, target: &Target) -> Self {
        let extras = dest.join(&target.record.group).join(&target.record.name);
        let (matrix, archive) = (suffixed(&extras, ".mtx"), suffixed(&extras, ".tar.gz"));
        Self { matrix, archive, extras }
    }

    /// Bytes of the archive that have already arrived.
    pub(super) fn partial_bytes(&self) -> u64 {
        Partial::new(&self.archive).len()
    }

    /// Whether the matrix is there as it was recorded, with its companions if `keep` asks for them.
    pub(super) fn is_complete(&self, locked: Option<&Locked>, keep: Keep) -> bool {
        let bytes = self.matrix.metadata().ok().map(|metadata| metadata.len());
        locked.is_some_and(|locked| {
            let extras = locked
                .extras
                .as_ref()
                .is_some_and(|names| names.iter().all(|name| self.extras.join(name).exists()));
            bytes == Some(locked.mtx_bytes)
                && (extras || !keep.extras)
                && (self.archive.exists() || !keep.archive)
        })
    }

    /// Removes what an interrupted earlier run left beside a complete matrix.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub(super) fn clean(&self) -> Result<(), FetchError> {
        Partial::new(&self.archive).discard()
    }
}

/// A new matrix.
#[derive(Debug)]
pub(super) struct Installed {
    /// Length of its archive in bytes.
    pub tar_gz_bytes: u64,
    /// What the contents were compared with.
    pub verified: Verified,
}

/// Why a matrix was not installed.
#[derive(Debug, thiserror::Error)]
pub(super) enum InstallError {
    /// Transport: see the variants there.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The archive came, and is not what it should be.
    #[error("{0:#}")]
    Archive(anyhow::Error),
}

/// Fetches the archive of `target`, verifies it, and puts NAME.mtx in its place.
///
/// Warnings (another SHA-256 than the catalogue's) go to stderr. Until the last step nothing has
/// the name of a finished file, and every step can be taken again after a kill.
///
/// # Errors
/// When the archive is not to be had or is not the matrix; a bad archive is removed, so that the
/// next run fetches it afresh.
pub(super) fn install(
    dest: &Path,
    target: &Target,
    keep: Keep,
    max_bytes: Option<u64>,
    fetcher: &mut Fetcher,
    lock: &mut LockFile,
) -> Result<Installed, InstallError> {
    let place = Place::new(dest, target);
    let folder = place.matrix.parent().expect("DEST/GROUP/NAME.mtx has a parent");
    fs::create_dir_all(folder).map_err(local(folder))?;
    let partial = Partial::new(&place.archive);
    let (archive_file, url) = if place.archive.exists() {
        // Kept by an earlier run, or put there by hand.
        let url = lock.get(&target.id()).map_or_else(String::new, |locked| locked.url.clone());
        (place.archive.clone(), url)
    } else {
        let path = format!("MM/{}.tar.gz", target.id());
        fetcher.fetch(&Request { path: &path, label: &target.id(), max_bytes }, &partial)?;
        let url = partial.origin().map_or_else(String::new, |origin| origin.url);
        (partial.path().to_owned(), url)
    };

    let unpacked = unpack_verified(&archive_file, target, &place, keep, lock);
    let (unpacked, sha256, verified) = match unpacked {
        Ok(unpacked) => unpacked,
        Err(error) => {
            remove_if_there(&suffixed(&place.matrix, ".part")).map_err(local(&place.matrix))?;
            if matches!(error, InstallError::Archive(_)) {
                partial.discard()?;
            }
            return Err(error);
        }
    };
    let bytes = |path: &Path| path.metadata().map(|metadata| metadata.len()).map_err(local(path));
    let tar_gz_bytes = bytes(&archive_file)?;
    let locked = Locked {
        sha256_tar_gz: sha256,
        tar_gz_bytes,
        url,
        retrieved: httpdate::fmt_http_date(SystemTime::now()),
        verified,
        mtx_bytes: bytes(&unpacked.matrix)?,
        extras: unpacked.extras.as_ref().map(|(_, names)| names.clone()),
    };
    // The record comes first: NAME.mtx, once there, is always one that the lock file knows.
    lock.record(target.id(), locked).map_err(InstallError::Archive)?;
    if let Some((staged, names)) = &unpacked.extras {
        if names.is_empty() {
            fs::remove_dir(staged).map_err(local(staged))?;
        } else {
            if place.extras.exists() {
                fs::remove_dir_all(&place.extras).map_err(local(&place.extras))?;
            }
            fs::rename(staged, &place.extras).map_err(local(&place.extras))?;
        }
    }
    fs::rename(&unpacked.matrix, &place.matrix).map_err(local(&place.matrix))?;
    if archive_file != place.archive {
        if keep.archive { partial.finish()? } else { partial.discard()? }
    }
    Ok(Installed { tar_gz_bytes, verified })
}

/// Files unpacked under temporary names.
struct Unpacked {
    matrix: PathBuf,
    extras: Option<(PathBuf, Vec<String>)>,
}

fn unpack_verified(
    archive_file: &Path,
    target: &Target,
    place: &Place,
    keep: Keep,
    lock: &LockFile,
) -> Result<(Unpacked, String, Verified), InstallError> {
    let sha256 = sha256(archive_file)
        .with_context(|| format!("reading {}", archive_file.display()))
        .map_err(InstallError::Archive)?;
    let recorded = lock.get(&target.id()).map(|locked| locked.sha256_tar_gz.as_str());
    let verified = if target.sha256 == Some(sha256.as_str()) {
        Verified::Catalogue
    } else if recorded == Some(sha256.as_str()) {
        Verified::EarlierDownload
    } else {
        Verified::Dimensions
    };
    let matrix = suffixed(&place.matrix, ".part");
    let extras = keep.extras.then(|| archive::empty_folder(suffixed(&place.extras, ".part")));
    let extras = extras.transpose()?;
    let names = archive::unpack(archive_file, &target.record, &matrix, extras.as_deref()).map_err(
        |error| match error {
            ArchiveError::Local(error) => InstallError::Fetch(error),
            ArchiveError::Bad(_) => InstallError::Archive(anyhow!(error)),
        },
    )?;
    let difference = archive::compare_header(&matrix, &target.record)
        .with_context(|| format!("reading {}", matrix.display()))
        .map_err(InstallError::Archive)?;
    let other_hash = target.sha256.is_some_and(|expected| expected != sha256);
    match (verified, difference) {
        (Verified::Catalogue, Some(difference)) => {
            eprintln!("warning: {}: {difference}; its SHA-256 is the catalogue's", target.id());
        }
        (_, Some(difference)) => {
            let hash = if other_hash { " and its SHA-256 is not the catalogue's" } else { "" };
            return Err(InstallError::Archive(anyhow!("refused: {difference}{hash}")));
        }
        (Verified::Dimensions, None) if other_hash => eprintln!(
            "warning: {}: the archive's SHA-256 {sha256} is not the catalogue's; its dimensions and \
             entries are as published, and the hash is recorded in the lock file",
            target.id()
        ),
        _ => {}
    }
    Ok((Unpacked { matrix, extras: extras.map(|folder| (folder, names)) }, sha256, verified))
}

fn local(path: &Path) -> impl Fn(io::Error) -> InstallError {
    move |error| FetchError::local(path)(error).into()
}

/// SHA-256 of a file in hexadecimal.
fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
    }
    Ok(hexadecimal(hasher))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::index::{Record, Values};
    use super::super::retry::Backoff;
    use super::*;

    const MATRIX: &[u8] = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 3.5\n";

    fn archive_of(name: &str, contents: &[u8]) -> Vec<u8> {
        let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        let mut builder = tar::Builder::new(gzip);
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        builder.append_data(&mut header, name, contents).unwrap();
        builder.into_inner().unwrap().finish().unwrap()
    }

    /// Installs from an archive that lies in the folder already: no server is asked.
    fn install_kept(entries: u64, known_hash: bool) -> Result<Verified, InstallError> {
        let dest = tempfile::tempdir().unwrap();
        let (group, name) = ("G".to_owned(), "a".to_owned());
        let record = Record { group, name, rows: 2, cols: 2, entries, values: Values::Real };
        let mut target = Target { record, sha256: None };
        let place = Place::new(dest.path(), &target);
        fs::create_dir(place.matrix.parent().unwrap()).unwrap();
        fs::write(&place.archive, archive_of("a/a.mtx", MATRIX)).unwrap();
        let hash = if known_hash { sha256(&place.archive).unwrap() } else { "0".repeat(64) };
        target.sha256 = Some(hash.leak());
        let backoff =
            Backoff { retries: 0, first_wait: Duration::ZERO, max_wait: Duration::from_secs(1) };
        let mut fetcher = Fetcher::new(Vec::new(), backoff, Box::new(|_| ()));
        let mut lock = LockFile::open(dest.path()).unwrap();
        let keep = Keep { archive: true, extras: false };
        let installed = install(dest.path(), &target, keep, None, &mut fetcher, &mut lock);
        assert_eq!(place.matrix.exists(), installed.is_ok());
        assert_eq!(place.is_complete(lock.get("G/a"), keep), installed.is_ok());
        installed.map(|installed| installed.verified)
    }

    #[test]
    fn the_known_hash_decides() {
        assert_eq!(install_kept(1, true).unwrap(), Verified::Catalogue);
        // The very archive of the catalogue: the published count was the wrong one.
        assert_eq!(install_kept(9, true).unwrap(), Verified::Catalogue);
    }

    #[test]
    fn without_it_the_header_decides() {
        assert_eq!(install_kept(1, false).unwrap(), Verified::Dimensions);
        let error = install_kept(9, false).unwrap_err().to_string();
        assert!(error.starts_with("refused: its file has 1 entries"), "{error}");
    }
}
