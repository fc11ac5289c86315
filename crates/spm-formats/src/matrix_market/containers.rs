//! Text out of plain files, gzip files and archives.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::error::MatrixMarketError;

/// How a file is packed, by the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Plain,
    Gzip,
    TarGzip,
}

fn container(name: &str) -> Option<(Container, &str)> {
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

/// Calls `read` with the whole text of the matrix in `path`.
pub(crate) fn with_text<R>(
    path: &Path,
    read: impl FnOnce(&[u8]) -> Result<R, MatrixMarketError>,
) -> Result<R, MatrixMarketError> {
    let io_error = |source| MatrixMarketError::Io { path: path.to_owned(), source };
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((container, stem)) = container(name) else {
        return Err(MatrixMarketError::UnknownEnding { path: path.to_owned() });
    };
    let file = File::open(path).map_err(io_error)?;
    match container {
        Container::Plain => {
            if file.metadata().map_err(io_error)?.len() == 0 {
                return read(b"");
            }
            // SAFETY: the map is read only. As with any memory-mapped file, another process that
            // shortens or rewrites it meanwhile breaks the read, as documented at `read`.
            let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io_error)?;
            read(&map)
        }
        Container::Gzip => read(&unpack(MultiGzDecoder::new(file)).map_err(io_error)?),
        Container::TarGzip => {
            let member = format!("{stem}.mtx");
            let mut archive = tar::Archive::new(BufReader::new(MultiGzDecoder::new(file)));
            for entry in archive.entries().map_err(io_error)? {
                let entry = entry.map_err(io_error)?;
                let found = entry.path().map_err(io_error)?;
                if found.file_name().is_some_and(|name| name == member.as_str()) {
                    return read(&unpack(entry).map_err(io_error)?);
                }
            }
            Err(MatrixMarketError::NotInArchive { path: path.to_owned(), member })
        }
    }
}

fn unpack(mut packed: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    packed.read_to_end(&mut text)?;
    Ok(text)
}
