//! Conversions on the device between COO, CSR and CSC, through the same procedures as the
//! transpositions.

use spm_formats::kernel::PlanError;
use spm_formats::{Coo, CsrArrays, CsrView};
use spm_gpu_kernels::transpose::{DistinctPointers, MarkColumns, MarkRows, SumDuplicates};

use super::buckets::{ColumnSort, Entries};
use super::column_buckets::default_wish;
use super::scan::Scan;
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::check_counts;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceCsc, DeviceScalar};
use crate::stream::Stream;

const ID: &str = "convert";
/// Threads of a block with a thread for each element.
const BLOCK: usize = 256;

/// A CSR or CSC matrix on a device: pointers of the rows (columns), the column (row) of each entry,
/// its value. Made from verified arrays only.
#[derive(Debug)]
pub struct DeviceCompressed<T> {
    inner: usize,
    arrays: DeviceCsc<T>,
}

impl<T: DeviceScalar> DeviceCompressed<T> {
    /// Copies a CSR matrix to the device.
    ///
    /// # Errors
    /// A matrix that is not sound or too large to number, too little device memory.
    pub fn from_csr(device: &Device, a: &CsrView<'_, T>) -> Result<Self, PlanError> {
        check_counts(a.shape(), a.data().len())?;
        let a = CsrArrays::new(a)?;
        let arrays = DeviceCsc {
            pointers: DeviceBuffer::from_slice(device, a.pointers())?,
            indices: DeviceBuffer::from_slice(device, a.col_indices())?,
            values: DeviceBuffer::from_slice(device, a.values())?,
        };
        Ok(Self { inner: a.cols(), arrays })
    }

    /// Rows of CSR, columns of CSC.
    pub fn outer(&self) -> usize {
        self.arrays.pointers.len() - 1
    }

    /// Columns of CSR, rows of CSC.
    pub fn inner(&self) -> usize {
        self.inner
    }

    /// Where each row of CSR (column of CSC) starts, and the number of entries.
    pub fn pointers(&self) -> &DeviceBuffer<u32> {
        &self.arrays.pointers
    }

    /// Column in CSR (row in CSC) of each entry.
    pub fn indices(&self) -> &DeviceBuffer<u32> {
        &self.arrays.indices
    }

    /// Value of each entry.
    pub fn values(&self) -> &DeviceBuffer<T> {
        &self.arrays.values
    }
}

/// The triplets of a matrix on a device, in any order. Made from verified arrays only.
#[derive(Debug)]
pub struct DeviceCoo<T> {
    shape: (usize, usize),
    rows: DeviceBuffer<u32>,
    cols: DeviceBuffer<u32>,
    values: DeviceBuffer<T>,
}

impl<T: DeviceScalar> DeviceCoo<T> {
    /// Copies triplets to the device.
    ///
    /// # Errors
    /// A matrix that is too large to number, too little device memory.
    pub fn from_coo(device: &Device, a: &Coo<T>) -> Result<Self, PlanError> {
        check_counts((a.rows(), a.cols()), a.entries())?;
        Ok(Self {
            shape: (a.rows(), a.cols()),
            rows: DeviceBuffer::from_slice(device, a.row_indices())?,
            cols: DeviceBuffer::from_slice(device, a.col_indices())?,
            values: DeviceBuffer::from_slice(device, a.values())?,
        })
    }
}

/// CSR to CSC, rows ascending inside each column; entries of one row and column keep their order.
///
/// # Errors
/// Too little device memory, a device that fails.
pub fn csr_to_csc<T: DeviceScalar>(
    a: &DeviceCompressed<T>,
) -> Result<DeviceCompressed<T>, PlanError> {
    let entries = Entries::Csr {
        pointers: &a.arrays.pointers,
        columns: &a.arrays.indices,
        values: Some(&a.arrays.values),
    };
    let device = a.arrays.pointers.device();
    let arrays = sorted_by_column(device, (a.outer(), a.inner), &entries)?;
    Ok(DeviceCompressed { inner: a.outer(), arrays })
}

/// CSC to CSR, columns ascending inside each row: the same as [`csr_to_csc`] of the transpose.
///
/// # Errors
/// As [`csr_to_csc`].
pub fn csc_to_csr<T: DeviceScalar>(
    a: &DeviceCompressed<T>,
) -> Result<DeviceCompressed<T>, PlanError> {
    csr_to_csc(a)
}

