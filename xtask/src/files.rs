//! Files that are either whole or not there.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

/// Writes beside `path`, then renames.
///
/// # Errors
/// The folder is not writable or full; the old file, if any, is then untouched.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", path.display());
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).with_context(context)?;
    file.write_all(bytes).with_context(context)?;
    file.as_file().sync_all().with_context(context)?;
    file.persist(path).with_context(context)?;
    Ok(())
}
