//! The procedures of R3 IV on generated data of one length, for separate timing and checking (R3
//! figures 6, 8, 10, 12).

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, PlanError, Value};

use super::KERNEL;
use super::index::{ExpandPointers, IndexToPointers, Indices, VerticalScan};
use super::parameters::SPLITTER_DISTANCE;
use super::scan::Scan;
use super::sort::{MergeSegments, SortSegments};
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::check_parameters;
use crate::matrix::check_counts;
use crate::memory::DeviceBuffer;
use crate::stream::{LaunchOrder, Stream};

/// A procedure with its data on the device. Launches run one after another, in any streams.
pub trait PreparedPrimitive: Send {
    /// Puts one run into the stream.
    ///
    /// # Errors
    /// A stream of another device, a device that fails.
    fn launch(&mut self, stream: &Stream) -> Result<(), GpuError>;

    /// Runs once on fresh data and compares with a serial computation.
    ///
    /// # Errors
    /// As [`PreparedPrimitive::launch`].
    fn check(&mut self, stream: &Stream) -> Result<bool, GpuError>;

    /// Minimum memory traffic of a run in bytes: input and output once.
    fn bytes_moved(&self) -> u64;
}

type Prepared = Result<Box<dyn PreparedPrimitive>, PlanError>;

/// One entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Primitive {
    /// Id, source and parameters.
    pub info: KernelInfo,
    prepare: fn(&Device, usize, &Parameters) -> Prepared,
}

impl Primitive {
    /// Makes data of `length` elements and allocates the workspace.
    ///
    /// # Errors
    /// Parameters that make no sense on this device, more elements than the kernels number, too
    /// little device memory.
    pub fn prepare(
        &self,
        device: &Device,
        length: usize,
        parameters: &Parameters,
    ) -> Result<Box<dyn PreparedPrimitive>, PlanError> {
        check_parameters(&self.info, parameters, device)?;
        check_counts((length, length), length)?;
        let prepared = (self.prepare)(device, length, parameters)?;
        Ok(Box::new(Checked { device: device.clone(), prepared, order: LaunchOrder::default() }))
    }
}

/// The common part of all procedures.
struct Checked {
    device: Device,
    prepared: Box<dyn PreparedPrimitive>,
    order: LaunchOrder,
}

impl PreparedPrimitive for Checked {
    fn launch(&mut self, stream: &Stream) -> Result<(), GpuError> {
        stream.check_device(&self.device)?;
        self.order.enter(stream, || self.prepared.launch(stream))
    }

    fn check(&mut self, stream: &Stream) -> Result<bool, GpuError> {
        stream.check_device(&self.device)?;
        self.order.enter(stream, || self.prepared.check(stream))
    }

    fn bytes_moved(&self) -> u64 {
        self.prepared.bytes_moved()
    }
}

/// Every procedure, in the order of the report.
pub fn registry() -> Vec<Primitive> {
    vec![
        Primitive { info: SCAN, prepare: scan },
        Primitive { info: SEGMENTED_SORT, prepare: segmented_sort },
        Primitive { info: MERGE_SMALL, prepare: merge_small },
        Primitive { info: MERGE_BIG, prepare: merge_big },
        Primitive { info: INDEX_TO_POINTERS, prepare: index_to_pointers },
        Primitive { info: POINTERS_TO_INDEX, prepare: pointers_to_index },
    ]
}

/// The procedure with this id.
pub fn find(id: &str) -> Option<Primitive> {
    registry().into_iter().find(|primitive| primitive.info.id == id)
}

const fn block(default: usize, studied: &'static [Value]) -> ParameterSpec {
    ParameterSpec {
        name: "block",
        meaning: "threads of a block",
        default: Value::Count(default),
        studied,
    }
}

const fn info(
    id: &'static str,
    source: &'static str,
    summary: &'static str,
    parameters: &'static [ParameterSpec],
) -> KernelInfo {
    KernelInfo { id, source, summary, parameters, ..KERNEL }
}

const SORT_BLOCKS: &[Value] = &[Value::Count(128), Value::Count(256), Value::Count(512)];
const COUNT_BLOCKS: &[Value] =
    &[Value::Count(1), Value::Count(32), Value::Count(64), Value::Count(256)];
const EXPAND_BLOCKS: &[Value] =
    &[Value::Count(1), Value::Count(16), Value::Count(32), Value::Count(1024)];

const VERTICAL: ParameterSpec = ParameterSpec {
    name: "vertical",
    meaning: "how the partial histograms are scanned: a thread down each column, or a block along \
              each row of the transposed matrix",
    default: Value::Choice("columns"),
    studied: &[Value::Choice("columns"), Value::Choice("transposed")],
};

