//! Reads text in blocks of whole lines, from memory, from a file or from a stream.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::time::SystemTime;

/// A text that is read from front to back.
pub(crate) trait Blocks {
    /// The next whole lines, about `bytes` bytes (or one line if it is longer), or the rest of the
    /// text; and whether the text ends with them.
    fn fill(&mut self, bytes: usize) -> io::Result<(&[u8], bool)>;

    /// Skips the first `bytes` bytes of the block last returned.
    fn consume(&mut self, bytes: usize);

    /// Remaining bytes of the text, if known.
    fn bytes_left(&self) -> Option<usize>;
}

/// Text in memory.
pub(crate) struct Slice<'a>(pub(crate) &'a [u8]);

impl Blocks for Slice<'_> {
    fn fill(&mut self, bytes: usize) -> io::Result<(&[u8], bool)> {
        let end = self.0.get(bytes.max(1) - 1..).and_then(|tail| memchr::memchr(b'\n', tail));
        let end = end.map_or(self.0.len(), |offset| bytes.max(1) + offset);
        Ok((&self.0[..end], end == self.0.len()))
    }

    fn consume(&mut self, bytes: usize) {
        self.0 = &self.0[bytes..];
    }

    fn bytes_left(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// A regular file, read block by block into one buffer, by all threads of the pool at once.
///
/// The file is not memory-mapped, because a mapped file that another process shortens ends this
/// process.
pub(crate) struct FileText {
    file: File,
    length: u64,
    modified: Option<SystemTime>,
    /// Where in the file the next byte is read.
    offset: u64,
    /// Holds text in `from..to`.
    buffer: Vec<u8>,
    from: usize,
    to: usize,
}

impl FileText {
    /// `metadata` is the file's own as it was opened.
    pub(crate) fn new(file: File, metadata: &Metadata) -> Self {
        let (length, modified) = (metadata.len(), metadata.modified().ok());
        Self { file, length, modified, offset: 0, buffer: Vec::new(), from: 0, to: 0 }
    }

    /// Appends text until the buffer holds `wanted` bytes or the file ends.
    fn read(&mut self, wanted: usize) -> io::Result<()> {
        let left = usize::try_from(self.length - self.offset).unwrap_or(usize::MAX);
        let bytes = wanted.saturating_sub(self.to).min(left);
        let missing = (self.to + bytes).saturating_sub(self.buffer.len());
        self.buffer.try_reserve(missing).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.buffer.resize(self.buffer.len() + missing, 0);
        let free = &mut self.buffer[self.to..self.to + bytes];
        read_exact_at(&self.file, free, self.offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => changed(),
            _ => error,
        })?;
        (self.to, self.offset) = (self.to + bytes, self.offset + bytes as u64);
        if self.offset == self.length {
            let now = self.file.metadata()?;
            if (now.len(), now.modified().ok()) != (self.length, self.modified) {
                return Err(changed());
            }
        }
        Ok(())
    }
}

#[cold]
fn changed() -> io::Error {
    io::Error::other("the file was changed while it was read")
}

/// Fills `bytes` from `offset` on.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;

    use rayon::prelude::*;

    /// Bytes that a thread reads at a time.
    const PIECE: usize = 1 << 18;

    let pieces = bytes.par_chunks_mut(PIECE).enumerate();
    pieces.try_for_each(|(i, piece)| file.read_exact_at(piece, offset + (i * PIECE) as u64))
}

/// Fills `bytes` from `offset` on.
#[cfg(not(unix))]
pub(crate) fn read_exact_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    use std::io::{Seek, SeekFrom};

    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

impl Blocks for FileText {
    fn fill(&mut self, bytes: usize) -> io::Result<(&[u8], bool)> {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        let mut wanted = bytes.max(1);
        loop {
            self.read(wanted)?;
            if self.offset == self.length {
                return Ok((&self.buffer[..self.to], true));
            }
            if let Some(end) = memchr::memrchr(b'\n', &self.buffer[..self.to]) {
                // Lines longer than the rest of the block are the next block's business.
                return Ok((&self.buffer[..=end], false));
            }
            wanted = 2 * self.to;
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.from += bytes;
    }

    fn bytes_left(&self) -> Option<usize> {
        usize::try_from(self.length - self.offset).ok()?.checked_add(self.to - self.from)
    }
}

/// Text that comes out of a decompressor: only one block of it is in memory.
pub(crate) struct Stream<R> {
    source: R,
    buffer: Vec<u8>,
    consumed: usize,
    ended: bool,
}

/// Bytes for which an empty buffer makes room at once: more than an ordinary block has.
const AT_ONCE: usize = 1 << 24;

impl<R: Read> Stream<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), consumed: 0, ended: false }
    }
}

impl<R: Read> Blocks for Stream<R> {
    fn fill(&mut self, bytes: usize) -> io::Result<(&[u8], bool)> {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        let mut wanted = bytes.max(1);
        loop {
            while self.buffer.len() < wanted && !self.ended {
                // The whole text may be shorter than what is wanted.
                let more = (wanted - self.buffer.len()).min(self.buffer.len().max(AT_ONCE));
                self.buffer.try_reserve(more).map_err(|_| io::ErrorKind::OutOfMemory)?;
                let mut source = self.source.by_ref().take(more as u64);
                self.ended = source.read_to_end(&mut self.buffer)? == 0;
            }
            if self.ended {
                return Ok((&self.buffer, true));
            }
            if let Some(end) = memchr::memrchr(b'\n', &self.buffer) {
                // Lines longer than the rest of the block are the next block's business.
                return Ok((&self.buffer[..=end], false));
            }
            wanted = 2 * self.buffer.len();
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
    }

    fn bytes_left(&self) -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn open(path: &std::path::Path) -> FileText {
        let file = File::open(path).unwrap();
        let metadata = file.metadata().unwrap();
        FileText::new(file, &metadata)
    }

    fn file(text: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn a_file_comes_in_whole_lines() {
        let lines: Vec<String> = (0..5000).map(|i| format!("{}\n", "x".repeat(i % 97))).collect();
        let text = lines.concat();
        let (_folder, path) = file(text.as_bytes());
        for bytes in [1, 64, 5000, 1 << 20] {
            let mut blocks = open(&path);
            let mut seen = Vec::new();
            loop {
                assert_eq!(blocks.bytes_left(), Some(text.len() - seen.len()));
                let (block, last) = blocks.fill(bytes).unwrap();
                assert!(last || block.ends_with(b"\n"));
                let length = block.len();
                seen.extend_from_slice(block);
                if last {
                    break;
                }
                blocks.consume(length);
            }
            assert_eq!(seen, text.as_bytes(), "{bytes}");
        }
    }

    #[test]
    fn a_file_that_changes_is_an_error() {
        let text = b"1 1\n".repeat(1000);
        let shorten = |path: &_| File::options().write(true).open(path).unwrap().set_len(100);
        let lengthen = |path: &_| fs::write(path, b"1 1\n".repeat(1001));
        for change in [shorten as fn(&std::path::PathBuf) -> _, lengthen] {
            let (_folder, path) = file(&text);
            let mut blocks = open(&path);
            let (block, last) = blocks.fill(400).unwrap();
            assert_eq!((block.len(), last), (400, false));
            blocks.consume(400);
            change(&path).unwrap();
            let error = blocks.fill(1 << 20).unwrap_err().to_string();
            assert_eq!(error, "the file was changed while it was read");
        }
    }
}
