//! CSR to SELL-P: `gpu-kernels/src/convert/sellp.rs`.

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{
    MOST_SIGMA, SellpColumns, SellpMeasure, SellpOrder, SellpValues, SellpValuesCoded,
    SellpValuesSingle,
};

use super::{COMPRESSED, DeviceDictionary, DeviceReducedValues, ValueKind, ValuePositions, warps};
use crate::error::GpuError;
use crate::launch::{Launch, WARP};
use crate::matrix::{DeviceCsr, DeviceMatrix, check_stored_elements};
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::stream::Stream;
use crate::transpose::Scan;

/// Number of sizes measured for a chunk: stored elements, bases, offsets, fill words.
const MEASURES: usize = 4;
/// Stored elements per entry up to which one measurement is made instead of two.
const CHEAP_PADDING: usize = 2;
/// Entries up to which looking at all columns takes less than the launches of a second measurement.
const CHEAP_ENTRIES: usize = 1 << 21;

/// Options of the conversion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SellpOptions<'d, T> {
    /// Threads of a row: a power of two up to 32.
    pub(crate) lanes: usize,
    /// Whether column indices are compressed.
    pub(crate) compact: bool,
    /// Whether chunks with few diagonals are stored by diagonal, if rows are not sorted.
    pub(crate) diagonals: bool,
    /// Rows of a window that is sorted by length: a power of two up to [`MOST_SIGMA`]; 1 does not sort.
    pub(crate) sigma: usize,
    /// Entries of the longest row.
    pub(crate) longest_row: usize,
    pub(crate) values: ValueKind<T>,
    /// If values are stored by number instead.
    pub(crate) dictionary: Option<&'d DeviceDictionary<T>>,
    /// Whether values can be replaced.
    pub(crate) new_values: bool,
}

/// The values of the stored elements.
#[derive(Debug)]
pub(crate) enum StoredValues<T> {
    Reduced(DeviceReducedValues<T>),
    /// Numbers, four in a word, and the value of each number.
    Coded(DeviceBuffer<u32>, DeviceBuffer<T>),
}

/// SELL-P with a warp for each chunk.
#[derive(Debug)]
pub(crate) struct DeviceSellp<T> {
    pub(crate) shape: (usize, usize),
    pub(crate) log_lanes: u32,
    pub(crate) headers: DeviceBuffer<[u32; 4]>,
    pub(crate) bases: DeviceBuffer<u32>,
    pub(crate) offsets: DeviceBuffer<u32>,
    pub(crate) fills: DeviceBuffer<u32>,
    /// The row at each position, counted from the first one of its window; empty where rows are not sorted.
    pub(crate) order: DeviceBuffer<u16>,
    /// log2 of the rows of a window, 0 where they are not sorted.
    pub(crate) log_sigma: u32,
    /// Of the CSR matrix.
    pub(crate) row_ptr: DeviceBuffer<u32>,
    pub(crate) values: StoredValues<T>,
    /// For new values.
    positions: Option<ValuePositions>,
}

/// A matrix whose SELL-P has been measured: its size is known before any of it is written.
pub(crate) struct MeasuredSellp<'a, T> {
    a: &'a DeviceCsr<T>,
    options: SellpOptions<'a, T>,
    stream: Stream,
    /// See [`SellpOptions::sigma`].
    sorted: DeviceBuffer<u16>,
    /// Exclusive sums of the measured sizes of all chunks, and how each chunk is stored.
    sums: DeviceBuffer<u32>,
    modes: DeviceBuffer<u32>,
    /// Stored elements of all chunks.
    elements: u64,
    /// Groups of four bases, and of each lane words of offsets and words of fills.
    quads: u64,
    units: u64,
    fills: u64,
}

