//! Statistics of a matrix on the device, for the choice of a kernel.

use spm_formats::convert::DetectedBlocks;
use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{SURVEY_BLOCK, Survey as Kernel, survey_shared_bytes};
use spm_gpu_kernels::spmv::MOST_VALUES;

use super::{BlockSample, ID, PatternSample};
use crate::host_words::HostWords;
use crate::launch::Launch;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::{DeviceReal, DeviceScalar};
use crate::stream::Stream;

/// Blocks of threads that look at the rows, at most, and at the values; a power of two, as the kernel wants it.
const MOST_BLOCKS: usize = 256;

/// What planning looks at in a matrix before it chooses a kernel: all of it in one trip to the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Survey<T> {
    pub(crate) rows: RowStats,
    /// If it was asked for.
    pub(crate) values: Option<ValueStats<T>>,
    /// If it was asked for: the dense blocks, if there are.
    pub(crate) blocks: Option<Option<DetectedBlocks>>,
    /// If it was asked for.
    pub(crate) pattern: Option<PatternSample>,
    /// Whether there are more distinct values than a byte numbers, as far as some of them tell.
    pub(crate) many_values: bool,
}

impl<T: DeviceScalar> Survey<T> {
    /// Of the rows alone.
    pub(crate) fn of_rows(a: &DeviceCsr<T>) -> Result<Self, PlanError> {
        let rows = RowStats::of(a)?;
        Ok(Self { rows, values: None, blocks: None, pattern: None, many_values: false })
    }

    /// Of the rows; of the values, and of the pattern, its dense blocks and diagonals, if these are asked for. A large matrix
    /// is asked for its pattern: its values are looked at for few distinct ones, too.
    pub(crate) fn of(a: &DeviceCsr<T>, values: bool, pattern: bool) -> Result<Self, PlanError>
    where
        T: DeviceReal,
    {
        let distinct = values && pattern;
        let parts = Parts { rows: true, values, distinct, blocks: pattern, pattern };
        let seen = parts.look(a, &a.values)?;
        Ok(Self {
            rows: RowStats::from_pairs(seen.rows()),
            values: values.then(|| ValueStats::from_pairs(seen.values())),
            blocks: pattern.then(|| BlockSample::best::<T>(seen.blocks())),
            pattern: pattern.then(|| PatternSample::from_pairs(a, seen.pattern())),
            many_values: seen.distinct().iter().any(|&[distinct, _]| distinct > MOST_VALUES),
        })
    }
}

/// What one launch looks at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts {
    pub(super) rows: bool,
    pub(super) values: bool,
    pub(super) distinct: bool,
    pub(super) blocks: bool,
    pub(super) pattern: bool,
}

/// Pairs of words that blocks of threads have written, of each part behind that of the one before.
pub(super) struct Seen {
    pairs: Vec<[u32; 2]>,
    /// Where the pairs of the pattern, of distinct values, of dense blocks and of rows end.
    ends: [usize; 4],
}

impl Seen {
    pub(super) fn pattern(&self) -> &[[u32; 2]] {
        &self.pairs[..self.ends[0]]
    }

    fn distinct(&self) -> &[[u32; 2]] {
        &self.pairs[self.ends[0]..self.ends[1]]
    }

    pub(super) fn blocks(&self) -> &[[u32; 2]] {
        &self.pairs[self.ends[1]..self.ends[2]]
    }

    fn rows(&self) -> &[[u32; 2]] {
        &self.pairs[self.ends[2]..self.ends[3]]
    }

    fn values(&self) -> &[[u32; 2]] {
        &self.pairs[self.ends[3]..]
    }
}

impl Parts {
    /// Looks at the pattern alone.
    pub(super) fn look_at_pattern<T: DeviceScalar>(
        self,
        a: &DeviceCsr<T>,
    ) -> Result<Seen, PlanError> {
        let none = DeviceBuffer::<f32>::uninitialized(a.device(), 0)?;
        Self { values: false, distinct: false, ..self }.look(a, &none)
    }

