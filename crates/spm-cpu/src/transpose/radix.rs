//! Transposition by radix sort in two passes.
//!
//! The first pass moves entries into buckets of neighbouring columns. The second moves them to
//! their positions inside each bucket, which fits a cache. Two passes of sequential traffic replace
//! one pass with a cache miss for each entry.
//!
//! In the first pass a thread collects the entries of each bucket in a buffer of one cache line
//! (three for `f32`) and writes only full buffers, with streaming stores (software write combining:
//! Wassenberg and Sanders, "Engineering a multi-core radix sort", Euro-Par 2011).

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use spm_formats::kernel::{
    KernelInfo, ParameterSpec, Parameters, PlanError, TransposeOutput, Value,
};
use spm_formats::{CsrView, Scalar, partition};

use super::BoxedPlan;
use super::KERNEL;
use super::plan::{Procedure, boxed};
use super::procedures::ChunksOfRows;
use crate::disjoint::Disjoint;
use crate::simd::{self, Isa, Job, LANES, Machine};
use crate::workspace::Workspace;
use crate::{PlanOptions, Threads};

const BUCKET: ParameterSpec = ParameterSpec {
    name: "bucket",
    meaning: "entries in a bucket, about; their records should fit into a first-level cache",
    default: Value::Count(1 << 11),
    studied: &[Value::Count(1 << 11), Value::Count(1 << 13), Value::Count(1 << 15)],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "radix",
    source: "own; Wassenberg and Sanders, Euro-Par 2011",
    summary: "buckets of columns through write-combining buffers, then counting in each bucket; \
              for columns that are far from each other",
    parameters: &[BUCKET],
    ..KERNEL
};

/// Maximum number of buckets; their buffers of a cache line take an eighth of a megabyte of a second-level cache.
const MOST_BUCKETS: usize = 2048;

/// An entry between the two passes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Record<T> {
    col: u32,
    row: u32,
    value: T,
}

/// Records that are written to memory together: one cache line of them, or three lines for `f32`,
/// whose 12 bytes do not divide a line.
const fn group<T>() -> usize {
    if size_of::<Record<T>>() == 16 { 4 } else { 16 }
}

struct Radix<'a, T> {
    a: CsrView<'a, T>,
    threads: Threads,
    machine: Machine,
    /// The bucket of a column is column >> shift.
    shift: u32,
    buckets: usize,
    /// threads x buckets: the position of the thread's next record of a bucket.
    places: Vec<usize>,
    /// threads x buckets: the position of its first record.
    begins: Vec<usize>,
    /// The start of each bucket, and the number of entries at the end.
    starts: Vec<usize>,
    records: Workspace<Record<T>>,
    /// threads x buckets x group: records of groups that are not full yet.
    groups: Workspace<Record<T>>,
    /// Workspace for the second pass: threads x columns of a bucket.
    counts: Workspace<u32>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrView<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let threads = options.threads.clone();
    let wanted = (a.nnz() / parameters.count(BUCKET.name)).clamp(1, MOST_BUCKETS);
    let shift = a.cols().div_ceil(wanted).next_power_of_two().trailing_zeros();
    let buckets = a.cols().div_ceil(1 << shift);
    let none = Record { col: 0, row: 0, value: T::ZERO };
    // A thread has two places and a group of records for each bucket, and counts its columns.
    let of_bucket = 2 * size_of::<usize>() + group::<T>() * size_of::<Record<T>>();
    let of_thread = (of_bucket * buckets) as u128 + ((size_of::<u32>() as u128) << shift);
    let of_entries = (a.nnz() * size_of::<Record<T>>()) as u128;
    options.budget.check_bytes(INFO.id, threads.count() as u128 * of_thread + of_entries)?;
    Ok(boxed(Radix {
        machine: Machine::without_gathers(),
        shift,
        buckets,
        places: vec![0; threads.count() * buckets],
        begins: vec![0; threads.count() * buckets],
        starts: vec![0; buckets + 1],
        records: Workspace::new(a.nnz(), none),
        groups: Workspace::new(threads.count() * buckets * group::<T>(), none),
        counts: Workspace::new(threads.count() << shift, 0),
        a,
        threads,
    }))
}

