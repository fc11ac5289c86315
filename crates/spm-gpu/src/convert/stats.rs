//! Statistics of a matrix on the device, for the choice of a kernel.

use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{RowStats, ValueStats};

use super::{BLOCK, threads};
use crate::launch::WARP;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceScalar;
use crate::stream::Stream;

/// Blocks of the grid, at most; a power of two, as the kernel wants it.
const BLOCKS: usize = 512;

/// Statistics that decide which kernels may be fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MatrixStats<T> {
    pub(crate) longest_row: usize,
    pub(crate) empty_rows: usize,
    /// The common value of all entries, if they are equal.
    pub(crate) equal: Option<T>,
    /// Whether single precision holds every value exactly.
    pub(crate) single: bool,
}

impl<T: DeviceScalar> MatrixStats<T> {
    /// Reads row pointers and values once.
    pub(crate) fn of(a: &DeviceCsr<T>) -> Result<Self, PlanError> {
        let device = a.device();
        let stream = Stream::new(device)?;
        let mut stats = Self { longest_row: 0, empty_rows: 0, equal: None, single: false };
        let (row_warps, value_warps) = (warps(a.rows()), warps(a.entries()));
        let mut seen = DeviceBuffer::uninitialized(device, row_warps + value_warps)?;
        if row_warps > 0 {
            let (rows, row_ptr) = (a.rows() as u32, a.row_ptr.ptr());
            let args = RowStats { rows, row_ptr, seen: seen.ptr_mut() };
            // SAFETY: rows + 1 pointers, a pair for each warp of the launch.
            unsafe {
                device.launch::<RowStats>(threads(device, row_warps * WARP)?, &stream, args)?
            };
        }
        if value_warps > 0 {
            let (entries, values) = (a.entries() as u32, a.values.ptr());
            let launch = threads(device, value_warps * WARP)?;
            let args =
                ValueStats { entries, values, seen: seen.ptr_mut().offset(row_warps as u64) };
            // SAFETY: that many values, a pair for each warp of the launch.
            unsafe { device.launch::<ValueStats<T>>(launch, &stream, args)? };
        }
        let host = seen.to_vec()?;
        let (rows, values) = host.split_at(row_warps);
        stats.longest_row = rows.iter().map(|&[longest, _]| longest as usize).max().unwrap_or(0);
        stats.empty_rows = rows.iter().map(|&[_, empty]| empty as usize).sum();
        if value_warps > 0 {
            if values.iter().all(|&[other, _]| other == 0) {
                stats.equal = Some(a.values.element(0)?);
            }
            stats.single =
                size_of::<T>() > size_of::<f32>() && values.iter().all(|&[_, wide]| wide == 0);
        }
        Ok(stats)
    }
}

/// Entries of the longest row.
pub(super) fn longest_row<T: DeviceScalar>(a: &DeviceCsr<T>) -> Result<usize, PlanError> {
    let (device, row_warps) = (a.device(), warps(a.rows()));
    if row_warps == 0 {
        return Ok(0);
    }
    let mut seen = DeviceBuffer::uninitialized(device, row_warps)?;
    let (rows, row_ptr) = (a.rows() as u32, a.row_ptr.ptr());
    let args = RowStats { rows, row_ptr, seen: seen.ptr_mut() };
    let launch = threads(device, row_warps * WARP)?;
    // SAFETY: rows + 1 pointers, a pair for each warp of the launch.
    unsafe { device.launch::<RowStats>(launch, &Stream::new(device)?, args)? };
    let host = seen.to_vec()?;
    Ok(host.iter().map(|&[longest, _]| longest as usize).max().unwrap_or(0))
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
    use crate::device::Device;

    fn stats(lengths: &[usize], values: Vec<f64>) -> MatrixStats<f64> {
        let mut row_ptr = vec![0];
        let mut columns = Vec::new();
        for &length in lengths {
            columns.extend(0..length as u32);
            row_ptr.push(columns.len() as u32);
        }
        let a = Csr::new((lengths.len(), 5000), row_ptr, columns, values).unwrap();
        let device = Device::emulated(Default::default());
        MatrixStats::of(&DeviceCsr::new(&device, a.view()).unwrap()).unwrap()
    }

    #[test]
    fn rows_and_values() {
        let lengths = [3, 0, 1, 4000, 0, 7];
        let total = lengths.iter().sum();
        let mut expected =
            MatrixStats { longest_row: 4000, empty_rows: 2, equal: Some(0.1), single: false };
        let mut values = vec![0.1; total];
        assert_eq!(stats(&lengths, values.clone()), expected);
        values[total - 1] = 0.5;
        expected.equal = None;
        assert_eq!(stats(&lengths, values.clone()), expected);
        values.fill(-0.25);
        values[1] = 3.0;
        expected.single = true;
        assert_eq!(stats(&lengths, values), expected);
        let none = MatrixStats { longest_row: 0, empty_rows: 0, equal: None, single: false };
        assert_eq!(stats(&[], Vec::new()), none);
    }
}