    /// Looks at a matrix with these values, which are as many as there are entries, if they are looked at.
    fn look<T: DeviceScalar, V: DeviceReal>(
        self,
        a: &DeviceCsr<T>,
        values: &DeviceBuffer<V>,
    ) -> Result<Seen, PlanError> {
        let device = a.device();
        let pattern_blocks = usize::from(self.pattern);
        let distinct_blocks = usize::from(self.distinct && !values.is_empty());
        let sample_blocks = if self.blocks { BlockSample::PAIRS } else { 0 };
        let row_blocks = if self.rows { blocks(a.rows()) } else { 0 };
        let value_blocks = if self.values { blocks(values.len()) } else { 0 };
        let mut pairs = pattern_blocks * PatternSample::PAIRS;
        let ends = [0, distinct_blocks, sample_blocks, row_blocks].map(|of_part| {
            pairs += of_part;
            pairs
        });
        let value_pairs = if value_blocks > 0 { 1 + value_blocks } else { 0 };
        let pairs = pairs + value_pairs;
        if pairs == 0 {
            return Ok(Seen { pairs: Vec::new(), ends });
        }
        const {
            let most = PatternSample::PAIRS + 1 + BlockSample::PAIRS + 1 + 2 * MOST_BLOCKS;
            assert!(2 * most <= HostWords::COUNT);
        }
        let mut seen = HostWords::new(device)?;
        let stream = Stream::of_planning(device)?;
        let grid = pattern_blocks + distinct_blocks + sample_blocks + row_blocks + value_blocks;
        let launch = Launch::over(ID, device, grid, 1, SURVEY_BLOCK as usize)?
            .with_shared_bytes(survey_shared_bytes());
        let args = Kernel {
            rows: a.rows() as u32,
            entries: values.len() as u32,
            pattern_blocks: pattern_blocks as u32,
            distinct_blocks: distinct_blocks as u32,
            sample_blocks: sample_blocks as u32,
            row_blocks: row_blocks as u32,
            sizes: BlockSample::sizes(),
            row_ptr: a.row_ptr.ptr(),
            col_ind: a.col_ind.ptr(),
            values: values.ptr(),
            seen: seen.pairs_mut(),
        };
        // SAFETY: verified CSR arrays, so many values, room for the pairs of each part.
        unsafe { device.launch::<Kernel<V>>(launch, &stream, args)? };
        let words = seen.read(2 * pairs, &stream)?;
        Ok(Seen { pairs: words.as_chunks().0.to_vec(), ends })
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
        let seen = Parts { rows: true, ..Parts::default() }.look_at_pattern(a)?;
        Ok(Self::from_pairs(seen.rows()))
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
        let seen = Parts { values: true, ..Parts::default() }.look(a, &a.values)?;
        Ok(Self::from_pairs(seen.values()))
    }

    /// The bits of the first value, and what each block of threads has seen.
    fn from_pairs(seen: &[[u32; 2]]) -> Self {
        let Some((&[low, high], seen)) = seen.split_first() else { return Self::NONE };
        let are_equal = seen.iter().all(|&[other, _]| other == 0);
        Self {
            equal: are_equal.then(|| T::from_word(u64::from(high) << 32 | u64::from(low))),
            single: size_of::<T>() > size_of::<f32>() && seen.iter().all(|&[_, wide]| wide == 0),
        }
    }
}

/// Blocks of threads for so many items; a power of two.
fn blocks(items: usize) -> usize {
    match items.div_ceil(4 * SURVEY_BLOCK as usize) {
        0 => 0,
        blocks => blocks.next_power_of_two().min(MOST_BLOCKS),
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::Csr;
    use spm_testing::generate;

    use super::*;
    use crate::convert::{DiagonalSample, detect_blocks};
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
        let names = ["mesh2[n=9,unknowns=3]", "mesh2[n=9,unknowns=3,values=ones]"];
        for name in [&names[..], &["uniform[rows=900,cols=900,entries=4000]"]].concat() {
            let a = generate::named(name).unwrap().generate::<f64>().unwrap();
            let a = DeviceCsr::new(&device, a.view()).unwrap();
            let survey = Survey::of(&a, true, true).unwrap();
            assert_eq!(survey.rows, RowStats::of(&a).unwrap());
            assert_eq!(survey.values, Some(ValueStats::of(&a).unwrap()));
            assert_eq!(survey.values.unwrap().equal.is_some(), name.ends_with("values=ones]"));
            assert_eq!(survey.blocks, Some(detect_blocks(&a).unwrap()));
            assert_eq!(survey.blocks.unwrap().is_some(), name.starts_with("mesh2"));
            let distances = |of: PatternSample| of.diagonals.map(DiagonalSample::distances);
            let of_diagonals = distances(survey.pattern.unwrap());
            assert_eq!(of_diagonals, distances(PatternSample::of(&a).unwrap()));
            assert_eq!(of_diagonals.map(|of| of.len()), name.starts_with("mesh2").then_some(33));
            let of_rows =
                Survey { values: None, blocks: None, pattern: None, many_values: false, ..survey };
            assert_eq!(Survey::of_rows(&a).unwrap(), of_rows);
        }
    }

    #[test]
    fn a_sample_tells_that_there_are_many_values() {
        let device = Device::emulated(Default::default());
        let many = |distinct: usize, entries: usize| {
            let (row_ptr, columns) = (vec![0, entries as u32], (0..entries as u32).collect());
            let values = (0..entries).map(|k| 0.1 + (k % distinct) as f64).collect();
            let a = Csr::new((1, entries), row_ptr, columns, values).unwrap();
            let a = DeviceCsr::new(&device, a.view()).unwrap();
            Survey::of(&a, true, true).unwrap().many_values
        };
        assert!(!many(1, 5000) && !many(256, 1100) && !many(256, 256));
        assert!(many(257, 1100) && many(4001, 5000) && many(100_000, 100_000));
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
