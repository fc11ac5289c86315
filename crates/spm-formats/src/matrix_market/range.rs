//! Reads the entries of a range of bytes of a plain file, for readers that share a file.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::blocks::{Blocks, FileText, read_exact_at};
use super::body::Body;
use super::error::{Fault, Problem};
use super::header::Header;
use super::kinds::Format;
use super::{MatrixMarketError, ReadOptions, Reader, check_field};
use crate::Scalar;

/// A plain Matrix Market file in coordinate format whose entries are read by ranges of bytes: several
/// readers, also in several processes, take a range each, and none needs the whole.
///
/// ```
/// use spm_formats::matrix_market::{RangeFile, ReadOptions};
///
/// let path = std::env::temp_dir().join(format!("spm-ranges-{}.mtx", std::process::id()));
/// std::fs::write(&path, "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 1 5\n")?;
/// let file = RangeFile::open(&path, &ReadOptions::default())?;
/// let (body, mut found) = (file.body(), Vec::new());
/// let middle = body.start + 2;
/// for range in [body.start..middle, middle..body.end] {
///     file.read(range, |row, col, value: f64| found.push((row, col, value)))?;
/// }
/// assert_eq!(found, [(0, 0, 4.0), (1, 0, 5.0), (0, 1, 5.0)]);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RangeFile {
    path: PathBuf,
    options: ReadOptions,
    file: File,
    header: Header,
    body: Range<u64>,
}

