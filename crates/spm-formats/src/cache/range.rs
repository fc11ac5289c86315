//! Reads ranges of the arrays of an `.npz` archive, for readers that share a file.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::npz::{self, open_archive};
use super::{CacheError, Fault, npy};
use crate::Scalar;
use crate::matrix_market::blocks::read_exact_at;

/// A CSR matrix in an uncompressed `.npz` archive whose arrays are read by ranges: several readers, also in
/// several processes, take some rows each, and none needs the whole.
///
/// Rows, columns and entries may need 64 bits. What a range does not touch is not read, so that the checksums
/// of the archive are not compared.
///
/// ```
/// use spm_formats::Csr;
/// use spm_formats::cache::{NpzFile, save_npz};
///
/// let path = std::env::temp_dir().join(format!("spm-ranges-{}.npz", std::process::id()));
/// let a = Csr::new((3, 4), vec![0, 2, 2, 3], vec![0, 3, 1], vec![1.0, 2.0, 3.0])?;
/// save_npz(&path, a.view())?;
/// let file = NpzFile::open(&path)?;
/// assert_eq!((file.shape(), file.entries()), ((3, 4), 3));
/// // The last two rows.
/// let pointers = file.row_ptr(1..3)?;
/// assert_eq!(pointers, [2, 2, 3]);
/// assert_eq!(file.col_ind(2..3)?, [1]);
/// assert_eq!(file.values::<f64>(2..3)?, [3.0]);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NpzFile {
    path: PathBuf,
    file: File,
    shape: (u64, u64),
    row_ptr: Array,
    col_ind: Array,
    values: Array,
}

/// Where the elements of an array are in the file.
#[derive(Debug)]
struct Array {
    name: &'static str,
    header: npy::Header,
    start: u64,
    width: u64,
}

impl NpzFile {
    /// Opens an archive and reads the headers of its arrays.
    ///
    /// # Errors
    /// [`CacheError::Io`]. [`CacheError::Invalid`]: an archive that is not one of a CSR matrix, a compressed
    /// one, arrays whose sizes do not fit each other or the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CacheError> {
        let path = path.as_ref();
        let read = || -> Result<Self, Fault> {
            let file = File::open(path)?;
            let bytes = file.metadata()?.len();
            let mut archive = open_archive(file.try_clone()?)?;
            let size = |size: i64| {
                let negative = |_| Fault::new("sizes of 0 or more", size.to_string());
                u64::try_from(size).map_err(negative)
            };
            let [rows, cols] = npz::shape(&mut archive, bytes)?;
            let shape = (size(rows)?, size(cols)?);
            let mut array = |name| {
                let (file, mut entry) = npz::stored(&mut archive, bytes, name)?;
                let length = entry.size();
                let inside = |fault: Fault| fault.within(&file);
                let header = npy::Header::read(&mut entry, length).map_err(inside)?;
                let width = header.width().map_err(inside)?;
                let elements = header.elements() * width;
                let end = entry.data_start().and_then(|start| start.checked_add(length));
                let Some(end) = end.filter(|&end| end <= bytes) else {
                    return Err(Fault::new("arrays inside the file", format!("{file} beyond it")));
                };
                Ok(Array { name, header, start: end - elements, width })
            };
            let (row_ptr, col_ind) = (array("indptr")?, array("indices")?);
            let values = array("data")?;
            let fits = |array: &Array, expected: u64| {
                let found = format!("{} in {}.npy", array.header.elements(), array.name);
                let fault = || Fault::new(format!("{expected} elements"), found);
                (array.header.elements() == expected).then_some(()).ok_or_else(fault)
            };
            fits(&row_ptr, shape.0 + 1)?;
            fits(&col_ind, values.header.elements())?;
            Ok(Self { path: path.to_owned(), file, shape, row_ptr, col_ind, values })
        };
        read().map_err(|fault| fault.in_file(path))
    }

    /// (rows, columns) of the matrix.
    pub fn shape(&self) -> (u64, u64) {
        self.shape
    }

    /// Number of entries of the matrix.
    pub fn entries(&self) -> u64 {
        self.values.header.elements()
    }

    /// Where each of these rows starts, and the end of the last one: one more than there are `rows`.
    ///
    /// # Errors
    /// [`CacheError::Io`]. [`CacheError::Invalid`]: rows outside of the matrix; pointers that descend, or lie
    /// beyond the entries.
    pub fn row_ptr(&self, rows: Range<u64>) -> Result<Vec<u64>, CacheError> {
        let end = rows.end.saturating_add(1);
        let pointers = self.read(&self.row_ptr, rows.start..end, npy::wide_indices)?;
        let inside = pointers.last().is_some_and(|&last| last <= self.entries());
        if !inside || !pointers.is_sorted() {
            let expected = format!("row pointers that ascend to {}", self.entries());
            return Err(Fault::new(expected, "others").in_file(&self.path));
        }
        Ok(pointers)
    }

    /// The columns of these entries, as they are in the file.
    ///
    /// # Errors
    /// [`CacheError::Io`]. [`CacheError::Invalid`]: entries outside of the matrix, a negative column.
    pub fn col_ind(&self, entries: Range<u64>) -> Result<Vec<u64>, CacheError> {
        self.read(&self.col_ind, entries, npy::wide_indices)
    }

    /// The values of these entries.
    ///
    /// # Errors
    /// [`CacheError::Io`]. [`CacheError::Invalid`]: entries outside of the matrix, values that are not of type
    /// `T`.
    pub fn values<T: Scalar>(&self, entries: Range<u64>) -> Result<Vec<T>, CacheError> {
        self.read(&self.values, entries, npy::values)
    }

    fn read<E>(
        &self,
        array: &Array,
        range: Range<u64>,
        read: impl FnOnce(&npy::Header, &mut dyn Read) -> Result<Vec<E>, Fault>,
    ) -> Result<Vec<E>, CacheError> {
        let read = || {
            if range.start > range.end || range.end > array.header.elements() {
                let expected = format!("a range of {} elements", array.header.elements());
                return Err(Fault::new(expected, format!("{range:?}")));
            }
            let part = array.header.part(range.end - range.start)?;
            let offset = array.start + range.start * array.width;
            read(&part, &mut FromOffset { file: &self.file, offset })
        };
        let fault = |fault: Fault| fault.within(&format!("{}.npy", array.name));
        read().map_err(|error| fault(error).in_file(&self.path))
    }
}

/// The bytes of a file from an offset on. Several may read one file.
struct FromOffset<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for FromOffset<'_> {
    /// Fills all of `bytes`.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        read_exact_at(self.file, bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }
}