impl<T: Scalar> Radix<'_, T> {
    /// Counts the records of each thread and bucket, and scans the counts into positions.
    fn place_buckets(&mut self) {
        let (a, buckets, shift) = (self.a, self.buckets, self.shift);
        let (entries, parts) = (a.nnz(), self.threads.count());
        let places = Disjoint::new(&mut self.places);
        self.threads.run(|part| {
            // SAFETY: one row for each part.
            let counts = unsafe { places.range(part * buckets..(part + 1) * buckets) };
            counts.fill(0);
            for &col in &a.col_ind()[partition::even(entries, parts, part)] {
                // SAFETY: CsrView promises that columns are below cols.
                unsafe { *counts.get_unchecked_mut((col >> shift) as usize) += 1 };
            }
        });
        let mut place = 0;
        for bucket in 0..buckets {
            self.starts[bucket] = place;
            for part in 0..parts {
                let count = &mut self.places[part * buckets + bucket];
                place += std::mem::replace(count, place);
            }
        }
        self.starts[buckets] = place;
    }

    /// Moves every entry to its bucket, in the order of A.
    fn fill_buckets(&mut self) {
        let (a, buckets, parts) = (self.a, self.buckets, self.threads.count());
        let places = Disjoint::new(&mut self.places);
        let begins = Disjoint::new(&mut self.begins);
        let groups = Disjoint::new(&mut self.groups);
        let records = Disjoint::new(&mut self.records);
        self.threads.run(|part| {
            let (start, end) = (part * buckets, (part + 1) * buckets);
            let of_groups = start * group::<T>()..end * group::<T>();
            // SAFETY: one row for each part.
            let (places, begins, groups) = unsafe {
                (places.range(start..end), begins.range(start..end), groups.range(of_groups))
            };
            let entries = partition::even(a.nnz(), parts, part);
            self.machine.run(Fill {
                a,
                shift: self.shift,
                entries,
                places,
                begins,
                groups,
                records,
            });
        });
    }
}

impl<T: Scalar> Procedure<T> for Radix<'_, T> {
    fn matrix(&self) -> &CsrView<'_, T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        let bytes = size_of_val(&*self.places)
            + size_of_val(&*self.begins)
            + size_of_val(&*self.starts)
            + size_of_val(&*self.records)
            + size_of_val(&*self.groups)
            + size_of_val(&*self.counts);
        bytes as u64
    }

    fn transpose(&mut self, output: &mut TransposeOutput<T>) {
        self.place_buckets();
        self.fill_buckets();

        let TransposeOutput { col_ptr, row_ind, values } = output;
        let (cols, shift, threads) = (self.a.cols(), self.shift, &self.threads);
        col_ptr[cols] = self.a.nnz() as u32;
        let (starts, records) = (&self.starts, &*self.records);
        let (col_ptr, counts) = (Disjoint::new(col_ptr), Disjoint::new(&mut self.counts));
        let (row_ind, values) = (Disjoint::new(row_ind), Disjoint::new(values));
        let next = AtomicUsize::new(0);
        threads.run(|part| {
            // SAFETY: one row for each part.
            let counts = unsafe { counts.range(part << shift..(part + 1) << shift) };
            loop {
                let bucket = next.fetch_add(1, Ordering::Relaxed);
                if bucket >= self.buckets {
                    break;
                }
                let range = starts[bucket]..starts[bucket + 1];
                let first = bucket << shift;
                // SAFETY: buckets have different columns, and their entries are different.
                let (col_ptr, row_ind, values) = unsafe {
                    (
                        col_ptr.range(first..cols.min(first + (1 << shift))),
                        row_ind.range(range.clone()),
                        values.range(range.clone()),
                    )
                };
                finish_bucket(
                    &records[range.clone()],
                    range.start,
                    counts,
                    col_ptr,
                    row_ind,
                    values,
                );
            }
        });
    }
}

