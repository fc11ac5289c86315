//! Segmented sort and merge of segments (`gpu-kernels/src/transpose/segmented_sort.rs` and
//! `merge.rs`).

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::transpose::{
    MergePieces, MergeSmall, MergeSplitters, SegmentedSort, merge_bytes, segmented_sort_bytes,
};

use super::parameters::checked_over;
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::memory::{DeviceBuffer, check_operand};
use crate::stream::Stream;

/// Checks that both buffers have `length` keys and are on the right device.
fn check(
    device: &Device,
    length: usize,
    keys: &DeviceBuffer<u64>,
    sorted: &DeviceBuffer<u64>,
) -> Result<(), GpuError> {
    check_operand("keys", device, keys, length)?;
    check_operand("sorted keys", device, sorted, length)
}

/// Sorts each segment of `block` keys (R3 IV-B); stable.
#[derive(Debug)]
pub(super) struct SortSegments {
    length: usize,
    device: Device,
    launch: Launch,
}

impl SortSegments {
    /// A sort of `length` keys in segments of `block` keys.
    ///
    /// # Errors
    /// A block that the device does not take.
    pub(super) fn new(device: &Device, length: usize, block: usize) -> Result<Self, PlanError> {
        let shared = segmented_sort_bytes(u32::try_from(block).unwrap_or(u32::MAX / 8));
        let launch = checked_over("segmented-sort", device, length, block, block, shared)?;
        Ok(Self { length, device: device.clone(), launch })
    }

    /// Enqueues the sort of `keys` into `sorted` in the stream.
    ///
    /// # Errors
    /// Another length or device; a device that fails.
    pub(super) fn enqueue(
        &self,
        keys: &DeviceBuffer<u64>,
        sorted: &mut DeviceBuffer<u64>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        check(&self.device, self.length, keys, sorted)?;
        let args = SegmentedSort {
            length: self.length as u32,
            keys: keys.ptr(),
            sorted: sorted.ptr_mut(),
        };
        // SAFETY: `length` keys on both sides, a block for each segment.
        unsafe { self.device.launch::<SegmentedSort>(self.launch, stream, args) }
    }
}

/// Merges pairs of neighbouring sorted segments; equal keys of the left segment come first.
#[derive(Debug)]
pub(super) struct MergeSegments {
    length: usize,
    segment: u32,
    device: Device,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// A pair of segments fits in shared memory (R3 IV-D).
    Small(Launch),
    /// Segments are divided at splitters (R3 IV-E): their distance, and two words for each.
    Big { distance: u32, split: Launch, merge: Launch, cuts: DeviceBuffer<u32> },
}

impl MergeSegments {
    /// A merge of `length` keys in segments of `segment` keys, each pair by one block of `segment`
    /// threads.
    ///
    /// # Errors
    /// A segment of more keys than a block has threads.
    pub(super) fn small(device: &Device, length: usize, segment: usize) -> Result<Self, PlanError> {
        let shared = merge_bytes(u32::try_from(segment).unwrap_or(u32::MAX / 16));
        let way =
            Way::Small(checked_over("merge-small", device, length, 2 * segment, segment, shared)?);
        Ok(Self { length, segment: segment as u32, device: device.clone(), way })
    }

    /// The same with splitters, each `distance`-th key; `block` threads find their positions.
    ///
    /// # Errors
    /// A segment that is not a multiple of the distance, a distance beyond the threads of a block,
    /// too little memory for two words a splitter.
    pub(super) fn big(
        device: &Device,
        length: usize,
        segment: usize,
        distance: usize,
        block: usize,
    ) -> Result<Self, PlanError> {
        const ID: &str = "merge-big";
        if !segment.is_multiple_of(distance) {
            let reason =
                format!("segments of {segment} keys are no multiple of the distance {distance}");
            return Err(PlanError::Unsupported { kernel: ID, reason });
        }
        let shared = merge_bytes(u32::try_from(distance).unwrap_or(u32::MAX / 16));
        let splitters = length.div_ceil(distance);
        let way = Way::Big {
            distance: distance as u32,
            split: checked_over(ID, device, splitters, block, block, 0)?,
            merge: checked_over(ID, device, length, distance, distance, shared)?,
            cuts: DeviceBuffer::uninitialized(device, 2 * splitters)?,
        };
        Ok(Self { length, segment: segment as u32, device: device.clone(), way })
    }

    /// Bytes of device memory.
    pub(super) fn workspace_bytes(&self) -> u64 {
        match &self.way {
            Way::Small(_) => 0,
            Way::Big { cuts, .. } => cuts.bytes() as u64,
        }
    }

    /// Enqueues the merge of `keys` into `sorted` in the stream.
    ///
    /// # Errors
    /// Another length or device; a device that fails.
    ///
    /// # Safety
    /// When the stream comes to it, each segment of `keys` is sorted, and nothing else uses what
    /// `self` owns.
    pub(super) unsafe fn enqueue(
        &mut self,
        keys: &DeviceBuffer<u64>,
        sorted: &mut DeviceBuffer<u64>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        check(&self.device, self.length, keys, sorted)?;
        let (device, length, segment) = (&self.device, self.length as u32, self.segment);
        let (keys, sorted) = (keys.ptr(), sorted.ptr_mut());
        if length == 0 {
            return Ok(());
        }
        match &mut self.way {
            Way::Small(launch) => {
                let args = MergeSmall { length, segment, keys, sorted };
                // SAFETY: `length` keys on both sides, in segments that the caller promises to be
                // sorted, a block of `segment` threads for each pair.
                unsafe { device.launch::<MergeSmall>(*launch, stream, args) }
            }
            Way::Big { distance, split, merge, cuts } => {
                let distance = *distance;
                let splitters =
                    MergeSplitters { length, segment, distance, keys, cuts: cuts.ptr_mut() };
                let pieces =
                    MergePieces { length, segment, distance, cuts: cuts.ptr(), keys, sorted };
                // SAFETY: as above, a cut for each splitter, blocks of `distance` threads.
                unsafe {
                    device.launch::<MergeSplitters>(*split, stream, splitters)?;
                    device.launch::<MergePieces>(*merge, stream, pieces)
                }
            }
        }
    }
}
