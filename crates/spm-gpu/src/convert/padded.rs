//! CSR to HLL and SELL-C-sigma: `gpu-kernels/src/convert/padded.rs`.

use spm_formats::kernel::PlanError;
use spm_formats::{FormatError, MemoryBudget};
use spm_gpu_kernels::convert::{
    BlockOffsets, BlockWidths, LengthKeys, PaddedElements, RowLengths, WindowKeys,
};
use spm_gpu_kernels::device::DevicePtr;

use super::{ID, RowStats, ValuePositions, scan, threads, warps};
use crate::matrix::{DeviceCsr, DeviceHll, DeviceSell, check_counts};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::stream::Stream;
use crate::transpose::{Entries, sorted_by_column};

impl<T: DeviceScalar> DeviceHll<T> {
    /// CSR to HLL on the device. The result equals that of [`spm_formats::convert::csr_to_hll`] bit
    /// by bit.
    ///
    /// # Errors
    /// Hack size 0; more memory than `budget` or the device allows; a device that fails.
    pub fn from_csr(
        a: &DeviceCsr<T>,
        hack_size: usize,
        budget: &MemoryBudget,
    ) -> Result<Self, PlanError> {
        check_at_least_one("hack size", hack_size)?;
        check_counts((a.rows(), a.cols()), a.entries())?;
        let (device, rows) = (a.device(), a.rows());
        let height = hack_size.min(rows.max(1));
        let stream = Stream::of_planning(device)?;
        let lengths = Lengths::of(a, None, &stream)?;
        let blocks = Blocks::of(&lengths.of_row, height, &stream)?;
        let last_height = rows - blocks.count.saturating_sub(1) * height;
        let elements = blocks.elements(height, last_height)?;
        let fixed = (blocks.count + 1) * size_of::<usize>() + rows * size_of::<u32>();
        budget.check("hll", a.entries(), elements, size_of::<u32>() + T::BYTES, fixed)?;
        let mut block_offsets = DeviceBuffer::zeroed(device, blocks.count + 1)?;
        let args = BlockOffsets {
            blocks: blocks.count as u32,
            height: height as u32,
            last_height: last_height as u32,
            starts: blocks.starts.ptr(),
            offsets: block_offsets.ptr_mut(),
        };
        // SAFETY: a start and an offset for each block and the end.
        unsafe { device.launch::<BlockOffsets>(threads(device, blocks.count)?, &stream, args)? };
        let (col_ind, values, _) =
            fill(a, None, (rows, height, false), (elements, false), &blocks.starts, &stream)?;
        stream.synchronize()?;
        Ok(Self {
            rows,
            cols: a.cols(),
            given_hack_size: hack_size,
            hack_size: height as u32,
            block_offsets,
            row_lengths: lengths.of_row,
            col_ind,
            values,
        })
    }
}

impl<T: DeviceScalar> DeviceSell<T> {
    /// CSR to SELL-C-sigma on the device. The result equals that of
    /// [`spm_formats::convert::csr_to_sell`] bit by bit.
    ///
    /// # Errors
    /// Chunk or sigma 0; more memory than `budget` or the device allows; a device that fails.
    pub fn from_csr(
        a: &DeviceCsr<T>,
        tuning: (usize, usize),
        budget: &MemoryBudget,
    ) -> Result<Self, PlanError> {
        let sell = Self::with_elements(a, tuning, budget, false, |_| true)?;
        Ok(sell.expect("any number of stored elements is accepted"))
    }

