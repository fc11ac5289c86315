//! Conversions on the device between COO, CSR and CSC, and from CSR to HLL and SELL-C-sigma, by the
//! procedures of the transpositions.
//!
//! ```
//! use std::sync::Arc;
//!
//! use spm_formats::{Coo, MemoryBudget};
//! use spm_gpu::transpose::convert::{self, DeviceCoo};
//! use spm_gpu::{Device, DeviceBuffer, PlanOptions, Stream};
//!
//! # let device = Device::emulated(Default::default());
//! // 1 0 2
//! // 0 3 0
//! let a = Coo::new(2, 3, vec![0, 1, 0], vec![2, 1, 0], vec![2.0, 3.0, 1.0])?;
//! let budget = MemoryBudget::default();
//! let csr = convert::coo_to_csr(&DeviceCoo::from_coo(&device, &a)?, &budget)?;
//! let sell = convert::csr_to_sell(&csr, 32, 1024, &budget)?;
//! assert_eq!(sell.to_host()?.row_lengths(), [2, 1]);
//!
//! // Products without a way back to the host.
//! let mut plan = sell.into_spmv(128)?;
//! let x = DeviceBuffer::from_slice(&device, &[1.0, 10.0, 100.0])?;
//! let (mut y, stream) = (DeviceBuffer::zeroed(&device, 2)?, Stream::new(&device)?);
//! plan.launch(&x, &mut y, &stream)?;
//! let mut result = [0.0; 2];
//! y.copy_to_slice(&mut result)?;
//! assert_eq!(result, [201.0, 30.0]);
//!
//! // Or with any kernel that is planned on the device.
//! let auto = spm_gpu::spmv::find::<f64>("auto").expect("a registered kernel");
//! let (csr, options) = (Arc::new(csr.into_csr()), PlanOptions { budget, ..PlanOptions::default() });
//! let plan = auto.plan_on_device(&csr, &auto.info.defaults(), &options);
//! assert_eq!(plan.expect("planned on the device")?.shape(), (2, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use spm_formats::kernel::PlanError;
use spm_formats::{Coo, CsrView, MemoryBudget};
use spm_gpu_kernels::transpose::{DistinctPointers, MarkColumns, MarkRows, SumDuplicates};

use super::buckets::{ColumnSort, Entries};
use super::radix::default_wish;
use super::scan::Scan;
use crate::budget::within;
use crate::device::Device;
use crate::launch::Launch;
use crate::matrix::{DeviceCsr, DeviceHll, DeviceSell, check_counts};
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceCsc, DeviceReal};
use crate::stream::Stream;

const ID: &str = "convert";
/// Threads of a block with a thread for each element.
const BLOCK: usize = 256;

/// A CSR or CSC matrix on a device: pointers of the rows (columns), the column (row) of each entry,
/// its value. Made from verified arrays only.
#[derive(Debug)]
pub struct DeviceCompressed<T> {
    csr: DeviceCsr<T>,
}

impl<T: DeviceReal> DeviceCompressed<T> {
    /// Copies a CSR matrix to the device.
    ///
    /// # Errors
    /// A matrix that is not valid or too large, too little device memory.
    pub fn from_csr(device: &Device, a: CsrView<'_, T>) -> Result<Self, PlanError> {
        check_counts(a.shape(), a.nnz())?;
        Ok(Self { csr: DeviceCsr::new(device, a)? })
    }

    /// `inner` columns of CSR (rows of CSC).
    fn from_arrays(inner: usize, arrays: DeviceCsc<T>) -> Self {
        Self { csr: DeviceCsr::from_arrays((arrays.col_ptr.len() - 1, inner), arrays) }
    }

    /// The matrix as CSR, to plan products with ([`crate::spmv::SpmvKernel::plan_on_device`],
    /// [`crate::spmm::SpmmKernel::plan_on_device`]); of CSC the transpose.
    pub fn into_csr(self) -> DeviceCsr<T> {
        self.csr
    }

    /// Rows of CSR, columns of CSC.
    pub fn outer(&self) -> usize {
        self.csr.rows()
    }

    /// Columns of CSR, rows of CSC.
    pub fn inner(&self) -> usize {
        self.csr.cols()
    }

    /// The start of each row of CSR (column of CSC), and the number of entries.
    pub fn pointers(&self) -> &DeviceBuffer<u32> {
        &self.csr.row_ptr
    }

    /// Column in CSR (row in CSC) of each entry.
    pub fn indices(&self) -> &DeviceBuffer<u32> {
        &self.csr.col_ind
    }