impl<'a, T: DeviceReal> MeasuredSellp<'a, T> {
    /// Measures; `None` if `accept` refuses the number of stored elements.
    pub(crate) fn new(
        a: &'a DeviceCsr<T>,
        options: SellpOptions<'a, T>,
        accept: impl FnOnce(u64) -> Result<bool, PlanError>,
    ) -> Result<Option<Self>, PlanError> {
        let device = a.device();
        let stream = Stream::of_planning(device)?;
        let log_lanes = options.lanes.trailing_zeros();
        let chunks = a.rows().div_ceil(WARP >> log_lanes);
        check_sums(a.entries(), chunks, options.lanes)?;
        check_stored_elements(super::ID, options.longest_row.div_ceil(options.lanes))?;
        let launch = warps(device, chunks)?;
        let mut sums = DeviceBuffer::<u32>::uninitialized(device, MEASURES * chunks + 1)?;
        let mut modes = DeviceBuffer::<u32>::uninitialized(device, chunks)?;
        // Allocated before anything runs that its memory might be waited for.
        let mut scan = Scan::fitting(device, sums.len())?;
        let (rows, row_ptr) = (a.rows() as u32, a.row_ptr.ptr());
        let col_ind = a.col_ind.ptr();
        // The kernel adds up to 31 to a column.
        let last_safe = (u32::MAX - WARP as u32) as usize;
        let diagonals = options.diagonals && options.sigma == 1 && a.cols() <= last_safe;
        let sorted = order(a, options.sigma, &stream)?;
        let (log_sigma, order) = (options.sigma.trailing_zeros(), sorted.ptr());
        let quads = options.dictionary.is_some() || options.values == ValueKind::Single;
        let round = if quads { 4 } else { 1 };
        // Widths alone are cheap: where they may be hopeless, columns are not looked at before. Elements of a byte may be many.
        let bounded = a.rows() * options.longest_row <= CHEAP_PADDING * a.entries()
            || a.entries() <= CHEAP_ENTRIES
            || options.dictionary.is_some();
        let again = !bounded && (options.compact || diagonals || round > 1);
        let mut args = SellpMeasure {
            rows,
            chunks: chunks as u32,
            log_lanes,
            round: if again { 1 } else { round },
            compact: u32::from(options.compact && !again),
            diagonals: u32::from(diagonals && !again),
            row_ptr,
            col_ind,
            log_sigma,
            order,
            measures: sums.ptr_mut(),
            modes: modes.ptr_mut(),
        };
        // SAFETY: verified CSR arrays, words for each chunk and one more.
        unsafe { device.launch::<SellpMeasure>(launch, &stream, args)? };
        let mut measured = totals(&mut scan, &mut sums, &stream)?;
        if !accept(measured[0] * WARP as u64)? {
            return Ok(None);
        }
        if again {
            args.round = round;
            args.compact = options.compact.into();
            args.diagonals = diagonals.into();
            // SAFETY: as above.
            unsafe { device.launch::<SellpMeasure>(launch, &stream, args)? };
            measured = totals(&mut scan, &mut sums, &stream)?;
        }
        let [elements, quads, units, fills] = measured;
        if quads >= 1 << 30 || units >= 1 << 30 {
            let reason = "column offsets of more than 2^37 bytes".to_owned();
            return Err(PlanError::Unsupported { kernel: super::ID, reason });
        }
        let elements = elements * WARP as u64;
        Ok(Some(Self { a, options, stream, sorted, sums, modes, elements, quads, units, fills }))
    }

    /// Bytes that a product reads of the matrix.
    pub(crate) fn bytes(&self) -> u64 {
        let rows = self.a.rows() as u64;
        let chunks = self.modes.len() as u64;
        let word = size_of::<u32>() as u64;
        let columns = word * (4 * chunks + 4 * self.quads) + self.offset_bytes();
        let order = self.sorted.bytes() as u64;
        let values = match (self.options.dictionary, self.options.values) {
            (Some(dictionary), _) => self.elements + dictionary.values.bytes() as u64,
            (None, ValueKind::Equal(_)) => word * (rows + 1 + WARP as u64 * self.fills),
            (None, ValueKind::Stored) => self.elements * size_of::<T>() as u64,
            (None, ValueKind::Single) => self.elements * size_of::<f32>() as u64,
        };
        columns + order + values
    }

    /// Whether most column indices take at most 8 bits, so that x is read almost in order.
    pub(crate) fn is_regular(&self) -> bool {
        self.offset_bytes() <= self.elements
    }

    fn offset_bytes(&self) -> u64 {
        self.units * (WARP * size_of::<u32>()) as u64
    }

