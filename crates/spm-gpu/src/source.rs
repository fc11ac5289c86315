//! The input of planning on the device: a CSR matrix in device memory with its statistics.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use spm_formats::convert::DetectedBlocks;
use spm_formats::kernel::PlanError;
use spm_formats::{CsrView, MemoryBudget};

use crate::convert::{
    BsrBlocks, BsrOptions, DeviceBsr, DeviceDictionary, PatternSample, RowStats, Survey,
    ValueStats, detect_blocks,
};
use crate::device::Device;
use crate::error::GpuError;
use crate::matrix::{DeviceCsr, DeviceSell, check_counts};
use crate::plan::{DeviceReal, DeviceScalar};

/// A CSR matrix on the device, with the statistics that decide between kernels.
pub(crate) struct Source<T> {
    pub(crate) csr: Arc<DeviceCsr<T>>,
    pub(crate) stats: RowStats,
    /// Whether the plan is for new values; [`Source::values`] then says nothing of the old ones.
    pub(crate) new_values: bool,
    /// Whether the matrix is not the plan's alone.
    pub(crate) is_shared: bool,
    /// See [`Source::values`].
    values: OnceCell<ValueStats<T>>,
    /// See [`Source::blocks`].
    blocks: OnceCell<Option<DetectedBlocks>>,
    /// See [`Source::pattern`].
    pattern: OnceCell<PatternSample>,
    /// See [`Source::dictionary`].
    dictionary: OnceCell<Option<DeviceDictionary<T>>>,
    /// The row pointers in host memory, for kernels that split rows there.
    row_ptr: OnceCell<Vec<u32>>,
    /// The last conversion to SELL-32, and its sigma, for plans that share it.
    sell: RefCell<Option<(usize, Arc<DeviceSell<T>>)>>,
    /// The last conversion to BSR with one thread for each block row, for plans that share it.
    bsr: RefCell<Option<Arc<DeviceBsr<T>>>>,
}

/// What is known already, or a place for it.
fn known<V>(value: Option<V>) -> OnceCell<V> {
    value.map_or_else(OnceCell::new, OnceCell::from)
}

/// Looks at a matrix; not at its values where the plan is for new ones.
pub(crate) type Look<T> = fn(&DeviceCsr<T>, bool) -> Result<Survey<T>, PlanError>;

impl<T: DeviceScalar> Source<T> {
    fn new(
        csr: Arc<DeviceCsr<T>>,
        new_values: bool,
        is_shared: bool,
        look: Look<T>,
    ) -> Result<Self, PlanError> {
        check_counts((csr.rows(), csr.cols()), csr.entries())?;
        let Survey { rows: stats, values, blocks, pattern, many_values } = look(&csr, new_values)?;
        let (values, blocks, pattern) = (known(values), known(blocks), known(pattern));
        let (dictionary, row_ptr) = (known(many_values.then_some(None)), OnceCell::new());
        let (sell, bsr) = (RefCell::default(), RefCell::default());
        Ok(Self {
            csr,
            stats,
            new_values,
            is_shared,
            values,
            blocks,
            pattern,
            dictionary,
            row_ptr,
            sell,
            bsr,
        })
    }

    /// Of a matrix that others use, too.
    pub(crate) fn shared(
        csr: Arc<DeviceCsr<T>>,
        new_values: bool,
        look: Look<T>,
    ) -> Result<Self, PlanError> {
        Self::new(csr, new_values, true, look)
    }

    /// Verifies a matrix of the host and copies it to the device.
    pub(crate) fn upload(
        device: &Device,
        a: CsrView<'_, T>,
        new_values: bool,
        look: Look<T>,
    ) -> Result<Self, PlanError> {
        Self::new(Arc::new(DeviceCsr::new(device, a)?), new_values, false, look)
    }

    /// What the values have in common, computed at the first call; nothing for a plan for new values.
    pub(crate) fn values(&self) -> Result<ValueStats<T>, PlanError>
    where
        T: DeviceReal,
    {
        if let Some(&stats) = self.values.get() {
            return Ok(stats);
        }
        let stats = if self.new_values { ValueStats::NONE } else { ValueStats::of(&self.csr)? };
        Ok(*self.values.get_or_init(|| stats))
    }