/// COO to CSR, columns ascending inside each row; entries of one row and column are added up in the
/// order of the triplets, so that the same triplets give the same bits.
///
/// # Errors
/// As [`csr_to_csc`].
pub fn coo_to_csr<T: DeviceScalar>(a: &DeviceCoo<T>) -> Result<DeviceCompressed<T>, PlanError> {
    let (device, (rows, cols)) = (a.rows.device(), a.shape);
    let triplets = Entries::Triplets { rows: &a.rows, columns: &a.cols, values: &a.values };
    let by_column = sorted_by_column(device, (0, cols), &triplets)?;
    let columns = Entries::Csr {
        pointers: &by_column.pointers,
        columns: &by_column.indices,
        values: Some(&by_column.values),
    };
    let arrays = sorted_by_column(device, (cols, rows), &columns)?;
    Ok(DeviceCompressed { inner: cols, arrays: without_duplicates(device, arrays)? })
}

/// The entries of each column in their order.
fn sorted_by_column<T: DeviceScalar>(
    device: &Device,
    (rows, cols): (usize, usize),
    entries: &Entries<'_, T>,
) -> Result<DeviceCsc<T>, PlanError> {
    let length = entries.length();
    let mut output = DeviceCsc::new(device, cols, length)?;
    if length == 0 {
        output.pointers.fill_zero()?;
        return Ok(output);
    }
    let stream = Stream::new(device)?;
    let mut sort = ColumnSort::new(ID, device, (rows, cols), entries, &default_wish())?;
    sort.enqueue(entries, &mut output, &stream)?;
    stream.synchronize()?;
    Ok(output)
}

/// Adds up neighbours of one row and column.
fn without_duplicates<T: DeviceScalar>(
    device: &Device,
    a: DeviceCsc<T>,
) -> Result<DeviceCsc<T>, PlanError> {
    let (length, rows) = (a.indices.len(), a.pointers.len() - 1);
    let threads = |items: usize| Launch::over(ID, device, items, BLOCK, BLOCK);
    let stream = Stream::new(device)?;
    let mut places = DeviceBuffer::<u32>::uninitialized(device, length + 1)?;
    let mut scan = Scan::new(device, length + 1, BLOCK)?;
    let mark_columns =
        MarkColumns { entries: length as u32, columns: a.indices.ptr(), marks: places.ptr_mut() };
    let mark_rows =
        MarkRows { rows: rows as u32, pointers: a.pointers.ptr(), marks: places.ptr_mut() };
    // SAFETY: a thread for each word of the marks and for each row; pointers below the entries.
    unsafe {
        device.launch::<MarkColumns>(threads(length + 1)?, &stream, mark_columns)?;
        device.launch::<MarkRows>(threads(rows)?, &stream, mark_rows)?;
    }
    scan.enqueue(&mut places, &stream)?;
    stream.synchronize()?;
    // The last word of the scan, as if a row started behind all entries.
    let (end, mut total) =
        (DeviceBuffer::from_slice(device, &[length as u32])?, DeviceBuffer::zeroed(device, 1)?);
    let last = DistinctPointers {
        rows: 0,
        pointers: end.ptr(),
        places: places.ptr(),
        distinct: total.ptr_mut(),
    };
    // SAFETY: one pointer on both sides.
    unsafe { device.launch::<DistinctPointers>(threads(1)?, &stream, last)? };
    stream.synchronize()?;
    let mut distinct = [0];
    total.copy_to_slice(&mut distinct)?;
    let distinct = distinct[0] as usize;
    if distinct == length {
        return Ok(a);
    }
    let mut output = DeviceCsc::new(device, rows, distinct)?;
    let sum = SumDuplicates {
        entries: length as u32,
        places: places.ptr(),
        columns: a.indices.ptr(),
        values: a.values.ptr(),
        distinct_columns: output.indices.ptr_mut(),
        sums: output.values.ptr_mut(),
    };
    let pointers = DistinctPointers {
        rows: rows as u32,
        pointers: a.pointers.ptr(),
        places: places.ptr(),
        distinct: output.pointers.ptr_mut(),
    };
    // SAFETY: places below the number of distinct entries, which the output has room for; a thread
    // for each entry and each pointer.
    unsafe {
        device.launch::<SumDuplicates<T>>(threads(length)?, &stream, sum)?;
        device.launch::<DistinctPointers>(threads(rows + 1)?, &stream, pointers)?;
    }
    stream.synchronize()?;
    Ok(output)
}