    /// Converts.
    pub(crate) fn convert(self) -> Result<DeviceSellp<T>, PlanError> {
        let Self { a, options, stream, sorted, sums, modes, elements, quads, units, fills } = self;
        let (device, order, chunks) = (a.device(), sorted.ptr(), modes.len());
        let (rows, row_ptr, col_ind) = (a.rows() as u32, a.row_ptr.ptr(), a.col_ind.ptr());
        let log_lanes = options.lanes.trailing_zeros();
        let log_sigma = options.sigma.trailing_zeros();
        let launch = warps(device, chunks)?;
        let mut headers = DeviceBuffer::uninitialized(device, chunks)?;
        let mut bases = DeviceBuffer::uninitialized(device, 4 * quads as usize)?;
        let mut offsets = DeviceBuffer::uninitialized(device, WARP * units as usize)?;
        let mut fills = DeviceBuffer::uninitialized(device, WARP * fills as usize)?;
        let mut kept = DeviceBuffer::uninitialized(device, a.rows() + 1)?;
        let args = SellpColumns {
            rows,
            chunks: chunks as u32,
            log_lanes,
            row_ptr,
            col_ind,
            log_sigma,
            order,
            sums: sums.ptr(),
            modes: modes.ptr(),
            headers: headers.ptr_mut(),
            bases: bases.ptr_mut(),
            offsets: offsets.ptr_mut(),
            fills: fills.ptr_mut(),
        };
        // SAFETY: arrays of the sizes that were measured.
        unsafe { device.launch::<SellpColumns>(launch, &stream, args)? };
        let shape = (rows, chunks as u32, log_lanes);
        macro_rules! fill {
            ($fill:ident, $from:expr, $into:expr $(, $more:ident: $of:expr)*) => {{
                let args = $fill {
                    rows: shape.0,
                    chunks: shape.1,
                    log_lanes,
                    row_ptr,
                    col_ind,
                    log_sigma,
                    order,
                    sums: sums.ptr(),
                    modes: modes.ptr(),
                    values: $from,
                    $($more: $of.ptr(),)*
                    elements: $into.ptr_mut(),
                };
                // SAFETY: as above.
                unsafe { device.launch::<$fill<T>>(launch, &stream, args)? }
            }};
        }
        let mut positions = None;
        let values = match (options.dictionary, options.values) {
            (Some(DeviceDictionary { table, codes, values }), _) => {
                let mut numbers = DeviceBuffer::uninitialized(device, elements as usize / 4)?;
                fill!(SellpValuesCoded, a.values.ptr(), numbers, table: table, codes: codes);
                let mut of_plan = DeviceBuffer::uninitialized(device, values.len())?;
                of_plan.copy_from_on(values, &stream)?;
                StoredValues::Coded(numbers, of_plan)
            }
            (None, ValueKind::Equal(value)) => {
                StoredValues::Reduced(DeviceReducedValues::Equal(value))
            }
            (None, ValueKind::Stored) => {
                let (keep, elements) = (options.new_values, elements as usize);
                let values;
                (values, positions) =
                    ValuePositions::convert(a, elements, keep, &stream, |from, into| {
                        fill!(SellpValues, from, into);
                        Ok(())
                    })?;
                StoredValues::Reduced(DeviceReducedValues::Stored(values))
            }
            (None, ValueKind::Single) => {
                let mut values = DeviceBuffer::uninitialized(device, elements as usize)?;
                fill!(SellpValuesSingle, a.values.ptr(), values);
                StoredValues::Reduced(DeviceReducedValues::Single(values))
            }
        };
        kept.copy_from_on(&a.row_ptr, &stream)?;
        stream.synchronize()?;
        let shape = (a.rows(), a.cols());
        Ok(DeviceSellp {
            shape,
            log_lanes,
            headers,
            bases,
            offsets,
            fills,
            order: sorted,
            log_sigma,
            row_ptr: kept,
            values,
            positions,
        })
    }
}

/// The row at each position, counted from the first one of its window; nothing where `sigma` is 1, or there are no rows.
fn order<T: DeviceReal>(
    a: &DeviceCsr<T>,
    sigma: usize,
    stream: &Stream,
) -> Result<DeviceBuffer<u16>, PlanError> {
    assert!(sigma.is_power_of_two() && sigma <= MOST_SIGMA as usize, "a window of {sigma} rows");
    let (device, rows) = (a.device(), a.rows());
    if sigma == 1 || rows == 0 {
        return Ok(DeviceBuffer::uninitialized(device, 0)?);
    }
    let mut order = DeviceBuffer::uninitialized(device, rows)?;
    let shared = (sigma.max(4) * size_of::<u32>()) as u32;
    let launch = Launch::new(rows.div_ceil(sigma) as u32, sigma as u32).with_shared_bytes(shared);
    let args = SellpOrder { rows: rows as u32, row_ptr: a.row_ptr.ptr(), order: order.ptr_mut() };
    // SAFETY: rows + 1 pointers, a thread and a place for each row.
    unsafe { device.launch::<SellpOrder>(launch, stream, args)? };
    Ok(order)
}