const SCAN: KernelInfo = info(
    "scan",
    "R3 IV-A; Blelloch 1990",
    "exclusive scan, recursive over blocks",
    &[block(256, SORT_BLOCKS)],
);
const SEGMENTED_SORT: KernelInfo = info(
    "segmented-sort",
    "R3 IV-B, figure 6",
    "segments of a block's threads, sorted by counting ranks",
    &[block(128, SORT_BLOCKS)],
);
const MERGE_SMALL: KernelInfo = info(
    "merge-small",
    "R3 IV-D",
    "pairs of segments of a block's threads, merged in shared memory",
    &[block(256, SORT_BLOCKS)],
);
const MERGE_BIG: KernelInfo = info(
    "merge-big",
    "R3 IV-E, figure 8",
    "pairs of long segments, cut at splitters and merged in pieces",
    &[block(256, SORT_BLOCKS), SPLITTER_DISTANCE],
);
const INDEX_TO_POINTERS: KernelInfo = info(
    "index-to-pointers",
    "R3 IV-F, figure 10",
    "partial histograms, vertical scan, scan",
    &[block(32, COUNT_BLOCKS), VERTICAL],
);
const POINTERS_TO_INDEX: KernelInfo = info(
    "pointers-to-index",
    "R3 IV-G, figure 12",
    "a block writes the number of a row to its entries",
    &[block(32, EXPAND_BLOCKS)],
);

/// Keys of a segment before a big merge.
const BIG_SEGMENT: usize = 4096;
/// Distinct indices, for each of which there are this many.
const REPEATED: usize = 10;
/// Parts of a histogram.
const PARTS: usize = 64;

/// Pseudo-random numbers (SplitMix64).
fn words(length: usize) -> impl Iterator<Item = u64> {
    (1..=length as u64).map(|i| {
        let mut word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    })
}

struct PreparedScan {
    input: Vec<u32>,
    data: DeviceBuffer<u32>,
    scan: Scan,
}

fn scan(device: &Device, length: usize, parameters: &Parameters) -> Prepared {
    // A timed run scans zeros: in place, the sums of anything else would grow.
    let data = DeviceBuffer::zeroed(device, length)?;
    let scan = Scan::new(device, length, parameters.count("block"))?;
    let input: Vec<u32> = words(length).map(|word| (word % 8) as u32).collect();
    Ok(Box::new(PreparedScan { input, data, scan }))
}

impl PreparedPrimitive for PreparedScan {
    fn launch(&mut self, stream: &Stream) -> Result<(), GpuError> {
        self.scan.enqueue(&mut self.data, stream)
    }

    fn check(&mut self, stream: &Stream) -> Result<bool, GpuError> {
        self.data.copy_from_slice(&self.input)?;
        self.launch(stream)?;
        stream.synchronize()?;
        let result = self.data.to_vec()?;
        self.data.fill_zero()?;
        let mut sum = 0;
        Ok(result.iter().zip(&self.input).all(|(&before, &value)| {
            let same = before == sum;
            sum += value;
            same
        }))
    }

    fn bytes_moved(&self) -> u64 {
        2 * self.data.bytes() as u64
    }
}

/// Enqueues a sort of keys from one buffer to another.
type Sort = Box<
    dyn FnMut(&DeviceBuffer<u64>, &mut DeviceBuffer<u64>, &Stream) -> Result<(), GpuError> + Send,
>;

struct PreparedSort {
    expected: Vec<u64>,
    /// Sorted in the segments that `sort` takes; never written.
    keys: DeviceBuffer<u64>,
    sorted: DeviceBuffer<u64>,
    sort: Sort,
}

/// Keys sorted in segments of `before`, to be sorted in segments of `after`.
fn prepared_sort(
    device: &Device,
    length: usize,
    (before, after): (usize, usize),
    sort: Sort,
) -> Prepared {
    // The device first: it refuses a length that the host may not have either.
    let mut keys = DeviceBuffer::uninitialized(device, length)?;
    let sorted = DeviceBuffer::uninitialized(device, length)?;
    // Few values: many are equal.
    let mut input: Vec<u64> = words(length).map(|word| word % (length as u64 / 2 + 1)).collect();
    input.chunks_mut(before).for_each(<[u64]>::sort_unstable);
    let mut expected = input.clone();
    expected.chunks_mut(after).for_each(<[u64]>::sort_unstable);
    keys.copy_from_slice(&input)?;
    Ok(Box::new(PreparedSort { expected, keys, sorted, sort }))
}

impl PreparedPrimitive for PreparedSort {
    fn launch(&mut self, stream: &Stream) -> Result<(), GpuError> {
        (self.sort)(&self.keys, &mut self.sorted, stream)
    }

    fn check(&mut self, stream: &Stream) -> Result<bool, GpuError> {
        self.sorted.fill_zero()?;
        self.launch(stream)?;
        stream.synchronize()?;
        let result = self.sorted.to_vec()?;
        Ok(result == self.expected)
    }

