//! Long rows that are split into parts, whose partial sums go to a workspace and are added
//! afterwards.

use spm_formats::DenseShape;
use spm_formats::kernel::{ParameterSpec, Parameters, PlanError, Value};
use spm_gpu_kernels::device::DevicePtrMut;
use spm_gpu_kernels::spmm::{SPLIT_SUM_BLOCK, SplitSum, split_sum_bytes};

use super::rearrange::strides;
use super::row_blocks::{long_rows, parts_of_row};
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::Launch;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::product::Target;
use crate::source::Source;
use crate::stream::Stream;

/// The parameter that says when a row is split.
pub(super) const SPLIT: ParameterSpec = ParameterSpec {
    name: "split",
    meaning: "entries beyond which a row is split into parts",
    default: Value::Choice("auto"),
    studied: &[
        Value::Choice("auto"),
        Value::Choice("64"),
        Value::Choice("256"),
        Value::Choice("1024"),
    ],
};

/// Number of threads that keep a device busy: half of what it runs at once.
pub(super) fn busy_threads(device: &Device) -> usize {
    device.info().resident_threads() / 2
}

/// The value of [`SPLIT`] in entries, for `lanes` threads on a row or a part of a row.
pub(super) fn longest<T: DeviceScalar>(
    a: &Source<T>,
    lanes: usize,
    parameters: &Parameters,
) -> usize {
    parameters.choice(SPLIT.name).parse().unwrap_or_else(|_| {
        // Rows like the others stay whole, unless there are too few of them for the device.
        let share = a.csr.entries() * lanes / busy_threads(a.csr.device());
        (4 * a.mean_row()).min(share.max(2 * SHORT)).max(SHORT)
    })
}

/// Entries up to which a row is never split, because a part costs k sums.
const SHORT: usize = 64;

/// The parts of the long rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// First entry and end of each part.
    pub(super) bounds: Vec<[u32; 2]>,
    /// The rows that are split.
    pub(super) rows: Vec<u32>,
    /// The number of parts of this row and of those before it.
    ends: Vec<u32>,
}

impl Parts {
    /// The parts for a matrix on the device.
    pub(super) fn of<T: DeviceScalar>(a: &Source<T>, longest: usize) -> Result<Self, PlanError> {
        if a.stats.longest_row <= longest {
            return Ok(Self::default());
        }
        Ok(Self::new(a.host_pointers()?, longest))
    }

    /// Splits the rows of more than `longest` entries into parts of nearly the same size.
    pub(super) fn new(row_ptr: &[u32], longest: usize) -> Self {
        let mut parts = Self { rows: long_rows(row_ptr, longest), ..Self::default() };
        for &row in &parts.rows {
            parts.bounds.extend(parts_of_row(row_ptr, row, |length| length.div_ceil(longest)));
            parts.ends.push(parts.bounds.len() as u32);
        }
        parts
    }
}

/// The partial sums of the parts, and their destination.
pub(super) struct LongRows<T> {
    rows: DeviceBuffer<u32>,
    /// First part of each of these rows, and the number of parts.
    row_parts: DeviceBuffer<u32>,
    /// k sums for each part.
    sums: DeviceBuffer<T>,
}

impl<T: DeviceScalar> LongRows<T> {
    pub(super) fn new(device: &Device, parts: &Parts, k: usize) -> Result<Self, GpuError> {
        let row_parts: Vec<u32> = std::iter::once(0).chain(parts.ends.iter().copied()).collect();
        Ok(Self {
            rows: DeviceBuffer::from_slice(device, &parts.rows)?,
            row_parts: DeviceBuffer::from_slice(device, &row_parts)?,
            sums: DeviceBuffer::uninitialized(device, parts.bounds.len() * k)?,
        })
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.rows.bytes() + self.row_parts.bytes() + self.sums.bytes()) as u64
    }

    /// The destination of the k sums of each part.
    pub(super) fn sums(&mut self) -> DevicePtrMut<T> {
        self.sums.ptr_mut()
    }

    /// Enqueues the addition of the parts to Y in the stream; Y has `rows` rows.
    pub(super) fn enqueue(
        &self,
        dense: DenseShape,
        rows: usize,
        y: &mut Target<'_, T>,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let tiles = dense.k.div_ceil(SPLIT_SUM_BLOCK.0 as usize) as u32;
        let launch = Launch::new((self.rows.len() as u32, tiles), SPLIT_SUM_BLOCK)
            .with_shared_bytes(split_sum_bytes::<T>());
        let args = SplitSum {
            k: dense.k as u32,
            split_rows: self.rows.ptr(),
            row_chunks: self.row_parts.ptr(),
            partial: self.sums.ptr(),
            y: y.output(),
            y_strides: strides(rows, dense),
        };
        // SAFETY: the rows lie in Y, the parts in the workspace.
        unsafe { stream.device().launch::<SplitSum<T>>(launch, stream, args) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rows_are_cut_evenly() {
        let parts = Parts::new(&[0, 4, 13, 13, 18], 4);
        assert_eq!(parts.bounds, [[4, 7], [7, 10], [10, 13], [13, 15], [15, 18]]);
        assert_eq!((parts.rows, parts.ends), (vec![1, 3], vec![3, 5]));
        assert_eq!(Parts::new(&[0, 4, 13], 9), Parts::default());
    }
}
