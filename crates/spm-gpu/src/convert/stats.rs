//! Statistics of a matrix on the device, for the choice of a kernel.

use spm_formats::convert::DetectedBlocks;
use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert as kernels;
use spm_gpu_kernels::device::DevicePtrMut;

use super::{BLOCK, BlockSample, DiagonalSample, threads};
use crate::launch::WARP;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceReal, DeviceScalar};
use crate::stream::Stream;

/// Blocks of the grid, at most; a power of two, as the kernel wants it.
const BLOCKS: usize = 256;

/// Room for pairs of words that kernels write for the host.
pub(super) struct Pairs {
    first: DevicePtrMut<[u32; 2]>,
    count: usize,
}

impl Pairs {
    /// Where they begin.
    ///
    /// # Panics
    /// There is room for another number of pairs.
    pub(super) fn first(self, count: usize) -> DevicePtrMut<[u32; 2]> {
        assert_eq!(self.count, count, "room for other pairs");
        self.first
    }

    /// The room for `count` pairs, and the rest.
    fn split_at(self, count: usize) -> (Self, Self) {
        let rest = self.count.checked_sub(count).expect("room for so many pairs");
        let Self { first, .. } = self;
        (Self { first, count }, Self { first: first.offset(count), count: rest })
    }
}

/// What planning looks at in a matrix before it chooses a kernel: all of it in one trip to the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Survey<T> {
    pub(crate) rows: RowStats,
    /// If it was asked for.
    pub(crate) values: Option<ValueStats<T>>,
    /// If it was asked for: the dense blocks, if there are.
    pub(crate) blocks: Option<Option<DetectedBlocks>>,
    /// If it was asked for: the diagonals of some rows, if they are few.
    pub(crate) diagonals: Option<Option<DiagonalSample>>,
}

impl<T: DeviceScalar> Survey<T> {
    /// Of the rows alone.
    pub(crate) fn of_rows(a: &DeviceCsr<T>) -> Result<Self, PlanError> {
        Ok(Self { rows: RowStats::of(a)?, values: None, blocks: None, diagonals: None })
    }

    /// Of the rows; of the values, and of the pattern, its dense blocks and diagonals, if these are asked for.
    pub(crate) fn of(a: &DeviceCsr<T>, values: bool, pattern: bool) -> Result<Self, PlanError>
    where
        T: DeviceReal,
    {
        let of_rows = warps(a.rows());
        let of_values = if values { warps(a.entries()) } else { 0 };
        let [of_blocks, of_diagonals] =
            if pattern { [BlockSample::PAIRS, DiagonalSample::PAIRS] } else { [0, 0] };
        let pairs = of_rows + of_values + of_blocks + of_diagonals;
        let seen = seen(a, pairs, |stream, seen| {
            let (of_rows, seen) = seen.split_at(of_rows);
            let (of_values, seen) = seen.split_at(of_values);
            let (of_blocks, of_diagonals) = seen.split_at(of_blocks);
            RowStats::enqueue(a, stream, of_rows)?;
            if values {
                ValueStats::enqueue(a, stream, of_values)?;
            }
            if pattern {
                BlockSample::enqueue(a, stream, of_blocks)?;
                DiagonalSample::enqueue(a, stream, of_diagonals)?;
            }
            Ok(())
        })?;
        let (of_rows, seen) = seen.split_at(of_rows);
        let (of_values, seen) = seen.split_at(of_values);
        let (of_blocks, of_diagonals) = seen.split_at(of_blocks);
        Ok(Self {
            rows: RowStats::from_pairs(of_rows),
            values: values.then(|| ValueStats::from_pairs(a, of_values)).transpose()?,
            blocks: pattern.then(|| BlockSample::best::<T>(of_blocks)),
            diagonals: pattern.then(|| DiagonalSample::from_pairs(a, of_diagonals)),
        })
    }
}

/// Statistics of the rows that decide which kernels may be fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowStats {
    pub(crate) longest_row: usize,
    pub(crate) empty_rows: usize,
}

impl RowStats {
    /// Reads the row pointers once.
    pub(crate) fn of<T: DeviceScalar>(a: &DeviceCsr<T>) -> Result<Self, PlanError> {
        let seen = seen(a, warps(a.rows()), |stream, seen| Self::enqueue(a, stream, seen))?;
        Ok(Self::from_pairs(&seen))
    }

