//! Atomic replacement of files.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// Writes a temporary file beside `path`, then renames it to `path`. A reader of `path` sees the
/// old file or the new one. If `write` fails, the temporary file is removed.
///
/// # Errors
/// Those of `write`; a folder that is full or not writable.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".spm-");
    #[cfg(unix)]
    {
        // As for any new file, the process's mask takes away from these.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut beside = builder.tempfile_in(folder)?;
    let mut buffered = BufWriter::with_capacity(1 << 18, beside.as_file_mut());
    write(&mut buffered)?;
    buffered.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    beside.persist(path).map_err(|error| error.error)?;
    Ok(())
}
