//! Statistics of a matrix on the device, for the choice of a kernel.

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert as kernels;
use spm_gpu_kernels::device::DevicePtrMut;

use super::{BLOCK, threads};
use crate::device::Device;
use crate::error::GpuError;
use crate::launch::{Launch, WARP};
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceReal, DeviceScalar};
use crate::stream::Stream;

/// Blocks of the grid, at most; a power of two, as the kernel wants it.
const BLOCKS: usize = 512;

/// Statistics of the rows that decide which kernels may be fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowStats {
    pub(crate) longest_row: usize,
    pub(crate) empty_rows: usize,
}

impl RowStats {
    /// Reads the row pointers once.
    pub(crate) fn of<T: DeviceScalar>(a: &DeviceCsr<T>) -> Result<Self, PlanError> {
        let (rows, row_ptr) = (a.rows() as u32, a.row_ptr.ptr());
        let seen = seen(a.device(), a.rows(), |launch, stream, seen| {
            let args = kernels::RowStats { rows, row_ptr, seen };
            // SAFETY: rows + 1 pointers, a pair for each warp of the launch.
            unsafe { stream.device().launch::<kernels::RowStats>(launch, stream, args) }
        })?;
        let longest_row = seen.iter().map(|&[longest, _]| longest as usize).max().unwrap_or(0);
        let empty_rows = seen.iter().map(|&[_, empty]| empty as usize).sum();
        Ok(Self { longest_row, empty_rows })
    }
}

/// What the values of a matrix have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ValueStats<T> {
    /// The common value of all entries, if they are equal.
    pub(crate) equal: Option<T>,
    /// Whether single precision holds every value exactly.
    pub(crate) single: bool,
}

impl<T: DeviceReal> ValueStats<T> {
    /// Nothing that a kernel could use.
    pub(crate) const NONE: Self = Self { equal: None, single: false };

    /// Reads the values once at most; not all of them where most are general.
    pub(crate) fn of(a: &DeviceCsr<T>) -> Result<Self, PlanError> {
        let (entries, values) = (a.entries() as u32, a.values.ptr());
        if entries == 0 {
            return Ok(Self::NONE);
        }
        let seen = seen(a.device(), a.entries(), |launch, stream, seen| {
            let args = kernels::ValueStats { entries, values, seen };
            // SAFETY: that many values, a pair for each warp of the launch.
            unsafe { stream.device().launch::<kernels::ValueStats<T>>(launch, stream, args) }
        })?;
        let are_equal = seen.iter().all(|&[other, _]| other == 0);
        Ok(Self {
            equal: are_equal.then(|| a.values.element(0)).transpose()?,
            single: size_of::<T>() > size_of::<f32>() && seen.iter().all(|&[_, wide]| wide == 0),
        })
    }
}

/// The pairs that `launch` writes, one for each warp that looks at `items` items.
fn seen(
    device: &Device,
    items: usize,
    launch: impl FnOnce(Launch, &Stream, DevicePtrMut<[u32; 2]>) -> Result<(), GpuError>,
) -> Result<Vec<[u32; 2]>, PlanError> {
    let warps = warps(items);
    if warps == 0 {
        return Ok(Vec::new());
    }
    let mut seen = DeviceBuffer::uninitialized(device, warps)?;
    launch(threads(device, warps * WARP)?, &Stream::of_planning(device)?, seen.ptr_mut())?;
    Ok(seen.to_vec()?)
}

/// Number of warps for so many items, in whole blocks; the kernel needs a power of two.
fn warps(items: usize) -> usize {
    match items.div_ceil(4 * BLOCK) {
        0 => 0,
        blocks => blocks.next_power_of_two().min(BLOCKS) * BLOCK / WARP,
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::Csr;

    use super::*;

    fn stats(lengths: &[usize], values: Vec<f64>) -> (RowStats, ValueStats<f64>) {
        let mut row_ptr = vec![0];
        let mut columns = Vec::new();
        for &length in lengths {
            columns.extend(0..length as u32);
            row_ptr.push(columns.len() as u32);
        }
        let a = Csr::new((lengths.len(), 5000), row_ptr, columns, values).unwrap();
        let device = Device::emulated(Default::default());
        let a = DeviceCsr::new(&device, a.view()).unwrap();
        (RowStats::of(&a).unwrap(), ValueStats::of(&a).unwrap())
    }

    #[test]
    fn rows_and_values() {
        let lengths = [3, 0, 1, 4000, 0, 7];
        let total = lengths.iter().sum();
        let rows = RowStats { longest_row: 4000, empty_rows: 2 };
        let mut expected = ValueStats { equal: Some(0.1), single: false };
        let mut values = vec![0.1; total];
        assert_eq!(stats(&lengths, values.clone()), (rows, expected));
        values[total - 1] = 0.5;
        expected.equal = None;
        assert_eq!(stats(&lengths, values.clone()), (rows, expected));
        values.fill(-0.25);
        values[1] = 3.0;
        expected.single = true;
        assert_eq!(stats(&lengths, values), (rows, expected));
        let none = RowStats { longest_row: 0, empty_rows: 0 };
        assert_eq!(stats(&[], Vec::new()), (none, ValueStats::NONE));
    }
}
