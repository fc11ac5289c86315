//! Transposition by counting sort.
//!
//! Each thread counts the entries of its partition in each column. A scan turns the counts into
//! write positions. Then each thread moves its entries from A to these positions. The column
//! indices are read twice, and nothing is stored for each entry.

use std::ops::Range;

use spm_formats::kernel::{
    KernelInfo, ParameterSpec, Parameters, PlanError, TransposeOutput, Value,
};
use spm_formats::{CsrView, Scalar, partition};

use super::BoxedPlan;
use super::KERNEL;
use super::plan::{Procedure, boxed};
use super::procedures::ChunksOfRows;
use crate::disjoint::Disjoint;
use crate::simd::{self, AHEAD};
use crate::spmv::SampledRows;
use crate::workspace::Workspace;
use crate::{PlanOptions, Threads};

const PREFETCH: ParameterSpec = ParameterSpec {
    name: "prefetch",
    meaning: "prefetch distance for the cache lines written to, in entries; 0: none, if the \
              output stays in cache",
    default: Value::Count(0),
    studied: &[Value::Count(0), Value::Count(64)],
};

const ROW_ENDS: ParameterSpec = ParameterSpec {
    name: "row-ends",
    meaning: "how the row of an entry is known: by a branch at the end of each row, by a buffer of row indices, or as \
              a sample of the row lengths says",
    default: Value::Choice("auto"),
    studied: &[Value::Choice("auto"), BRANCH, BUFFER],
};
/// For rows whose ends the processor predicts: long ones, equal ones, and those of a matrix so small that it learns
/// them.
pub(super) const BRANCH: Value = Value::Choice("branch");
const BUFFER: Value = Value::Choice("buffer");

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "counting",
    source: "own",
    summary: "counting sort: column counts of each thread, scanned into write positions",
    parameters: &[PREFETCH, ROW_ENDS],
    ..KERNEL
};

/// Mean entries of a row from which a wrong branch for each costs less than the buffer.
const LONG_ROWS: usize = 8;

struct Counting<'a, T> {
    a: CsrView<'a, T>,
    threads: Threads,
    ahead: usize,
    /// Whether entries are moved row by row, because the processor predicts where rows end; else the row of
    /// each entry is written to a buffer first.
    by_rows: bool,
    /// The write position of each thread's next entry in each column: threads x columns.
    places: Workspace<u32>,
    sums: Vec<u32>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrView<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let threads = options.threads.clone();
    // One thread counts in the output itself.
    let parts = if threads.count() == 1 { 0 } else { threads.count() };
    let counters = parts as u128 * a.cols() as u128;
    options.budget.check_bytes(INFO.id, counters * size_of::<u32>() as u128)?;
    let places = Workspace::new(parts * a.cols(), 0);
    let sums = vec![0; threads.count()];
    // As far as A goes is far enough, and places further on need not be computed.
    let ahead = parameters.count(PREFETCH.name).min(a.nnz());
    let by_rows = match parameters.choice(ROW_ENDS.name) {
        "branch" => true,
        "buffer" => false,
        _ => ends_are_predicted(&a),
    };
    Ok(boxed(Counting { a, threads, ahead, by_rows, places, sums }))
}

/// Whether the processor predicts where rows end, by a sample. Where hardly any row has two entries, it does: the
/// others take no branch.
pub(super) fn ends_are_predicted<T: Scalar>(a: &CsrView<'_, T>) -> bool {
    a.nnz() <= a.rows()
        || a.nnz() >= LONG_ROWS * a.rows()
        || !SampledRows::of(a.row_ptr()).end_unpredictably()
}

