//! Reads the text of plain files, gzip files and tar archives.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::blocks::{Blocks, FileText, Stream};
use super::error::MatrixMarketError;

/// How a file is packed, by the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    Plain,
    Gzip,
    TarGzip,
}

/// How a file of this name is packed, and the name without its ending.
fn split_ending(name: &str) -> Option<(Container, &str)> {
    let endings = [
        (".mtx.gz", Container::Gzip),
        (".tar.gz", Container::TarGzip),
        (".tgz", Container::TarGzip),
        (".mtx", Container::Plain),
    ];
    endings.into_iter().find_map(|(ending, kind)| {
        let stem = name.len().checked_sub(ending.len())?;
        let matches = name.get(stem..)?.eq_ignore_ascii_case(ending);
        matches.then(|| (kind, &name[..stem]))
    })
}

/// How `path` is packed, where its name tells.
pub(crate) fn container_of(path: &Path) -> Option<Container> {
    Some(split_ending(&path.file_name()?.to_string_lossy())?.0)
}

/// What to do with the text of a matrix, however it is packed.
pub(crate) trait ReadText {
    /// The result.
    type Output;
    /// Reads the text from front to back.
    fn read(self, text: impl Blocks) -> Result<Self::Output, MatrixMarketError>;
}

/// A text that is refused once it is longer than it may be.
struct Limited<R> {
    source: R,
    limit: u64,
    left: u64,
}

impl<R: Read> Limited<R> {
    fn new(source: R, limit: u64) -> Self {
        Self { source, limit, left: limit }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(too_long(self.limit)),
        }
        Ok(read)
    }
}

fn unpacked(file: File, limit: u64) -> Limited<MultiGzDecoder<BufReader<File>>> {
    Limited::new(MultiGzDecoder::new(BufReader::new(file)), limit)
}

#[cold]
fn too_long(limit: u64) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("the text is longer than {limit} bytes"))
}

/// Calls `reader` with the text of the matrix in `path`, of at most `limit` bytes.
pub(crate) fn read_text<R: ReadText>(
    path: &Path,
    limit: u64,
    reader: R,
) -> Result<R::Output, MatrixMarketError> {
    let io_error = |cause| MatrixMarketError::Io { path: path.to_owned(), cause };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some((container, stem)) = split_ending(&name) else {
        return Err(MatrixMarketError::UnknownEnding { path: path.to_owned() });
    };
    let file = File::open(path).map_err(io_error)?;
    match container {
        Container::Plain => {
            let metadata = file.metadata().map_err(io_error)?;
            // What is no regular file (a pipe) has no length.
            if !metadata.is_file() {
                return reader.read(Stream::new(Limited::new(file, limit)));
            }
            if metadata.len() > limit {
                return Err(io_error(too_long(limit)));
            }
            reader.read(FileText::new(file, &metadata))
        }
        Container::Gzip => reader.read(Stream::new(unpacked(file, limit))),
        Container::TarGzip => {
            let member = format!("{stem}.mtx");
            let mut archive = tar::Archive::new(unpacked(file, limit));
            for entry in archive.entries().map_err(io_error)? {
                let entry = entry.map_err(io_error)?;
                // A sparse file would be longer than its part of the archive.
                if !entry.header().entry_type().is_file() {
                    continue;
                }
                let found = entry.path().map_err(io_error)?;
                if found.file_name().is_some_and(|name| name.to_string_lossy() == member) {
                    return reader.read(Stream::new(entry));
                }
            }
            Err(MatrixMarketError::NotInArchive { path: path.to_owned(), member })
        }
    }
}