    /// Value of each entry.
    pub fn values(&self) -> &DeviceBuffer<T> {
        &self.csr.values
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

impl<T: DeviceReal> DeviceCoo<T> {
    /// Copies triplets to the device.
    ///
    /// # Errors
    /// A matrix that is too large, too little device memory.
    pub fn from_coo(device: &Device, a: &Coo<T>) -> Result<Self, PlanError> {
        check_counts((a.rows(), a.cols()), a.entries())?;
        Ok(Self {
            shape: (a.rows(), a.cols()),
            rows: DeviceBuffer::from_slice(device, a.row_ind())?,
            cols: DeviceBuffer::from_slice(device, a.col_ind())?,
            values: DeviceBuffer::from_slice(device, a.values())?,
        })
    }
}

/// CSR to CSC, rows ascending inside each column; entries of one row and column keep their order.
///
/// # Errors
/// More memory than `budget` or the device allows; a device that fails.
pub fn csr_to_csc<T: DeviceReal>(
    a: &DeviceCompressed<T>,
    budget: &MemoryBudget,
) -> Result<DeviceCompressed<T>, PlanError> {
    let entries =
        Entries::Csr { row_ptr: a.pointers(), columns: a.indices(), values: Some(a.values()) };
    let shape = (a.outer(), a.inner());
    let sort = || sorted_by_column(a.csr.device(), shape, &entries);
    Ok(DeviceCompressed::from_arrays(a.outer(), within("csc", budget, 0, sort)?))
}

/// CSC to CSR, columns ascending inside each row: the same as [`csr_to_csc`] of the transpose.
///
/// # Errors
/// As [`csr_to_csc`].
pub fn csc_to_csr<T: DeviceReal>(
    a: &DeviceCompressed<T>,
    budget: &MemoryBudget,
) -> Result<DeviceCompressed<T>, PlanError> {
    csr_to_csc(a, budget)
}

/// COO to CSR, columns ascending inside each row; entries of one row and column are added up in the
/// order of the triplets, so that the same triplets give the same bits.
///
/// # Errors
/// As [`csr_to_csc`].
pub fn coo_to_csr<T: DeviceReal>(
    a: &DeviceCoo<T>,
    budget: &MemoryBudget,
) -> Result<DeviceCompressed<T>, PlanError> {
    within("csr", budget, 0, || sorted_triplets(a))
}

/// See [`coo_to_csr`].
fn sorted_triplets<T: DeviceReal>(a: &DeviceCoo<T>) -> Result<DeviceCompressed<T>, PlanError> {
    let (device, (rows, cols)) = (a.rows.device(), a.shape);
    let triplets = Entries::Triplets { rows: &a.rows, columns: &a.cols, values: &a.values };
    let by_column = sorted_by_column(device, (0, cols), &triplets)?;
    let columns = Entries::Csr {
        row_ptr: &by_column.col_ptr,
        columns: &by_column.row_ind,
        values: Some(&by_column.values),
    };
    let arrays = sorted_by_column(device, (cols, rows), &columns)?;
    Ok(DeviceCompressed::from_arrays(cols, without_duplicates(device, arrays)?))
}

/// CSR to HLL with blocks of `hack_size` rows: see [`DeviceHll::from_csr`].
///
/// # Errors
/// Hack size 0; more memory than `budget` or the device allows; a device that fails.
pub fn csr_to_hll<T: DeviceReal>(
    a: &DeviceCompressed<T>,
    hack_size: usize,
    budget: &MemoryBudget,
) -> Result<DeviceHll<T>, PlanError> {
    within("hll", budget, 0, || DeviceHll::from_csr(&a.csr, hack_size, budget))
}

/// CSR to SELL-C-sigma with chunks of `chunk` rows, sorted inside windows of `sigma` rows: see
/// [`DeviceSell::from_csr`].
///
/// # Errors
/// Chunk or sigma 0; more memory than `budget` or the device allows; a device that fails.
pub fn csr_to_sell<T: DeviceReal>(
    a: &DeviceCompressed<T>,
    chunk: usize,
    sigma: usize,
    budget: &MemoryBudget,
) -> Result<DeviceSell<T>, PlanError> {
    within("sell", budget, 0, || DeviceSell::from_csr(&a.csr, (chunk, sigma), budget))
}

/// The entries of each column in their order.
pub(crate) fn sorted_by_column<T: DeviceReal>(
    device: &Device,
    (rows, cols): (usize, usize),
    entries: &Entries<'_, T>,
) -> Result<DeviceCsc<T>, PlanError> {
    let length = entries.length();
    let mut output = DeviceCsc::new(device, cols, length)?;
    if length == 0 {
        output.col_ptr.fill_zero()?;
        return Ok(output);
    }
    let stream = Stream::new(device)?;
    let mut sort = ColumnSort::new(ID, device, (rows, cols), entries, &default_wish())?;
    sort.enqueue(entries, &mut output, &stream)?;
    stream.synchronize()?;
    Ok(output)
}

/// Sums neighbouring entries with the same row and column.
fn without_duplicates<T: DeviceReal>(
    device: &Device,
    a: DeviceCsc<T>,
) -> Result<DeviceCsc<T>, PlanError> {
    let (length, rows) = (a.row_ind.len(), a.col_ptr.len() - 1);
    let threads = |items: usize| Launch::over(ID, device, items, BLOCK, BLOCK);
    let stream = Stream::new(device)?;
    let mut places = DeviceBuffer::<u32>::uninitialized(device, length + 1)?;
    let mut scan = Scan::fitting(device, length + 1)?;
    let mark_columns =
        MarkColumns { entries: length as u32, columns: a.row_ind.ptr(), marks: places.ptr_mut() };
    let mark_rows =
        MarkRows { rows: rows as u32, row_ptr: a.col_ptr.ptr(), marks: places.ptr_mut() };
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
        row_ptr: end.ptr(),
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
        columns: a.row_ind.ptr(),
        values: a.values.ptr(),
        distinct_columns: output.row_ind.ptr_mut(),
        sums: output.values.ptr_mut(),
    };
    let pointers = DistinctPointers {
        rows: rows as u32,
        row_ptr: a.col_ptr.ptr(),
        places: places.ptr(),
        distinct: output.col_ptr.ptr_mut(),
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