/// Turns the counts of all partitions into the write positions of their first entries, column by
/// column and partition by partition. The position of the first partition is the column pointer.
fn counts_to_places(
    counts: &mut [u32],
    sums: &mut [u32],
    threads: &Threads,
    entries: usize,
    col_ptr: &mut [u32],
) {
    let (cols, parts) = (col_ptr.len() - 1, threads.count());
    {
        let (counts, sums) = (&*counts, Disjoint::new(&mut *sums));
        threads.run(|part| {
            let share = partition::even(cols, parts, part);
            let rows = counts.chunks_exact(cols.max(1));
            let sum = rows.map(|counts| counts[share.clone()].iter().sum::<u32>()).sum();
            // SAFETY: one element for each part.
            unsafe { sums.write(part, sum) };
        });
    }
    col_ptr[cols] = entries as u32;
    let (places, sums, col_ptr) = (Disjoint::new(counts), &*sums, Disjoint::new(col_ptr));
    threads.run(|part| {
        let share = partition::even(cols, parts, part);
        let mut place = sums[..part].iter().sum::<u32>();
        // SAFETY: shares of columns do not overlap.
        let col_ptr = unsafe { col_ptr.range(share.clone()) };
        for (pointer, col) in col_ptr.iter_mut().zip(share) {
            *pointer = place;
            for row in 0..parts {
                // SAFETY: as above, and inside threads x columns.
                let count = unsafe { &mut *places.pointer(row * cols + col) };
                place += std::mem::replace(count, place);
            }
        }
    });
}

/// The entries and their destination. A copy for each thread, whose loop keeps the addresses in registers.
#[derive(Clone, Copy)]
struct Placing<'a, T> {
    row_ptr: &'a [u32],
    columns: &'a [u32],
    values: &'a [T],
    /// As [`Counting::by_rows`].
    by_rows: bool,
    to_rows: Disjoint<'a, u32>,
    to_values: Disjoint<'a, T>,
}

impl<T: Scalar> Placing<'_, T> {
    /// Moves `entries` to their positions: the next entry of column c goes to `places[c]`. With
    /// `PREFETCH` the cache lines of a destination are prefetched `ahead` entries before the write.
    ///
    /// # Safety
    /// `places` has an element for each column. The positions of these entries are below the
    /// lengths of both arrays, and no other thread writes there.
    unsafe fn place<const PREFETCH: bool>(
        self,
        entries: Range<usize>,
        places: &mut [u32],
        ahead: usize,
    ) {
        if self.by_rows {
            let row_ptr = self.row_ptr;
            let mut first = row_ptr[1..].partition_point(|&end| end as usize <= entries.start);
            let last = row_ptr.partition_point(|&start| (start as usize) < entries.end);
            let place_row = |row: usize, places: &mut [u32]| {
                let begin = (row_ptr[row] as usize).max(entries.start);
                let end = (row_ptr[row + 1] as usize).min(entries.end);
                if !PREFETCH {
                    // Rows of a few entries take no loop around lines.
                    for entry in begin..end {
                        // SAFETY: the caller's promise.
                        unsafe { self.place_entry::<false>(entry, row as u32, places, 0) };
                    }
                    return;
                }
                for begin in (begin..end).step_by(LINE) {
                    let line = begin..end.min(begin + LINE);
                    // SAFETY: the caller's promise.
                    unsafe { self.place_line::<true>(line, |_| row as u32, places, ahead) };
                }
            };
            while first < last
                && let Some(rows) = row_ptr[first..=last].first_chunk()
            {
                let mut with_entries = simd::changes(rows);
                if with_entries == u64::MAX {
                    (first..first + ROWS).for_each(|row| place_row(row, places));
                    with_entries = 0;
                }
                // Without a branch for each of the others.
                while with_entries != 0 {
                    place_row(first + with_entries.trailing_zeros() as usize, places);
                    with_entries &= with_entries - 1;
                }
                first += ROWS;
            }
            (first..last).for_each(|row| place_row(row, places));
            return;
        }
        let mut chunks = ChunksOfRows::new(self.row_ptr, entries);
        while let Some((start, rows)) = chunks.next() {
            for (start, rows) in (start..).step_by(LINE).zip(rows.chunks(LINE)) {
                let line = start..start + rows.len();
                // SAFETY: the caller's promise.
                unsafe {
                    self.place_line::<PREFETCH>(line, |entry| rows[entry - start], places, ahead);
                }
            }
        }
    }

    /// [`Placing::place`] for at most [`LINE`] entries, whose rows `row` tells.
    ///
    /// # Safety
    /// As [`Placing::place`].
    #[inline(always)]
    unsafe fn place_line<const PREFETCH: bool>(
        self,
        entries: Range<usize>,
        row: impl Fn(usize) -> u32,
        places: &mut [u32],
        ahead: usize,
    ) {
        simd::prefetch(self.columns.as_ptr().wrapping_add(entries.start + AHEAD));
        simd::prefetch(self.values.as_ptr().wrapping_add(entries.start + AHEAD));
        for entry in entries {
            // SAFETY: the caller's promise.
            unsafe { self.place_entry::<PREFETCH>(entry, row(entry), places, ahead) };
        }
    }

    /// [`Placing::place`] for one entry, which is in row `row`.
    ///
    /// # Safety
    /// As [`Placing::place`].
    #[inline(always)]
    unsafe fn place_entry<const PREFETCH: bool>(
        self,
        entry: usize,
        row: u32,
        places: &mut [u32],
        ahead: usize,
    ) {
        let Self { columns, values, to_rows, to_values, .. } = self;
        // SAFETY: CsrView promises that columns are below cols; the caller's promise. A line asked for
        // too early or by an old place is only not there in time.
        unsafe {
            if PREFETCH {
                let ahead = columns[(entry + ahead).min(columns.len() - 1)];
                let place = *places.get_unchecked(ahead as usize) as usize;
                simd::prefetch_write(to_rows.address(place));
                simd::prefetch_write(to_values.address(place));
            }
            let col = *columns.get_unchecked(entry) as usize;
            let place = places.get_unchecked_mut(col);
            let at = *place as usize;
            *place += 1;
            to_rows.write_unchecked(at, row);
            to_values.write_unchecked(at, *values.get_unchecked(entry));
        }
    }
}

