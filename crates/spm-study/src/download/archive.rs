//! Takes NAME.mtx, and on request its companions, out of NAME.tar.gz.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use indicatif::HumanBytes;

use super::error::FetchError;
use super::index::Record;

/// Room for the banner, the comments and the size line.
const HEADER_BYTES: u64 = 1 << 20;

/// Most characters of one number: `-1.7976931348623157e+308` and a blank have 25.
const NUMBER_BYTES: u64 = 32;

/// Why an archive gives no matrix.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    /// This machine cannot take the file.
    #[error(transparent)]
    Local(#[from] FetchError),
    /// The archive is not what it should be.
    #[error("{0}")]
    Bad(String),
}

fn bad(reason: impl Into<String>) -> ArchiveError {
    ArchiveError::Bad(reason.into())
}

/// Most bytes that NAME.mtx can need: 1 MiB of header, and for each entry two indices, their
/// blanks and line end, and 32 bytes a number (none in a pattern, two in a complex matrix).
pub(super) fn max_matrix_bytes(matrix: &Record) -> u64 {
    let line = matrix.index_digits() + 4 + matrix.values.numbers() * NUMBER_BYTES;
    matrix.entries.saturating_mul(line).saturating_add(HEADER_BYTES)
}

/// Most bytes that a whole archive may unpack to: 16 times [`max_matrix_bytes`] and 64 MiB, as
/// right-hand sides, coordinates and the further matrices of a sequence may be larger than the
/// matrix, yet not without measure.
pub(super) fn max_archive_bytes(matrix: &Record) -> u64 {
    max_matrix_bytes(matrix).saturating_mul(16).saturating_add(64 << 20)
}

/// Passes at most `left` bytes on, then fails and says so in `exceeded`.
struct Bounded<'a, R> {
    inner: R,
    left: u64,
    exceeded: &'a Cell<bool>,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => {
                self.exceeded.set(true);
                return Err(io::Error::other("too many bytes"));
            }
        }
        Ok(count)
    }
}

/// Unpacks NAME.mtx of `archive` to `matrix_file`, and its companions into the folder `extras`
/// where one is given. The archive is read to its end, checksums included; the companions' names
/// come back in alphabetical order.
///
/// # Errors
/// When the archive is damaged, has no NAME.mtx, reaches out of its folder, or unpacks to more than
/// the bounds above; and when a file cannot be written.
pub(super) fn unpack(
    archive: &Path,
    matrix: &Record,
    matrix_file: &Path,
    extras: Option<&Path>,
) -> Result<Vec<String>, ArchiveError> {
    let file = File::open(archive).map_err(|error| bad(format!("cannot be read: {error}")))?;
    let exceeded = Cell::new(false);
    let limit = max_archive_bytes(matrix);
    let bounded = Bounded {
        inner: MultiGzDecoder::new(BufReader::with_capacity(1 << 16, file)),
        left: limit,
        exceeded: &exceeded,
    };
    unpack_members(tar::Archive::new(bounded), matrix, matrix_file, extras).map_err(|error| {
        if exceeded.get() {
            let name = &matrix.name;
            bad(format!(
                "the archive of {name} unpacks to more than {}: refused as a decompression bomb",
                HumanBytes(limit)
            ))
        } else {
            error
        }
    })
}

fn unpack_members<R: Read>(
    mut archive: tar::Archive<R>,
    matrix: &Record,
    matrix_file: &Path,
    extras: Option<&Path>,
) -> Result<Vec<String>, ArchiveError> {
    let damaged = |error: io::Error| bad(format!("the archive is damaged: {error}"));
    let wanted = format!("{}.mtx", matrix.name);
    let mut found = false;
    let mut kept = Vec::new();
    for member in archive.entries().map_err(damaged)? {
        let mut member = member.map_err(damaged)?;
        let path = member.path().map_err(damaged)?.into_owned();
        if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            let path = path.display();
            return Err(bad(format!("the archive has a member outside of its folder: {path}")));
        }
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else {
            continue;
        };
        let regular = member.header().entry_type().is_file();
        if name == wanted {
            if found {
                return Err(bad(format!("the archive has two members called {wanted}")));
            }
            if !regular {
                return Err(bad(format!("{wanted} in the archive is not a file")));
            }
            let limit = max_matrix_bytes(matrix);
            if member.size() > limit {
                return Err(bad(format!(
                    "{wanted} unpacks to {}, but {} entries need at most {}: refused as a \
                     decompression bomb",
                    HumanBytes(member.size()),
                    matrix.entries,
                    HumanBytes(limit)
                )));
            }
            write_member(&mut member, matrix_file)?;
            found = true;
        } else if let Some(folder) = extras
            && regular
            && !name.contains(['\\', ':'])
        {
            // A sparse member has a size that no archived byte stands behind.
            if member.size() > max_archive_bytes(matrix) {
                return Err(bad(format!("{name} in the archive is refused as too large")));
            }
            write_member(&mut member, &folder.join(&name))?;
            kept.push(name);
        }
    }
    // What follows the last member carries the checksum.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(damaged)?;
    if !found {
        return Err(bad(format!("the archive has no {wanted}")));
    }
    kept.sort();
    Ok(kept)
}

