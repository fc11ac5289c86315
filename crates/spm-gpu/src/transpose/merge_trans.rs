//! Plan of MergeTrans (R3 III-D).

use spm_formats::kernel::{KernelInfo, ParameterSpec, Parameters, Value};
use spm_gpu_kernels::transpose::{Gather, GatherPattern, Keys};

use super::KERNEL;
use super::index::{ExpandPointers, IndexToPointers, Indices, VerticalScan};
use super::parameters::{SPLITTER_DISTANCE, checked_over};
use super::sort::{MergeSegments, SortSegments};
use crate::error::GpuError;
use crate::launch::Launch;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceCsc, DeviceReal};
use crate::procedure::{Planned, Procedure, boxed};
use crate::stream::Stream;

const SEGMENT: ParameterSpec = ParameterSpec {
    name: "segment",
    meaning: "keys of a segment before the first merge, and threads of a block",
    default: Value::Count(128),
    studied: &[Value::Count(128), Value::Count(256), Value::Count(512)],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "merge-trans",
    source: "R3 III-D; Wang, Liu, Hou, Feng, ICS 2016, algorithm 2",
    summary: "segments sorted by column, then merged in pairs",
    parameters: &[SEGMENT, SPLITTER_DISTANCE],
    ..KERNEL
};

/// Maximum keys of segments that are merged in shared memory.
const SMALL: usize = 256;
/// Threads of a block without shared memory.
const BLOCK: usize = 256;
/// Threads of a block for one row.
const ROW_BLOCK: usize = 32;

struct MergeTrans<T> {
    a: DeviceCsr<T>,
    over_entries: Launch,
    expand: ExpandPointers,
    sort: SortSegments,
    /// Each from one buffer of keys to the other.
    merges: Vec<MergeSegments>,
    to_pointers: IndexToPointers,
    rows: DeviceBuffer<u32>,
    keys: [DeviceBuffer<u64>; 2],
}

pub(super) fn plan<T: DeviceReal>(a: DeviceCsr<T>, parameters: &Parameters) -> Planned<T> {
    let (device, entries) = (&a.device().clone(), a.entries());
    let (mut segment, distance) =
        (parameters.count(SEGMENT.name), parameters.count(SPLITTER_DISTANCE.name));
    let sort = SortSegments::new(device, entries, segment)?;
    let mut merges = Vec::new();
    while segment < entries {
        merges.push(if segment <= SMALL {
            MergeSegments::small(device, entries, segment)?
        } else {
            MergeSegments::big(device, entries, segment, distance, BLOCK)?
        });
        segment *= 2;
    }
    let keys = || DeviceBuffer::uninitialized(device, entries);
    let parts = 2 * device.info().multiprocessors as usize;
    let sizes = (entries, a.cols());
    Ok(boxed(MergeTrans {
        over_entries: checked_over(INFO.id, device, entries, BLOCK, BLOCK, 0)?,
        expand: ExpandPointers::new(device, a.rows(), ROW_BLOCK)?,
        sort,
        merges,
        to_pointers: IndexToPointers::new(device, sizes, parts, VerticalScan::Columns, BLOCK)?,
        rows: DeviceBuffer::uninitialized(device, entries)?,
        keys: [keys()?, keys()?],
        a,
    }))
}

impl<T: DeviceReal> Procedure<T> for MergeTrans<T> {
    fn matrix(&self) -> &DeviceCsr<T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        let buffers = self.rows.bytes() + self.keys.iter().map(DeviceBuffer::bytes).sum::<usize>();
        let merges: u64 = self.merges.iter().map(MergeSegments::workspace_bytes).sum();
        buffers as u64 + merges + self.to_pointers.workspace_bytes()
    }

    fn enqueue(&mut self, output: &mut DeviceCsc<T>, stream: &Stream) -> Result<(), GpuError> {
        let (device, entries) = (stream.device(), self.a.entries() as u32);
        let [first, second] = &mut self.keys;
        let (mut from, mut to) = (first, second);
        // SAFETY: the row pointers of a sound matrix, and a row for each of its entries.
        unsafe { self.expand.enqueue(&self.a.row_ptr, &mut self.rows, stream)? };
        let (col_ind, keys) = (self.a.col_ind.ptr(), from.ptr_mut());
        // SAFETY: a thread, a column and a key for each entry.
        unsafe {
            let args = Keys { entries, col_ind, keys };
            device.launch::<Keys>(self.over_entries, stream, args)?;
        }
        self.sort.enqueue(from, to, stream)?;
        for merge in &mut self.merges {
            (from, to) = (to, from);
            // SAFETY: the sort, and each merge, leaves segments sorted that are as long as the next
            // merge takes; launches of one plan are in order.
            unsafe { merge.enqueue(from, to, stream)? };
        }
        // SAFETY: the high half of each key is a column of the matrix; launches are in order.
        unsafe { self.to_pointers.enqueue(Indices::OfKeys(to), &mut output.col_ptr, stream)? };
        let (keys, rows, row_ind) = (to.ptr(), self.rows.ptr(), output.row_ind.ptr_mut());
        if self.a.is_pattern() {
            let args = GatherPattern { entries, keys, rows, row_ind };
            // SAFETY: the low half of each key is an entry of the matrix.
            return unsafe { device.launch::<GatherPattern>(self.over_entries, stream, args) };
        }
        let args = Gather {
            entries,
            keys,
            rows,
            values: self.a.values.ptr(),
            row_ind,
            sorted_values: output.values.ptr_mut(),
        };
        // SAFETY: as above.
        unsafe { device.launch::<Gather<T>>(self.over_entries, stream, args) }
    }
}
