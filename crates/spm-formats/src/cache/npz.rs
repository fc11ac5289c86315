//! CSR matrices as `.npz` archives of SciPy's layout.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::Path;

use zip::read::ZipFile;
use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{CacheError, Fault, SOURCE, Source, npy};
use crate::replace::replace_file;
use crate::{Csr, CsrView, RealScalar, Scalar};

/// Bytes read from a file at a time.
const BUFFER: usize = 1 << 18;

/// Reads the directory of an archive.
pub(super) fn open_archive(file: File) -> ZipResult<ZipArchive<BufReader<File>>> {
    ZipArchive::new(BufReader::with_capacity(BUFFER, file))
}

/// Reads a CSR matrix from an uncompressed `.npz` archive, of this module or of
/// `scipy.sparse.save_npz(..., compressed=False)`.
///
/// The sizes that the file declares are checked against its length. Memory is at most 8 times the
/// length plus 2 MiB, and time is linear in the length. The indices are checked.
///
/// # Errors
/// [`CacheError::Io`]; [`CacheError::Invalid`] also for values that are not of type `T`.
pub fn load_npz<T: Scalar>(path: impl AsRef<Path>) -> Result<Csr<T>, CacheError> {
    let path = path.as_ref();
    let read = || -> Result<Csr<T>, Fault> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        read_archive(&mut open_archive(file)?, bytes)
    };
    read().map_err(|fault| fault.in_file(path))
}

/// Writes a CSR matrix as `scipy.sparse.save_npz(..., compressed=False)` does, replacing the file
/// in one step.
///
/// # Errors
/// [`CacheError::Io`].
pub fn save_npz<T: Scalar>(
    path: impl AsRef<Path>,
    matrix: CsrView<'_, T>,
) -> Result<(), CacheError> {
    write_npz(path.as_ref(), matrix, None)
}

/// [`save_npz`] with an optional record of the source file.
pub(super) fn write_npz<T: Scalar>(
    path: &Path,
    matrix: CsrView<'_, T>,
    source: Option<Source>,
) -> Result<(), CacheError> {
    replace_file(path, |file| {
        let mut archive = Archive { zip: ZipWriter::new(file) };
        // SciPy's own index types: 64 bits only where 32 signed bits do not do.
        let (rows, cols) = matrix.shape();
        let largest = rows.max(cols).max(matrix.nnz());
        let wide = i32::try_from(largest).is_err();
        let index = |index: &u32| u64::from(*index).to_le_bytes();
        for (name, indices) in [("indices", matrix.col_ind()), ("indptr", matrix.row_ptr())] {
            if wide {
                archive.add(name, "<i8", indices, index)?;
            } else {
                archive.add(name, "<i4", indices, |index| index.to_le_bytes())?;
            }
        }
        archive.start("format", "|S3", "()", 3)?.write_all(b"csr")?;
        archive.add("shape", "<i8", &[rows as u64, cols as u64], |size| size.to_le_bytes())?;
        let (descr, values) = (npy::descr::<T>(), matrix.values());
        let single = |part: T::Real| part.to_bits64() as u32;
        match descr {
            "<f4" => archive.add("data", descr, values, |v| single(v.re()).to_le_bytes()),
            "<f8" => archive.add("data", descr, values, |v| v.re().to_bits64().to_le_bytes()),
            "<c8" => archive.add("data", descr, values, |v| {
                (u64::from(single(v.im())) << 32 | u64::from(single(v.re()))).to_le_bytes()
            }),
            _ => archive.add("data", descr, values, |v| v.to_bits128().to_le_bytes()),
        }?;
        if let Some(source) = source {
            archive.add(SOURCE, "<i8", &source.to_array(), |number| number.to_le_bytes())?;
        }
        archive.zip.finish()?;
        Ok(())
    })
    .map_err(|cause| CacheError::Io { path: path.to_owned(), cause })
}

/// An archive that is being written.
struct Archive<W: Write + Seek> {
    zip: ZipWriter<W>,
}

