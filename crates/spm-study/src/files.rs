//! Files that are either whole or not there, and folders that one process writes at a time.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, ensure};

/// Replaces `path` by a file with these contents: written beside it, then renamed.
///
/// # Errors
/// The folder is not writable or full; the old file, if any, is then untouched.
pub fn write_whole(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    spm_formats::replace_file(path, |file| file.write_all(contents.as_ref()))
}

/// Removes a file; that there is none is no error.
///
/// # Errors
/// The file is there and cannot be removed.
pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A name as a part of a file name: what not every file system takes becomes `_`, separators above
/// all.
pub fn plain(name: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars().map(|c| if safe(c) { c } else { '_' }).collect()
}

/// Holds a folder for a run of a command as long as the file lives; the system lets go of it however
/// the process ends.
///
/// # Errors
/// Another run holds the folder; it cannot be written.
pub fn hold_folder(folder: &Path, command: &str) -> anyhow::Result<File> {
    let path = folder.join(".lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let held = match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        // Some file systems have no locks: better to run unguarded than not at all.
        Err(TryLockError::Error(_)) => true,
    };
    ensure!(held, "another {command} is running in {}", folder.display());
    Ok(file)
}