/// Rows that are searched for entries at once.
const ROWS: usize = u64::BITS as usize;
/// Entries whose values fill a cache line, or half of one.
const LINE: usize = 8;

impl<T: Scalar> Procedure<T> for Counting<'_, T> {
    fn matrix(&self) -> &CsrView<'_, T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        ((self.places.len() + self.sums.len()) * size_of::<u32>()) as u64
    }

    fn transpose(&mut self, output: &mut TransposeOutput<T>) {
        // Entries are written to their places without a check.
        output.check(self.a.cols(), self.a.nnz()).expect("arrays of the matrix's sizes");
        let TransposeOutput { col_ptr, row_ind, values } = output;
        let (a, threads) = (&self.a, &self.threads);
        let (cols, entries, parts) = (a.cols(), a.nnz(), threads.count());
        let placing = Placing {
            row_ptr: a.row_ptr(),
            columns: a.col_ind(),
            values: a.values(),
            by_rows: self.by_rows,
            to_rows: Disjoint::new(row_ind),
            to_values: Disjoint::new(values),
        };
        let place = if self.ahead > 0 { Placing::place::<true> } else { Placing::place::<false> };
        if parts == 1 {
            // The column pointers themselves are the places: that of column c runs at c + 1, and is the
            // end of c, where the next column starts, when all entries are placed.
            col_ptr.fill(0);
            let places = &mut col_ptr[1..];
            count(a, 0..entries, places);
            let mut sum = 0;
            for count in &mut *places {
                sum += std::mem::replace(count, sum);
            }
            // SAFETY: all entries of each column, from its place on; nobody else is here.
            return unsafe { place(placing, 0..entries, places, self.ahead) };
        }

        let places = Disjoint::new(&mut self.places);
        threads.run(|part| {
            // SAFETY: one row for each part.
            let counts = unsafe { places.range(part * cols..(part + 1) * cols) };
            counts.fill(0);
            count(a, partition::even(entries, parts, part), counts);
        });
        counts_to_places(&mut self.places, &mut self.sums, threads, entries, col_ptr);

        let places = Disjoint::new(&mut self.places);
        threads.run(|part| {
            // SAFETY: one row for each part, which has as many places in a column, from its place
            // on, as it has entries there.
            unsafe {
                let places = places.range(part * cols..(part + 1) * cols);
                place(placing, partition::even(entries, parts, part), places, self.ahead);
            }
        });
    }
}

/// Counts the columns of `entries` into `counts`, which has an element for each column.
fn count<T: Scalar>(a: &CsrView<'_, T>, entries: Range<usize>, counts: &mut [u32]) {
    assert!(counts.len() >= a.cols());
    for line in a.col_ind()[entries].chunks(2 * LINE) {
        simd::prefetch(line.as_ptr().wrapping_add(2 * AHEAD));
        for &col in line {
            // SAFETY: CsrView promises that columns are below cols <= counts.len().
            unsafe { *counts.get_unchecked_mut(col as usize) += 1 };
        }
    }
}