impl<W: Write + Seek> Archive<W> {
    /// Begins the array `name` of `bytes` bytes.
    fn start(
        &mut self,
        name: &str,
        descr: &str,
        shape: &str,
        bytes: usize,
    ) -> io::Result<&mut ZipWriter<W>> {
        let header = npy::header(descr, shape);
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(header.len() + bytes >= u32::MAX as usize);
        self.zip.start_file(format!("{name}.npy"), options)?;
        self.zip.write_all(&header)?;
        Ok(&mut self.zip)
    }

    /// Adds a vector.
    fn add<E, const WIDTH: usize>(
        &mut self,
        name: &str,
        descr: &str,
        elements: &[E],
        bytes: impl Fn(&E) -> [u8; WIDTH],
    ) -> io::Result<()> {
        let shape = format!("({},)", elements.len());
        let out = self.start(name, descr, &shape, WIDTH * elements.len())?;
        let mut piece = Vec::with_capacity(WIDTH * npy::PIECE);
        for elements in elements.chunks(npy::PIECE) {
            piece.clear();
            elements.iter().for_each(|element| piece.extend_from_slice(&bytes(element)));
            out.write_all(&piece)?;
        }
        Ok(())
    }
}

/// Opens the array `name` of an archive; returns the name and the array of its file.
pub(super) fn stored<'a, A: Read + Seek>(
    archive: &'a mut ZipArchive<A>,
    file_bytes: u64,
    name: &str,
) -> Result<(String, ZipFile<'a, A>), Fault> {
    let file = format!("{name}.npy");
    if archive.index_for_name(&file).is_none() {
        return Err(Fault::new(format!("an array {file}"), "none"));
    }
    let entry = archive.by_name(&file)?;
    if entry.compression() != CompressionMethod::Stored {
        let found = format!("{file} compressed");
        return Err(Fault::new("an uncompressed archive", found));
    }
    if entry.size() > file_bytes {
        let found = format!("{file} of {} bytes in a file of {file_bytes}", entry.size());
        return Err(Fault::new("arrays inside the file", found));
    }
    Ok((file, entry))
}

/// Opens the array `name` of an archive and passes its header and its elements to `read`.
pub(super) fn member<A: Read + Seek, R>(
    archive: &mut ZipArchive<A>,
    file_bytes: u64,
    name: &str,
    read: impl FnOnce(&npy::Header, &mut dyn Read) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let (file, mut entry) = stored(archive, file_bytes, name)?;
    let bytes = entry.size();
    let header = npy::Header::read(&mut entry, bytes).map_err(|fault| fault.within(&file))?;
    let result = read(&header, &mut entry).map_err(|fault| fault.within(&file))?;
    // Reading to the end is what makes the archive compare its checksum.
    if entry.read(&mut [0])? != 0 {
        return Err(Fault::new(format!("the end of {file}"), "more bytes"));
    }
    Ok(result)
}

/// Reads the rows and columns of the matrix of an archive.
pub(super) fn shape<A: Read + Seek>(
    archive: &mut ZipArchive<A>,
    file_bytes: u64,
) -> Result<[i64; 2], Fault> {
    let format = member(archive, file_bytes, "format", npy::text)?;
    if format != "csr" {
        return Err(Fault::new("the format \"csr\"", format!("{format:?}")));
    }
    let shape = member(archive, file_bytes, "shape", npy::integers)?;
    let sizes = format!("{} sizes", shape.len());
    shape.try_into().map_err(|_| Fault::new("a shape of 2 sizes", sizes))
}

/// Reads the matrix of an archive in a file of `file_bytes` bytes.
pub(super) fn read_archive<A: Read + Seek, T: Scalar>(
    archive: &mut ZipArchive<A>,
    file_bytes: u64,
) -> Result<Csr<T>, Fault> {
    let [rows, cols] = shape(archive, file_bytes)?;
    let size = |size: i64| {
        u32::try_from(size).map_err(|_| Fault::new("sizes that fit 32 bits", size.to_string()))
    };
    let (rows, cols) = (size(rows)? as usize, size(cols)? as usize);
    let pointers = member(archive, file_bytes, "indptr", npy::indices)?;
    let indices = member(archive, file_bytes, "indices", npy::indices)?;
    let values: Vec<T> = member(archive, file_bytes, "data", npy::values)?;
    Csr::new((rows, cols), pointers, indices, values)
        .map_err(|error| Fault::new("arrays of a CSR matrix", error.to_string()))
}
