//! Files that are either whole or not there.

use std::io::{self, Write};
use std::path::Path;

/// Replaces `path` by a file with these contents: written beside it, then renamed.
///
/// # Errors
/// The folder is not writable or full; the old file, if any, is then untouched.
pub fn write_whole(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    spm_formats::replace_file(path, |file| file.write_all(contents.as_ref()))
}
