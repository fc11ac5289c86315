//! A sparsity pattern under construction, filled row by row on all threads.

use rayon::slice::ParallelSliceMut;

use super::random::{general, mix, single};
use super::{FEW_VALUES, GenerateError, MANY_VALUES, Values};
use spm_formats::csr::{check_limits, pointers_of};
use spm_formats::{Csr, Scalar, parallel};

/// Minimum number of entries of a task.
const TASK_ENTRIES: u32 = 1 << 14;

/// Row pointers and ascending column indices, without values.
pub(super) struct Pattern {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) row_ptr: Vec<u32>,
    pub(super) indices: Vec<u32>,
}

impl Pattern {
    /// Lets `fill(row, columns)` write the ascending columns of each row of known length.
    pub(super) fn with_lengths(
        rows: usize,
        cols: usize,
        lengths: &[u32],
        fill: impl Fn(usize, &mut [u32]) + Sync,
    ) -> Result<Self, GenerateError> {
        debug_assert_eq!(rows, lengths.len());
        let entries = lengths.iter().map(|&length| u64::from(length)).sum();
        check_limits(rows as u64, cols as u64, entries)?;
        let row_ptr = pointers_of(lengths.iter().copied());
        let mut indices = vec![0; entries as usize];
        for_rows(&row_ptr, 0, &mut indices, &fill);
        Ok(Self { rows, cols, row_ptr, indices })
    }

    /// As [`Pattern::with_lengths`], where row `i` has `length(i)` entries.
    pub(super) fn with_length_of(
        rows: usize,
        cols: usize,
        length: impl Fn(usize) -> u64 + Sync,
        fill: impl Fn(usize, &mut [u32]) + Sync,
    ) -> Result<Self, GenerateError> {
        check_limits(rows as u64, cols as u64, 0)?;
        let entries = parallel::reduce(
            rows,
            1,
            0,
            &|rows| rows.map(&length).fold(0, u64::saturating_add),
            u64::saturating_add,
        );
        check_limits(rows as u64, cols as u64, entries)?;
        let lengths = parallel::map(rows, 1, |row| length(row) as u32);
        Self::with_lengths(rows, cols, &lengths, fill)
    }

    /// The pattern of these entries, `row << 32 | column` each, in any order; repeated ones count
    /// once.
    pub(super) fn from_entries(
        rows: usize,
        cols: usize,
        mut entries: Vec<u64>,
    ) -> Result<Self, GenerateError> {
        entries.par_sort_unstable();
        entries.dedup();
        check_limits(rows as u64, cols as u64, entries.len() as u64)?;
        let end = |row: usize| entries.partition_point(|&entry| entry >> 32 < row as u64) as u32;
        let row_ptr = parallel::map(rows + 1, 1 << 10, end);
        let indices = parallel::map(entries.len(), 1 << 10, |at| entries[at] as u32);
        Ok(Self { rows, cols, row_ptr, indices })
    }

    /// Columns of a row.
    pub(super) fn row(&self, row: usize) -> &[u32] {
        &self.indices[self.row_ptr[row] as usize..self.row_ptr[row + 1] as usize]
    }

    /// Adds values to the pattern. Symmetric complex ones are hermitian.
    pub(super) fn into_csr<T: Scalar>(self, values: Values, seed: u64) -> Csr<T> {
        let part = |seed: u64, row: u32, col: u32| {
            let one_of = |count: u32| {
                let entry = mix(u64::from(row) << 32 | u64::from(col));
                general(seed, entry as u32 % count, u32::MAX)
            };
            T::Real::from_f64(match values {
                Values::General => general(seed, row, col),
                Values::Symmetric => general(seed, row.min(col), row.max(col)),
                Values::Single => single(seed, row, col),
                Values::Few => one_of(FEW_VALUES),
                Values::Many => one_of(MANY_VALUES),
                Values::Ones => 1.0,
            })
        };
        let value = |row: u32, col: u32| {
            let re = part(seed, row, col);
            if !T::IS_COMPLEX {
                return T::from_parts(re, T::Real::ZERO);
            }
            let im = part(!seed, row, col);
            match values {
                Values::Symmetric if row == col => T::from_parts(re, T::Real::ZERO),
                Values::Symmetric if row < col => T::from_parts(re, -im),
                _ => T::from_parts(re, im),
            }
        };
        let mut data = vec![T::ONE; self.indices.len()];
        if values != Values::Ones {
            for_rows(&self.row_ptr, 0, &mut data, &|row, data: &mut [T]| {
                let start = self.row_ptr[row] as usize;
                let row = row as u32;
                for (entry, &col) in data.iter_mut().zip(&self.indices[start..]) {
                    *entry = value(row, col);
                }
            });
        }
        Csr::new((self.rows, self.cols), self.row_ptr, self.indices, data)
            .expect("columns ascend in every row")
    }
}

/// An entry for [`Pattern::from_entries`].
pub(super) fn entry(row: usize, col: usize) -> u64 {
    (row as u64) << 32 | col as u64
}

/// Calls `visit(row, part of data)` for the rows that `row_ptr` bounds, on all threads.
/// `first` is the number of the first of them.
pub(super) fn for_rows<T: Send>(
    row_ptr: &[u32],
    first: usize,
    data: &mut [T],
    visit: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let rows = row_ptr.len() - 1;
    let entries = row_ptr[rows] - row_ptr[0];
    if rows > 1 && entries > TASK_ENTRIES {
        let half = row_ptr[0] + entries / 2;
        let middle = row_ptr.partition_point(|&p| p < half).clamp(1, rows - 1);
        let (left, right) = data.split_at_mut((row_ptr[middle] - row_ptr[0]) as usize);
        rayon::join(
            || for_rows(&row_ptr[..=middle], first, left, visit),
            || for_rows(&row_ptr[middle..], first + middle, right, visit),
        );
        return;
    }
    let mut rest = data;
    for (i, bounds) in row_ptr.windows(2).enumerate() {
        let (row, tail) = rest.split_at_mut((bounds[1] - bounds[0]) as usize);
        visit(first + i, row);
        rest = tail;
    }
}