fn write_member(member: &mut impl Read, path: &Path) -> Result<(), ArchiveError> {
    let local = FetchError::local(path);
    let mut file = File::create(path).map_err(&local)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = member
            .read(&mut buffer)
            .map_err(|error| bad(format!("the archive is damaged: {error}")))?;
        if count == 0 {
            break;
        }
        file.write_all(&buffer[..count]).map_err(&local)?;
    }
    Ok(file.sync_all().map_err(local)?)
}

/// Says how the header of a Matrix Market file differs from what the collection publishes of the
/// matrix: `Ok(None)` when it does not.
///
/// Sizes are 64 bit here: the largest graphs of the collection have more entries than spm can
/// compute with, and can be downloaded all the same.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn compare_header(file: &Path, matrix: &Record) -> io::Result<Option<String>> {
    let mut head = BufReader::new(File::open(file)?.take(HEADER_BYTES));
    let mut banner = Vec::new();
    head.read_until(b'\n', &mut banner)?;
    let banner = String::from_utf8_lossy(&banner).to_ascii_lowercase();
    let ["%%matrixmarket", "matrix", "coordinate", _, symmetry] =
        banner.split_whitespace().collect::<Vec<_>>()[..]
    else {
        return Ok(Some("its file has no Matrix Market banner".into()));
    };
    let mut line = Vec::new();
    let size = loop {
        line.clear();
        if head.read_until(b'\n', &mut line)? == 0 {
            return Ok(Some("its file has no size line".into()));
        }
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() && !text.trim_start().starts_with('%') {
            break text.into_owned();
        }
    };
    let numbers: Option<Vec<u64>> = size.split_whitespace().map(|n| n.parse().ok()).collect();
    let Some([rows, cols, stored]) = numbers.as_deref() else {
        return Ok(Some(format!("its size line is {:?}", size.trim())));
    };
    if (*rows, *cols) != (matrix.rows, matrix.cols) {
        return Ok(Some(format!(
            "its file has {rows} x {cols} elements, the collection says {} x {}",
            matrix.rows, matrix.cols
        )));
    }
    // A file of one triangle stands for twice its entries less those on the diagonal.
    let twice = stored.saturating_mul(2);
    let (least, most) = match symmetry {
        "general" => (*stored, *stored),
        "skew-symmetric" => (twice, twice),
        _ => (twice.saturating_sub(*rows), twice),
    };
    if !(least..=most).contains(&matrix.entries) {
        return Ok(Some(format!(
            "its file has {stored} entries ({symmetry}), the collection says {} in all",
            matrix.entries
        )));
    }
    Ok(None)
}

/// Makes an empty folder where there may be remains of an earlier one.
pub(super) fn empty_folder(path: PathBuf) -> Result<PathBuf, FetchError> {
    if path.exists() {
        fs::remove_dir_all(&path).map_err(FetchError::local(&path))?;
    }
    fs::create_dir_all(&path).map_err(FetchError::local(&path))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::super::index::Values;
    use super::*;

    fn record(entries: u64, values: Values) -> Record {
        let (group, name) = ("G".to_owned(), "a".to_owned());
        Record { group, name, rows: 100, cols: 9, entries, values }
    }

    #[test]
    fn bounds_follow_the_entries() {
        let header = 1 << 20;
        assert_eq!(max_matrix_bytes(&record(0, Values::Complex)), header);
        assert_eq!(max_matrix_bytes(&record(10, Values::Pattern)), header + 10 * (3 + 1 + 4));
        assert_eq!(max_matrix_bytes(&record(10, Values::Real)), header + 10 * (3 + 1 + 4 + 32));
        assert_eq!(max_archive_bytes(&record(0, Values::Real)), 16 * header + (64 << 20));
        assert_eq!(max_archive_bytes(&record(u64::MAX, Values::Real)), u64::MAX);
    }

    fn difference(text: &str, entries: u64) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.mtx");
        fs::write(&file, text).unwrap();
        let matrix = Record { rows: 3, cols: 3, ..record(entries, Values::Real) };
        compare_header(&file, &matrix).unwrap()
    }

    #[test]
    fn headers_are_compared_after_expansion() {
        let general = "%%MatrixMarket matrix coordinate real general\n% c\n\n3 3 4\n";
        assert_eq!(difference(general, 4), None);
        assert!(difference(general, 5).unwrap().contains("4 entries (general)"));
        let symmetric = "%%MatrixMarket matrix coordinate real symmetric\r\n3 3 4\r\n";
        assert_eq!(
            [4, 5, 8, 9].map(|entries| difference(symmetric, entries).is_none()),
            [false, true, true, false]
        );
        // Twice this is 4, if only the lower 64 bits are kept.
        let wrapping = format!("{}3 3 {}\n", &symmetric[..symmetric.len() - 7], (1_u64 << 63) + 2);
        assert!(difference(&wrapping, 4).is_some());
        let skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n";
        assert_eq!(difference(skew, 4), None);
        assert!(difference(skew, 3).is_some());
        let wide = "%%MatrixMarket matrix coordinate real general\n3 4 4\n";
        assert!(difference(wide, 4).unwrap().contains("3 x 4 elements"));
    }

    #[test]
    fn what_is_no_matrix_file_differs() {
        for text in [
            "",
            "<html>\n",
            "%%MatrixMarket matrix array real general\n3 3\n",
            "%%MatrixMarket matrix coordinate real general\n%\n",
            "%%MatrixMarket matrix coordinate real general\n3 3\n",
            "%%MatrixMarket matrix coordinate real general\n3 3 x\n",
        ] {
            assert!(difference(text, 4).is_some(), "{text:?}");
        }
    }
}