impl RangeFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// As [`read`](super::read); a matrix in array format.
    pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, MatrixMarketError> {
        let path = path.as_ref().to_owned();
        let io = |cause| MatrixMarketError::Io { path: path.clone(), cause };
        let file = File::open(&path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        let reader = Reader::<f64>::new(&path, options);
        let mut text = FileText::new(file.try_clone().map_err(io)?, &metadata);
        let (header, _) = reader.header(&mut text, 1 << 14)?;
        if header.format != Format::Coordinate {
            let fault = Fault::new(1, Problem::Banner, "the format \"coordinate\"", "\"array\"");
            return Err(reader.fault(fault));
        }
        let left = text.bytes_left().map_or(0, |bytes| bytes as u64);
        let body = metadata.len() - left..metadata.len();
        Ok(Self { path, options: options.clone(), file, header, body })
    }

    /// The header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The bytes of the file that hold entries.
    pub fn body(&self) -> Range<u64> {
        self.body.clone()
    }

    /// Calls `entry` with row and column from 0 and the value of each entry whose line begins in `range`,
    /// and of the one that symmetry implies for it. Returns the number of entries in the text, which the
    /// ranges that cover [`RangeFile::body`] have to make [`Header::entries`] in all.
    ///
    /// Memory is some multiple of [`ReadOptions::chunk_bytes`], whatever the range.
    ///
    /// # Errors
    /// As [`read`](super::read).
    pub fn read<T: Scalar>(
        &self,
        range: Range<u64>,
        mut entry: impl FnMut(u32, u32, T),
    ) -> Result<u64, MatrixMarketError> {
        let fault = |fault: Fault| fault.in_file(&self.path.display().to_string());
        check_field::<T>(&self.header).map_err(fault)?;
        let end = range.end.min(self.body.end);
        let mut at = self.first_line(range.start.max(self.body.start))?;
        let (mut entries, mut text) = (0, Vec::new());
        while at < end {
            self.lines(at, end, &mut text)?;
            let chunk = self.options.chunk_bytes;
            let body = Body::new(&self.header, self.options.mode, chunk, 1, None);
            let parsed = body.and_then(|mut body| {
                body.append(&text)?;
                Ok(body.into_entries())
            });
            let (rows, cols, values) = match parsed {
                Ok(triplets) => triplets,
                Err(mut error) => {
                    error.line += self.lines_before(at)?;
                    return Err(fault(error));
                }
            };
            for ((row, col), value) in rows.into_iter().zip(cols).zip(values) {
                entry(row, col, value);
                if let Some(mirrored) = self.header.symmetry.implied(row, col, value) {
                    entry(col, row, mirrored);
                }
                entries += 1;
            }
            at += text.len() as u64;
        }
        Ok(entries)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), MatrixMarketError> {
        read_exact_at(&self.file, bytes, offset)
            .map_err(|cause| MatrixMarketError::Io { path: self.path.clone(), cause })
    }

    /// The first line that begins at `start` or behind.
    fn first_line(&self, start: u64) -> Result<u64, MatrixMarketError> {
        if start <= self.body.start || start >= self.body.end {
            return Ok(start);
        }
        let mut text = Vec::new();
        self.lines(start - 1, start, &mut text)?;
        Ok(start - 1 + text.len() as u64)
    }

    /// The text from `at` to the end of the line that holds byte `end` - 1, or of an earlier line.
    fn lines(&self, at: u64, end: u64, text: &mut Vec<u8>) -> Result<(), MatrixMarketError> {
        let mut wanted = self.options.chunk_bytes.max(1);
        loop {
            let left = usize::try_from(self.body.end - at).unwrap_or(usize::MAX);
            let bytes = wanted.min(left);
            text.resize(bytes, 0);
            self.read_at(text, at)?;
            let inside = usize::try_from(end - at).unwrap_or(usize::MAX);
            let line_end = if inside <= bytes {
                memchr::memchr(b'\n', &text[inside - 1..]).map(|end| inside + end)
            } else {
                memchr::memrchr(b'\n', text).map(|end| end + 1)
            };
            match line_end {
                Some(line_end) => {
                    text.truncate(line_end);
                    return Ok(());
                }
                None if bytes == left => return Ok(()),
                None => wanted = wanted.saturating_mul(2),
            }
        }
    }

    /// Number of lines before byte `at`, for errors.
    fn lines_before(&self, at: u64) -> Result<u64, MatrixMarketError> {
        let (mut lines, mut offset, mut text) = (0, 0, vec![0; 1 << 16]);
        while offset < at {
            let bytes = (at - offset).min(text.len() as u64) as usize;
            self.read_at(&mut text[..bytes], offset)?;
            lines += memchr::memchr_iter(b'\n', &text[..bytes]).count() as u64;
            offset += bytes as u64;
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix_market::{Mode, read};

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mtx");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn ranges(body: Range<u64>, parts: u64) -> impl Iterator<Item = Range<u64>> {
        let length = body.end - body.start;
        (0..parts)
            .map(move |i| body.start + length * i / parts..body.start + length * (i + 1) / parts)
    }

    #[test]
    fn ranges_have_the_entries_of_the_whole_file() {
        let line = |i: usize| format!("{} {} {}\n", i % 9 + 1, (i % 9) / 2 + 1, i);
        let lines: String = (0..200).map(line).collect();
        let banner = "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n9 9 200\n";
        // With and without the last line end; blank lines.
        for text in [format!("{banner}{lines}"), format!("{banner}\n\n{}", lines.trim_end())] {
            let (_folder, path) = file(&text);
            let mut whole: Vec<(u32, u32, f64)> = {
                let coo = read::<f64>(&path, &ReadOptions::default()).unwrap().coo;
                let pairs = coo.row_ind().iter().zip(coo.col_ind()).zip(coo.values());
                pairs.map(|((&row, &col), &value)| (row, col, value)).collect()
            };
            whole.sort_by(|a, b| a.partial_cmp(b).unwrap());
            for (parts, chunk_bytes) in [(1, 1 << 18), (2, 16), (7, 40), (90, 1), (3, 1 << 10)] {
                let options = ReadOptions { chunk_bytes, ..ReadOptions::default() };
                let ranged = RangeFile::open(&path, &options).unwrap();
                let (mut found, mut entries) = (Vec::new(), 0);
                for range in ranges(ranged.body(), parts) {
                    entries += ranged.read(range, |r, c, v: f64| found.push((r, c, v))).unwrap();
                }
                found.sort_by(|a, b| a.partial_cmp(b).unwrap());
                assert_eq!((entries, &found), (200, &whole), "{parts} {chunk_bytes}");
            }
        }
    }

    #[test]
    fn errors_name_the_line_of_the_file() {
        let (_folder, path) =
            file("%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 2 2\n3 4 1\n");
        let options = ReadOptions { chunk_bytes: 4, mode: Mode::Strict, ..ReadOptions::default() };
        let ranged = RangeFile::open(&path, &options).unwrap();
        let body = ranged.body();
        let range = body.end - 6..body.end;
        let error = ranged.read(range, |_, _, _: f64| {}).unwrap_err().to_string();
        assert!(
            error.ends_with("a.mtx:5: expected a column index from 1 to 3, found \"4\""),
            "{error}"
        );
        let (_folder, path) = file("%%MatrixMarket matrix array real general\n1 1\n1\n");
        let error = RangeFile::open(&path, &options).unwrap_err().to_string();
        assert!(error.contains("coordinate"), "{error}");
        let (_folder, path) =
            file("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n");
        let ranged = RangeFile::open(&path, &options).unwrap();
        assert!(ranged.read(ranged.body(), |_, _, _: f64| {}).is_err());
    }
}