    fn bytes_moved(&self) -> u64 {
        (self.keys.bytes() + self.sorted.bytes()) as u64
    }
}

fn segmented_sort(device: &Device, length: usize, parameters: &Parameters) -> Prepared {
    let block = parameters.count("block");
    let sort = SortSegments::new(device, length, block)?;
    let sort: Sort = Box::new(move |keys, sorted, stream| sort.enqueue(keys, sorted, stream));
    prepared_sort(device, length, (1, block), sort)
}

fn merge_small(device: &Device, length: usize, parameters: &Parameters) -> Prepared {
    let block = parameters.count("block");
    let merge = MergeSegments::small(device, length, block)?;
    prepared_sort(device, length, (block, 2 * block), merging(merge))
}

fn merge_big(device: &Device, length: usize, parameters: &Parameters) -> Prepared {
    let (block, distance) = (parameters.count("block"), parameters.count(SPLITTER_DISTANCE.name));
    let segment = BIG_SEGMENT.next_multiple_of(distance);
    let merge = MergeSegments::big(device, length, segment, distance, block)?;
    prepared_sort(device, length, (segment, 2 * segment), merging(merge))
}

fn merging(mut merge: MergeSegments) -> Sort {
    // SAFETY: keys sorted in segments of the merge, whose launches are in order (`Checked`).
    Box::new(move |keys, sorted, stream| unsafe { merge.enqueue(keys, sorted, stream) })
}

struct PreparedPointers {
    width: usize,
    input: Vec<u32>,
    indices: DeviceBuffer<u32>,
    pointers: DeviceBuffer<u32>,
    count: IndexToPointers,
}

fn index_to_pointers(device: &Device, length: usize, parameters: &Parameters) -> Prepared {
    let width = length / REPEATED + 1;
    let vertical = match parameters.choice(VERTICAL.name) {
        "transposed" => VerticalScan::Transposed,
        _ => VerticalScan::Columns,
    };
    let block = parameters.count("block");
    let mut indices = DeviceBuffer::uninitialized(device, length)?;
    let pointers = DeviceBuffer::uninitialized(device, width + 1)?;
    let count = IndexToPointers::new(device, (length, width), PARTS, vertical, block)?;
    let input: Vec<u32> = words(length).map(|word| (word % width as u64) as u32).collect();
    indices.copy_from_slice(&input)?;
    Ok(Box::new(PreparedPointers { width, input, indices, pointers, count }))
}

impl PreparedPrimitive for PreparedPointers {
    fn launch(&mut self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: indices made below the width, never written; launches are in order (`Checked`).
        unsafe { self.count.enqueue(Indices::Plain(&self.indices), &mut self.pointers, stream) }
    }

    fn check(&mut self, stream: &Stream) -> Result<bool, GpuError> {
        self.launch(stream)?;
        stream.synchronize()?;
        let result = self.pointers.to_vec()?;
        let mut expected = vec![0; self.width + 1];
        for &index in &self.input {
            expected[index as usize + 1] += 1;
        }
        for index in 0..self.width {
            expected[index + 1] += expected[index];
        }
        Ok(result == expected)
    }

    fn bytes_moved(&self) -> u64 {
        (self.indices.bytes() + self.pointers.bytes()) as u64
    }
}

struct PreparedIndex {
    input: Vec<u32>,
    pointers: DeviceBuffer<u32>,
    indices: DeviceBuffer<u32>,
    expand: ExpandPointers,
}

fn pointers_to_index(device: &Device, length: usize, parameters: &Parameters) -> Prepared {
    let rows = length / REPEATED + 1;
    let indices = DeviceBuffer::uninitialized(device, length)?;
    let mut input: Vec<u32> =
        words(rows - 1).map(|word| (word % (length as u64 + 1)) as u32).collect();
    input.extend([0, length as u32]);
    input.sort_unstable();
    Ok(Box::new(PreparedIndex {
        pointers: DeviceBuffer::from_slice(device, &input)?,
        indices,
        expand: ExpandPointers::new(device, rows, parameters.count("block"))?,
        input,
    }))
}

impl PreparedPrimitive for PreparedIndex {
    fn launch(&mut self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: pointers made to ascend to the number of indices, never written.
        unsafe { self.expand.enqueue(&self.pointers, &mut self.indices, stream) }
    }

    fn check(&mut self, stream: &Stream) -> Result<bool, GpuError> {
        self.launch(stream)?;
        stream.synchronize()?;
        let result = self.indices.to_vec()?;
        Ok((0..).zip(self.input.windows(2)).all(|(row, pair)| {
            result[pair[0] as usize..pair[1] as usize].iter().all(|&index| index == row)
        }))
    }

    fn bytes_moved(&self) -> u64 {
        (self.pointers.bytes() + self.indices.bytes()) as u64
    }
}
