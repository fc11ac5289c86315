//! Copies of some rows of an array in device memory into an array without gaps, and back.

use spm_formats::Scalar;
use spm_gpu_kernels::vector::{VectorGather, VectorScatter};

use crate::device::Device;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::memory::{DeviceBuffer, check_operand};
use crate::plan::DeviceScalar;
use crate::stream::Stream;

/// Threads of a block.
const BLOCK: u32 = 256;
/// Threads of a block over the columns of a row at most.
const MOST_COLUMNS: usize = 32;

/// Some rows of arrays in device memory; an array has k elements in each row, one after the other.
///
/// ```
/// use spm_gpu::{Device, DeviceBuffer, DeviceRows, Stream};
///
/// # let device = Device::emulated(Default::default());
/// let stream = Stream::new(&device)?;
/// // Rows 3 and 1 of vectors of 4 elements.
/// let rows = DeviceRows::new(&device, &[3, 1], 4)?;
/// let x = DeviceBuffer::from_slice(&device, &[0.0, 10.0, 20.0, 30.0])?;
/// let mut picked = DeviceBuffer::zeroed(&device, 2)?;
/// rows.gather(1, &x, &mut picked, 0, &stream)?;
/// assert_eq!(picked.to_vec()?, [30.0, 10.0]);
/// # Ok::<(), spm_gpu::GpuError>(())
/// ```
#[derive(Debug)]
pub struct DeviceRows {
    rows: DeviceBuffer<u32>,
    of: usize,
}

impl DeviceRows {
    /// The rows `rows` of arrays with `of` rows.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for a row that is not below `of`, 2^32 rows or more; [`GpuError::OutOfMemory`].
    pub fn new(device: &Device, rows: &[u32], of: usize) -> Result<Self, GpuError> {
        if let Some(&row) = rows.iter().find(|&&row| row as usize >= of) {
            return Err(GpuError::Shape { what: "rows", expected: of, found: row as usize + 1 });
        }
        if u32::try_from(rows.len()).is_err() {
            let expected = u32::MAX as usize;
            return Err(GpuError::Shape { what: "rows", expected, found: rows.len() });
        }
        Ok(Self { rows: DeviceBuffer::from_slice(device, rows)?, of })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// No rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Overwrites as many rows of `to`, from row `first` on, with the rows of `from`, in the stream.
    ///
    /// # Errors
    /// [`GpuError::Shape`] for lengths that do not fit rows of `k` elements; a buffer or a stream of another
    /// device.
    pub fn gather<T: DeviceScalar>(
        &self,
        k: usize,
        from: &DeviceBuffer<T>,
        to: &mut DeviceBuffer<T>,
        first: usize,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        check_operand("from", self.rows.device(), from, self.of.saturating_mul(k))?;
        check_operand("to", self.rows.device(), to, to.len())?;
        let end = first.saturating_add(self.len()).saturating_mul(k);
        if end > to.len() {
            return Err(GpuError::Shape { what: "to", expected: end, found: to.len() });
        }
        let to = to.ptr_mut().offset((first * k) as u64);
        let (count, rows, from) = (self.len() as u32, self.rows.ptr(), from.ptr());
        // SAFETY: every row is below `of`, and `to` has room for all of them, as checked.
        unsafe { self.launch(k, stream, VectorGather { count, k: k as u64, rows, from, to }) }
    }

    /// Overwrites the rows of `to` with those of `from`, in the stream. Of a row that is named twice either
    /// may win.
    ///
    /// # Errors
    /// As [`DeviceRows::gather`].
    pub fn scatter<T: DeviceScalar>(
        &self,
        k: usize,
        from: &DeviceBuffer<T>,
        to: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.scatter_scaled(k, from, 0, <T as Scalar>::ZERO, to, stream)
    }

    /// Adds rows of `from`, from row `first` on, to the rows of `to`, in the stream. Of a row that is named
    /// twice either may be lost.
    ///
    /// # Errors
    /// As [`DeviceRows::gather`].
    pub fn scatter_add<T: DeviceScalar>(
        &self,
        k: usize,
        from: &DeviceBuffer<T>,
        first: usize,
        to: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        self.scatter_scaled(k, from, first, <T as Scalar>::ONE, to, stream)
    }

    fn scatter_scaled<T: DeviceScalar>(
        &self,
        k: usize,
        from: &DeviceBuffer<T>,
        first: usize,
        beta: T,
        to: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        check_operand("from", self.rows.device(), from, from.len())?;
        check_operand("to", self.rows.device(), to, self.of.saturating_mul(k))?;
        let end = first.saturating_add(self.len()).saturating_mul(k);
        if end > from.len() {
            return Err(GpuError::Shape { what: "from", expected: end, found: from.len() });
        }
        let from = from.ptr().offset((first * k) as u64);
        let (count, k64, rows, to) = (self.len() as u32, k as u64, self.rows.ptr(), to.ptr_mut());
        // SAFETY: every row is below `of`, and `from` has all of them, as checked.
        unsafe { self.launch(k, stream, VectorScatter { count, k: k64, rows, from, beta, to }) }
    }

    /// Launches a kernel with a thread for each row and each of up to 32 columns.
    ///
    /// # Safety
    /// The arguments are right for the rows; their arrays are on the device of the rows.
    unsafe fn launch<K>(&self, k: usize, stream: &Stream, args: K) -> Result<(), GpuError>
    where
        K: spm_gpu_kernels::Kernel<Args = K> + Send,
    {
        stream.check_device(self.rows.device())?;
        if self.is_empty() || k == 0 {
            return Ok(());
        }
        let columns = k.min(MOST_COLUMNS).next_power_of_two() as u32;
        let rows = BLOCK / columns;
        let blocks = (self.len() as u32).div_ceil(rows);
        // SAFETY: the caller's promise; the grid has a thread for each row.
        unsafe { stream.device().launch::<K>(Launch::new(blocks, (columns, rows)), stream, args) }
    }
}
