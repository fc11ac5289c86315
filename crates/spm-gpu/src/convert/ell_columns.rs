//! Conversion of CSR to `csr-ell-columns`: a fixed number of stored column indices for each thread
//! (`gpu-kernels/src/convert/ell_columns.rs`).

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::EllColumns;
use spm_gpu_kernels::spmv::COLUMN_BIAS;

use super::COMPRESSED;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::matrix::{DeviceMatrix, PlanCsr};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::stream::Stream;

/// Columns that 16 bits can number; one number stands for an empty stored element.
const MOST_SHORT_COLUMNS: usize = u16::MAX as usize;

/// A CSR matrix, with a second copy of its column indices in a fixed number of stored elements per
/// thread.
#[derive(Debug)]
pub(crate) struct DeviceEllColumns<T> {
    pub(crate) csr: PlanCsr<T>,
    /// The value of all entries if it is not read from CSR.
    pub(crate) equal: Option<T>,
    /// All ones for columns relative to the row, 0 for absolute ones; `None` for 32 bits.
    pub(crate) relative: Option<u32>,
    /// Whether some rows have more entries than stored elements.
    pub(crate) rest: bool,
    pub(crate) words: DeviceBuffer<u32>,
}

impl<T: DeviceReal> DeviceEllColumns<T> {
    /// Stored elements for every thread of `launch`, that of the product: `lanes` threads of
    /// `elements` (4 or 8) for each row, of which the longest has `longest` entries.
    pub(crate) fn new(
        csr: PlanCsr<T>,
        equal: Option<T>,
        (lanes, elements): (usize, usize),
        longest: usize,
        compact: bool,
        launch: Launch,
    ) -> Result<Self, PlanError> {
        let words = |relative| words(&csr, (lanes, elements), relative, launch);
        let mut relative =
            compact.then_some(if csr.cols() <= MOST_SHORT_COLUMNS { 0 } else { u32::MAX });
        let mut made = words(relative)?;
        if made.is_none() {
            relative = None;
            made = words(relative)?;
        }
        let words = made.expect("32 bits hold every column");
        let rest = longest > lanes * elements;
        Ok(Self { csr, equal, relative, rest, words })
    }
}

/// `None` if relative columns do not fit.
fn words<T: DeviceReal>(
    csr: &PlanCsr<T>,
    (lanes, elements): (usize, usize),
    relative: Option<u32>,
    launch: Launch,
) -> Result<Option<DeviceBuffer<u32>>, PlanError> {
    let device = csr.device();
    let stream = Stream::of_planning(device)?;
    let threads = (launch.grid.count() * launch.block.count()) as usize;
    let bits = if relative.is_some() { 16 } else { 32 };
    let mut words = DeviceBuffer::uninitialized(device, threads * elements * bits / 32)?;
    let mut too_far = DeviceBuffer::<u32>::zeroed(device, 1)?;
    let args = EllColumns {
        rows: csr.rows() as u32,
        lanes: lanes as u32,
        elements: elements as u32,
        wide: u32::from(relative.is_none()),
        relative: relative.unwrap_or(0),
        row_ptr: csr.row_ptr(),
        col_ind: csr.col_ind(),
        words: words.ptr_mut(),
        too_far: too_far.ptr_mut(),
    };
    // SAFETY: verified CSR arrays, words for the stored elements of each thread.
    unsafe { device.launch::<EllColumns>(launch, &stream, args)? };
    stream.synchronize()?;
    // Absolute columns were seen to fit.
    let fit = relative.unwrap_or(0) == 0 || too_far.element(0)? == 0;
    Ok(fit.then_some(words))
}

impl<T: DeviceReal> DeviceMatrix for DeviceEllColumns<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        (self.csr.rows(), self.csr.cols())
    }

    fn bytes(&self) -> u64 {
        let csr = match self.equal {
            Some(_) => 0,
            None => self.csr.value_bytes() + self.csr.pointer_bytes(),
        };
        self.words.bytes() as u64 + csr
    }

    fn rarely_read_bytes(&self) -> u64 {
        let own = self.csr.rarely_read_bytes();
        own + self.csr.bytes() + self.words.bytes() as u64 - self.bytes()
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        if self.equal.is_some() {
            return Err(COMPRESSED);
        }
        self.csr.set_values(values, stream)
    }
}

const _: () = assert!(COLUMN_BIAS < u16::MAX as u32);