    /// The same; `None` if `accept` refuses the number of stored elements. With `new_values` the values can
    /// be replaced.
    pub(crate) fn with_elements(
        a: &DeviceCsr<T>,
        (chunk, sigma): (usize, usize),
        budget: &MemoryBudget,
        new_values: bool,
        accept: impl FnOnce(u128) -> bool,
    ) -> Result<Option<Self>, PlanError> {
        check_at_least_one("chunk", chunk)?;
        check_at_least_one("sigma", sigma)?;
        check_counts((a.rows(), a.cols()), a.entries())?;
        let (device, rows) = (a.device(), a.rows());
        let chunks = rows.div_ceil(chunk);
        let fixed = (chunks + 1) * size_of::<usize>() + rows * 2 * size_of::<u32>();
        let element_bytes = size_of::<u32>() + T::BYTES;
        budget.check("sell", a.entries(), a.entries() as u128, element_bytes, fixed)?;
        // Lanes are numbered by 32 bits.
        let lanes = chunks.checked_mul(chunk).filter(|&lanes| u32::try_from(lanes).is_ok());
        let Some(lanes) = lanes else {
            let reason =
                format!("{chunks} chunks of {chunk} rows are more lanes than it can count");
            return Err(PlanError::Unsupported { kernel: ID, reason });
        };
        let stream = Stream::of_planning(device)?;
        let order = if sigma > 1 && rows > 1 { Some(order(a, sigma, &stream)?) } else { None };
        let lengths = Lengths::of(a, order.as_ref(), &stream)?;
        let permutation = order.filter(|_| lengths.moved);
        let blocks = Blocks::of(&lengths.of_row, chunk, &stream)?;
        let elements = blocks.elements(chunk, chunk)?;
        if !accept(elements) {
            return Ok(None);
        }
        budget.check("sell", a.entries(), elements, element_bytes, fixed)?;
        let shape = (lanes, chunk, true);
        let elements = (elements, new_values);
        let (col_ind, values, positions) =
            fill(a, permutation.as_ref(), shape, elements, &blocks.starts, &stream)?;
        stream.synchronize()?;
        Ok(Some(Self {
            rows,
            cols: a.cols(),
            chunk,
            sigma,
            chunk_starts: blocks.starts,
            permutation,
            row_lengths: lengths.of_row,
            col_ind,
            values,
            positions,
        }))
    }
}

fn check_at_least_one(what: &'static str, found: usize) -> Result<(), PlanError> {
    if found > 0 {
        return Ok(());
    }
    let expected = "at least 1 row";
    Err(FormatError::InvalidParameter { what, expected, found }.into())
}

/// The row at each position: two stable sorts, by length and then by window.
fn order<T: DeviceScalar>(
    a: &DeviceCsr<T>,
    sigma: usize,
    stream: &Stream,
) -> Result<DeviceBuffer<u32>, PlanError> {
    let (device, rows) = (a.device(), a.rows());
    let longest = RowStats::of(a)?.longest_row;
    let launch = threads(device, rows)?;
    let mut keys = DeviceBuffer::<u32>::uninitialized(device, rows)?;
    let mut numbers = DeviceBuffer::<u32>::uninitialized(device, rows)?;
    let args = LengthKeys {
        rows: rows as u32,
        longest: longest as u32,
        row_ptr: a.row_ptr.ptr(),
        keys: keys.ptr_mut(),
        numbers: numbers.ptr_mut(),
    };
    // SAFETY: rows + 1 pointers, a key and a number for each row.
    unsafe { device.launch::<LengthKeys>(launch, stream, args)? };
    stream.synchronize()?;
    // The sort moves a value with each entry.
    let values = DeviceBuffer::<f32>::zeroed(device, rows)?;
    let by_length = Entries::Triplets { rows: &numbers, columns: &keys, values: &values };
    let by_length = sorted_by_column(device, (0, longest + 1), &by_length)?.row_ind;
    if sigma >= rows {
        return Ok(by_length);
    }
    let args = WindowKeys {
        rows: rows as u32,
        sigma: sigma as u32,
        order: by_length.ptr(),
        keys: keys.ptr_mut(),
    };
    // SAFETY: a row and a key for each position.
    unsafe { device.launch::<WindowKeys>(launch, stream, args)? };
    stream.synchronize()?;
    let by_window = Entries::Triplets { rows: &by_length, columns: &keys, values: &values };
    Ok(sorted_by_column(device, (0, rows.div_ceil(sigma)), &by_window)?.row_ind)
}

/// The kernel arguments for the order of the rows: whether they are sorted, and the order.
fn order_arguments(order: Option<&DeviceBuffer<u32>>) -> (u32, DevicePtr<u32>) {
    match order {
        Some(order) => (1, order.ptr()),
        // SAFETY: rows that are not sorted have no order that is looked at.
        None => (0, unsafe { DevicePtr::from_raw(0) }),
    }
}

/// The length of the row at each position.
struct Lengths {
    of_row: DeviceBuffer<u32>,
    /// Whether any row is at another position than its own.
    moved: bool,
}