/// Refuses a matrix whose measured sizes might wrap. The stored elements of a lane are rounded up
/// to a multiple of 4. The bases of a chunk by diagonal are a quarter of 5 for each 4 entries of
/// its longest row, rounded up to 4 for each lane of a row, twice.
fn check_sums(entries: usize, chunks: usize, lanes: usize) -> Result<(), PlanError> {
    let most = entries as u128 + (4 + 2 * lanes as u128) * chunks as u128;
    if u32::try_from(most).is_ok() {
        return Ok(());
    }
    let reason = format!("up to {most} stored elements of a lane are more than 32 bits number");
    Err(PlanError::Unsupported { kernel: super::ID, reason })
}

/// Replaces all measured sizes of chunks, and one more word, by their exclusive sums; returns the
/// total of each size.
fn totals(
    scan: &mut Scan,
    sums: &mut DeviceBuffer<u32>,
    stream: &Stream,
) -> Result<[u64; MEASURES], PlanError> {
    let chunks = sums.len() / MEASURES;
    if chunks == 0 {
        return Ok([0; MEASURES]);
    }
    let ends = scan.every(sums, chunks, stream)?;
    // The sums of all measures together may wrap, those of one do not.
    Ok(std::array::from_fn(|i| ends[i + 1].wrapping_sub(ends[i]).into()))
}

impl<T: DeviceReal> DeviceMatrix for DeviceSellp<T> {
    type Value = T;

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn bytes(&self) -> u64 {
        let columns = self.headers.bytes() + self.bases.bytes() + self.offsets.bytes();
        let columns = columns + self.order.bytes();
        // Without values only the row pointers tell what is padding.
        let (values, filled) = match &self.values {
            StoredValues::Reduced(DeviceReducedValues::Equal(_)) => {
                (0, self.row_ptr.bytes() + self.fills.bytes())
            }
            StoredValues::Reduced(values) => (values.bytes(), 0),
            StoredValues::Coded(numbers, values) => (numbers.bytes() + values.bytes(), 0),
        };
        (columns + filled + values) as u64
    }

    fn rarely_read_bytes(&self) -> u64 {
        let positions = self.positions.as_ref().map_or(0, ValuePositions::bytes);
        let filled = match self.values {
            StoredValues::Reduced(DeviceReducedValues::Equal(_)) => 0,
            _ => self.row_ptr.bytes() + self.fills.bytes(),
        };
        (positions + filled) as u64
    }

    fn set_values(&mut self, values: &DeviceBuffer<T>, stream: &Stream) -> Result<(), GpuError> {
        match &mut self.values {
            StoredValues::Reduced(of) => of.set(self.positions.as_ref(), values, stream),
            StoredValues::Coded(..) => Err(COMPRESSED),
        }
    }
}

#[cfg(test)]
mod tests {
    use spm_testing::generate;

    use super::*;
    use crate::convert::RowStats;
    use crate::device::Device;

    /// In all orders and ways to store values.
    #[test]
    fn bytes_are_known_before_the_conversion() {
        let device = Device::emulated(Default::default());
        for name in ["uniform[rows=300,cols=900,entries=2500,values=few]", "stencil5[n=20]"] {
            let a = generate::named(name).unwrap().generate::<f64>().unwrap();
            let a = DeviceCsr::new(&device, a.view()).unwrap();
            let dictionary = DeviceDictionary::of(&a).unwrap();
            let longest_row = RowStats::of(&a).unwrap().longest_row;
            let stored = [ValueKind::Stored, ValueKind::Single, ValueKind::Equal(2.0)];
            let kinds = stored.map(|kind| (kind, None));
            let coded = dictionary.as_ref().map(|of| (ValueKind::Stored, Some(of)));
            for (values, dictionary) in kinds.into_iter().chain(coded) {
                for (sigma, compact) in [(1, true), (1, false), (256, true)] {
                    let options = SellpOptions {
                        lanes: 2,
                        compact,
                        diagonals: compact,
                        sigma,
                        longest_row,
                        values,
                        dictionary,
                        new_values: false,
                    };
                    let measured = MeasuredSellp::new(&a, options, |_| Ok(true)).unwrap().unwrap();
                    let bytes = measured.bytes();
                    assert_eq!(bytes, measured.convert().unwrap().bytes(), "{name}, {options:?}");
                }
            }
        }
    }

    #[test]
    fn measures_that_might_wrap_are_refused() {
        assert!(check_sums(u32::MAX as usize - 6, 1, 1).is_ok());
        assert!(check_sums(u32::MAX as usize - 5, 1, 1).is_err());
        // A few entries in each row, 32 lanes for it.
        assert!(check_sums(1 << 28, 1 << 25, 32).is_ok());
        assert!(check_sums(1 << 28, 1 << 26, 32).is_err());
    }
}
