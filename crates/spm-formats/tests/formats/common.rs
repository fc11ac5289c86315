//! Shared by the tests of files.

use std::io::Write;

/// `text` as a gzip file.
pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text).unwrap();
    gzip.finish().unwrap()
}