impl Lengths {
    fn of<T: DeviceScalar>(
        a: &DeviceCsr<T>,
        order: Option<&DeviceBuffer<u32>>,
        stream: &Stream,
    ) -> Result<Self, PlanError> {
        let (device, rows) = (a.device(), a.rows());
        let mut of_row = DeviceBuffer::uninitialized(device, rows)?;
        let mut moved = DeviceBuffer::<u32>::zeroed(device, 1)?;
        let (sorted, order) = order_arguments(order);
        let args = RowLengths {
            rows: rows as u32,
            sorted,
            order,
            row_ptr: a.row_ptr.ptr(),
            lengths: of_row.ptr_mut(),
            moved: moved.ptr_mut(),
        };
        // SAFETY: rows + 1 pointers, an order of the rows, a length for each.
        unsafe { device.launch::<RowLengths>(threads(device, rows)?, stream, args)? };
        stream.synchronize()?;
        Ok(Self { of_row, moved: moved.element(0)? > 0 })
    }
}

/// Blocks of rows, each as wide as its longest row.
struct Blocks {
    count: usize,
    /// Prefix sums of the block widths, and their total.
    starts: DeviceBuffer<u32>,
}

impl Blocks {
    /// The sum of the widths is at most the number of entries and therefore fits 32 bits.
    fn of(lengths: &DeviceBuffer<u32>, height: usize, stream: &Stream) -> Result<Self, PlanError> {
        let (device, rows) = (lengths.device(), lengths.len());
        let count = rows.div_ceil(height);
        let mut starts = DeviceBuffer::zeroed(device, count + 1)?;
        let args = BlockWidths {
            rows: rows as u32,
            blocks: count as u32,
            height: height.min(rows) as u32,
            lengths: lengths.ptr(),
            widths: starts.ptr_mut(),
        };
        // SAFETY: a length for each row, a warp and a width for each block.
        unsafe { device.launch::<BlockWidths>(warps(device, count)?, stream, args)? };
        scan(&mut starts, stream)?;
        Ok(Self { count, starts })
    }

    /// Stored elements of all blocks of `height` rows; the last block has `last_height` rows.
    fn elements(&self, height: usize, last_height: usize) -> Result<u128, PlanError> {
        let Some(last) = self.count.checked_sub(1) else { return Ok(0) };
        let (start, end) = (self.starts.element(last)?, self.starts.element(self.count)?);
        let elements = |columns: u32, height: usize| u128::from(columns) * height as u128;
        Ok(elements(start, height) + elements(end - start, last_height))
    }
}

/// Column indices, values, and the positions of the values.
type Filled<T> = (DeviceBuffer<u32>, DeviceBuffer<T>, Option<ValuePositions>);

/// Column indices and values of all stored elements. `shape`: rows, rows of a block, and whether
/// the last block is padded to that height.
fn fill<T: DeviceScalar>(
    a: &DeviceCsr<T>,
    order: Option<&DeviceBuffer<u32>>,
    (lanes, height, filled): (usize, usize, bool),
    (elements, new_values): (u128, bool),
    starts: &DeviceBuffer<u32>,
    stream: &Stream,
) -> Result<Filled<T>, PlanError> {
    let device = a.device();
    let elements = usize::try_from(elements).unwrap_or(usize::MAX);
    let mut columns = DeviceBuffer::uninitialized(device, elements)?;
    let (sorted, order) = order_arguments(order);
    let launch = threads(device, lanes)?;
    let to_columns = columns.ptr_mut();
    let convert = |from, into: &mut DeviceBuffer<T>| {
        let args = PaddedElements {
            rows: a.rows() as u32,
            lanes: lanes as u32,
            height: height as u32,
            filled: filled.into(),
            sorted,
            order,
            row_ptr: a.row_ptr.ptr(),
            col_ind: a.col_ind.ptr(),
            values: from,
            starts: starts.ptr(),
            to_columns,
            to_values: into.ptr_mut(),
        };
        // SAFETY: verified CSR arrays, an order of the rows, as many stored elements as the starts say.
        unsafe { device.launch::<PaddedElements<T>>(launch, stream, args)? };
        Ok(())
    };
    let (values, positions) = ValuePositions::convert(a, elements, new_values, stream, convert)?;
    Ok((columns, values, positions))
}