    /// The square blocks in which the matrix seems to take the fewest bytes, looked for at the first call.
    pub(crate) fn blocks(&self) -> Result<Option<DetectedBlocks>, PlanError> {
        if let Some(&blocks) = self.blocks.get() {
            return Ok(blocks);
        }
        let blocks = detect_blocks(&self.csr)?;
        Ok(*self.blocks.get_or_init(|| blocks))
    }

    /// What some rows say of the pattern, looked at at the first call.
    pub(crate) fn pattern(&self) -> Result<PatternSample, PlanError> {
        if let Some(&sample) = self.pattern.get() {
            return Ok(sample);
        }
        let sample = PatternSample::of(&self.csr)?;
        Ok(*self.pattern.get_or_init(|| sample))
    }

    /// The distinct values where a byte numbers them, looked for at the first call; nothing for a plan for new values.
    pub(crate) fn dictionary(&self) -> Result<Option<&DeviceDictionary<T>>, PlanError>
    where
        T: DeviceReal,
    {
        if let Some(dictionary) = self.dictionary.get() {
            return Ok(dictionary.as_ref());
        }
        let dictionary = if self.new_values { None } else { DeviceDictionary::of(&self.csr)? };
        Ok(self.dictionary.get_or_init(|| dictionary).as_ref())
    }

    /// Mean length of the rows that have entries; at least 1.
    pub(crate) fn mean_row(&self) -> usize {
        let filled = self.csr.rows() - self.stats.empty_rows;
        (self.csr.entries() / filled.max(1)).max(1)
    }

    /// The row pointers in host memory, copied at the first call.
    pub(crate) fn host_pointers(&self) -> Result<&[u32], GpuError> {
        if let Some(row_ptr) = self.row_ptr.get() {
            return Ok(row_ptr);
        }
        let row_ptr = self.csr.row_ptr.to_vec()?;
        Ok(self.row_ptr.get_or_init(|| row_ptr))
    }

    /// The matrix as SELL-32-sigma.
    pub(crate) fn sell(
        &self,
        sigma: usize,
        budget: &MemoryBudget,
    ) -> Result<Arc<DeviceSell<T>>, PlanError> {
        let sell = self.sell_if(sigma, budget, |_| true)?;
        Ok(sell.expect("any number of stored elements is accepted"))
    }

    /// The same; `None` if `accept` refuses the number of stored elements per entry.
    pub(crate) fn sell_if(
        &self,
        sigma: usize,
        budget: &MemoryBudget,
        accept: impl FnOnce(f64) -> bool,
    ) -> Result<Option<Arc<DeviceSell<T>>>, PlanError> {
        if let Some((of, sell)) = &*self.sell.borrow()
            && *of == sigma
        {
            return Ok(Some(Arc::clone(sell)));
        }
        let tuning = (DeviceSell::<T>::CHUNK, sigma);
        let entries = self.csr.entries().max(1) as f64;
        let accept = |elements: u128| accept(elements as f64 / entries);
        let sell = DeviceSell::with_elements(&self.csr, tuning, budget, self.new_values, accept)?;
        let sell = sell.map(Arc::new);
        if let Some(sell) = &sell {
            *self.sell.borrow_mut() = Some((sigma, Arc::clone(sell)));
        }
        Ok(sell)
    }

    /// The matrix as BSR of blocks of `size` x `size` with one thread for each block row; `None` if `accept` refuses the
    /// number of stored elements.
    pub(crate) fn bsr_if(
        &self,
        size: usize,
        budget: &MemoryBudget,
        accept: impl FnOnce(u64) -> bool,
    ) -> Result<Option<Arc<DeviceBsr<T>>>, PlanError> {
        if let Some(bsr) = &*self.bsr.borrow()
            && bsr.size == size
        {
            return Ok(Some(Arc::clone(bsr)));
        }
        let options = BsrOptions { size, new_values: self.new_values };
        let blocks = BsrBlocks::count(&self.csr, options)?;
        if !accept(blocks.elements()) {
            return Ok(None);
        }
        let bsr = Arc::new(blocks.convert(1, budget)?);
        *self.bsr.borrow_mut() = Some(Arc::clone(&bsr));
        Ok(Some(bsr))
    }
}