/// Counting sort of one bucket, whose entries start at `start` in the output; `counts` is
/// workspace.
fn finish_bucket<T: Scalar>(
    records: &[Record<T>],
    start: usize,
    counts: &mut [u32],
    col_ptr: &mut [u32],
    row_ind: &mut [u32],
    values: &mut [T],
) {
    // A power of two, so that the low bits of a column are an index without a check.
    let mask = counts.len() - 1;
    counts.fill(0);
    for record in records {
        counts[record.col as usize & mask] += 1;
    }
    let mut place = 0;
    for (pointer, count) in col_ptr.iter_mut().zip(&mut *counts) {
        *pointer = start as u32 + place;
        place += std::mem::replace(count, place);
    }
    simd::prefetch_to_overwrite(row_ind);
    simd::prefetch_to_overwrite(values);
    for record in records {
        let place = &mut counts[record.col as usize & mask];
        row_ind[*place as usize] = record.row;
        values[*place as usize] = record.value;
        *place += 1;
    }
}

/// The first pass of one thread.
struct Fill<'a, T: Scalar> {
    a: CsrView<'a, T>,
    shift: u32,
    entries: Range<usize>,
    places: &'a mut [usize],
    begins: &'a mut [usize],
    groups: &'a mut [Record<T>],
    records: Disjoint<'a, Record<T>>,
}

// SAFETY: `As<T>` is `Fill<T>`.
unsafe impl<'a, T: Scalar> Job<T> for Fill<'a, T> {
    type As<U: Scalar> = Fill<'a, U>;
    const GATHERS: bool = false;

    #[inline(always)]
    unsafe fn run<I: Isa<T>>(self) {
        let Self { a, shift, entries, places, begins, groups, records } = self;
        let group = const { group::<T>() };
        // Groups are counted from the first record on, which Workspace has put on a cache line. The
        // first group of a bucket may be shared with others: it is not streamed.
        begins.copy_from_slice(places);
        let mut chunks = ChunksOfRows::new(a.row_ptr(), entries);
        while let Some((start, rows)) = chunks.next() {
            let piece = start..start + rows.len();
            let columns = a.col_ind()[piece.clone()].iter();
            for ((&col, &value), &row) in columns.zip(&a.values()[piece]).zip(rows) {
                let bucket = (col >> shift) as usize;
                // SAFETY: CsrView promises that columns are below cols, and there is a bucket
                // for each; a part has as many places in a bucket as entries there, and nobody else
                // uses them. Groups are multiples of a vector, on cache lines.
                unsafe {
                    let place = places.get_unchecked_mut(bucket);
                    let slot = *place % group;
                    let waiting = groups.as_mut_ptr().add(bucket * group);
                    waiting.add(slot).write(Record { col, row, value });
                    *place += 1;
                    if slot + 1 == group {
                        let first = *place - group;
                        let begin = *begins.get_unchecked(bucket);
                        if first >= begin {
                            let to = records.pointer(first).cast::<T>();
                            let lanes = group * size_of::<Record<T>>() / size_of::<T>();
                            for lane in (0..lanes).step_by(LANES) {
                                I::stream(to.add(lane), I::load(waiting.cast::<T>().add(lane)));
                            }
                        } else {
                            let skip = begin - first;
                            let to = records.pointer(begin);
                            waiting.add(skip).copy_to_nonoverlapping(to, group - skip);
                        }
                    }
                }
            }
        }
        for (bucket, &place) in places.iter().enumerate() {
            let first = (place / group * group).max(begins[bucket]);
            let from = &groups[bucket * group + first % group..][..place - first];
            // SAFETY: as above.
            unsafe { records.range(first..place) }.copy_from_slice(from);
        }
        // SAFETY: the caller's promise.
        unsafe { I::stream_fence() };
    }
}