    /// Enqueues what writes a pair for each warp.
    fn enqueue<T: DeviceScalar>(
        a: &DeviceCsr<T>,
        stream: &Stream,
        seen: Pairs,
    ) -> Result<(), PlanError> {
        let (rows, row_ptr) = (a.rows() as u32, a.row_ptr.ptr());
        let warps = warps(a.rows());
        if warps == 0 {
            return Ok(());
        }
        let args = kernels::RowStats { rows, row_ptr, seen: seen.first(warps) };
        let launch = threads(a.device(), warps * WARP)?;
        // SAFETY: rows + 1 pointers, room for a pair of each warp of the launch.
        unsafe { a.device().launch::<kernels::RowStats>(launch, stream, args)? };
        Ok(())
    }

    fn from_pairs(seen: &[[u32; 2]]) -> Self {
        let longest_row = seen.iter().map(|&[longest, _]| longest as usize).max().unwrap_or(0);
        let empty_rows = seen.iter().map(|&[_, empty]| empty as usize).sum();
        Self { longest_row, empty_rows }
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
        let seen = seen(a, warps(a.entries()), |stream, seen| Self::enqueue(a, stream, seen))?;
        Self::from_pairs(a, &seen)
    }

    /// Enqueues what writes a pair for each warp.
    fn enqueue(a: &DeviceCsr<T>, stream: &Stream, seen: Pairs) -> Result<(), PlanError> {
        let (entries, values) = (a.entries() as u32, a.values.ptr());
        let warps = warps(a.entries());
        if warps == 0 {
            return Ok(());
        }
        let args = kernels::ValueStats { entries, values, seen: seen.first(warps) };
        let launch = threads(a.device(), warps * WARP)?;
        // SAFETY: that many values, room for a pair of each warp of the launch.
        unsafe { a.device().launch::<kernels::ValueStats<T>>(launch, stream, args)? };
        Ok(())
    }

    fn from_pairs(a: &DeviceCsr<T>, seen: &[[u32; 2]]) -> Result<Self, PlanError> {
        if seen.is_empty() {
            return Ok(Self::NONE);
        }
        let are_equal = seen.iter().all(|&[other, _]| other == 0);
        Ok(Self {
            equal: are_equal.then(|| a.values.element(0)).transpose()?,
            single: size_of::<T>() > size_of::<f32>() && seen.iter().all(|&[_, wide]| wide == 0),
        })
    }
}

/// The pairs, so many, that `enqueue` makes kernels write.
pub(super) fn seen<T: DeviceScalar>(
    a: &DeviceCsr<T>,
    pairs: usize,
    enqueue: impl FnOnce(&Stream, Pairs) -> Result<(), PlanError>,
) -> Result<Vec<[u32; 2]>, PlanError> {
    if pairs == 0 {
        return Ok(Vec::new());
    }
    let mut seen = DeviceBuffer::uninitialized(a.device(), pairs)?;
    let room = Pairs { first: seen.ptr_mut(), count: pairs };
    enqueue(&Stream::of_planning(a.device())?, room)?;
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
    use spm_testing::generate;

    use super::*;
    use crate::convert::detect_blocks;
    use crate::device::Device;

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
    fn one_trip_tells_what_four_do() {
        let device = Device::emulated(Default::default());
        for name in ["mesh2[n=9,unknowns=3]", "uniform[rows=900,cols=900,entries=4000]"] {
            let a = generate::named(name).unwrap().generate::<f64>().unwrap();
            let a = DeviceCsr::new(&device, a.view()).unwrap();
            let survey = Survey::of(&a, true, true).unwrap();
            assert_eq!(survey.rows, RowStats::of(&a).unwrap());
            assert_eq!(survey.values, Some(ValueStats::of(&a).unwrap()));
            assert_eq!(survey.blocks, Some(detect_blocks(&a).unwrap()));
            assert_eq!(survey.blocks.unwrap().is_some(), name.starts_with("mesh2"));
            let distances = |of: Option<DiagonalSample>| of.map(DiagonalSample::distances);
            let of_diagonals = distances(survey.diagonals.unwrap());
            assert_eq!(of_diagonals, distances(DiagonalSample::of(&a).unwrap()));
            assert_eq!(of_diagonals.map(|of| of.len()), name.starts_with("mesh2").then_some(33));
            let of_rows = Survey { values: None, blocks: None, diagonals: None, ..survey };
            assert_eq!(Survey::of_rows(&a).unwrap(), of_rows);
        }
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
