//! Transposition by MergeTrans (R3 III-D; H. Wang, W. Liu, K. Hou, W. Feng, "Parallel transposition
//! of sparse data structures", ICS 2016, algorithm 2).
//!
//! Segments of entries that fit a cache are sorted by column. Then sorted segments are merged in
//! pairs until one is left.

use spm_formats::kernel::{
    KernelInfo, ParameterSpec, Parameters, PlanError, TransposeOutput, Value,
};
use spm_formats::{CsrView, Scalar, partition};

use super::BoxedPlan;
use super::KERNEL;
use super::plan::{Procedure, boxed};
use super::procedures::{index_to_pointers, merge, pointers_to_index, segmented_sort};
use crate::disjoint::Disjoint;
use crate::{PlanOptions, Threads};

const SEGMENT: ParameterSpec = ParameterSpec {
    name: "segment",
    meaning: "entries that are sorted at once, 8 bytes each: half of a second-level cache",
    default: Value::Count(1 << 16),
    studied: &[Value::Count(128), Value::Count(1 << 12), Value::Count(1 << 16)],
};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "merge-trans",
    source: "R3 III-D; Wang, Liu, Hou, Feng, ICS 2016, algorithm 2",
    summary: "segments sorted by column, then merged in pairs",
    parameters: &[SEGMENT],
    ..KERNEL
};

struct MergeTrans<'a, T> {
    a: CsrView<'a, T>,
    threads: Threads,
    segment: usize,
    /// Column in the high half, position of the entry in A in the low one: sorting whole keys is
    /// stable, and a round of merges moves 8 bytes an entry whatever the values are.
    keys: Vec<u64>,
    merged: Vec<u64>,
    row_index: Vec<u32>,
    counts: Vec<u32>,
    sums: Vec<u32>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrView<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let threads = options.threads.clone();
    let counters = threads.count() as u128 * a.cols() as u128 * size_of::<u32>() as u128;
    let of_entry = 2 * size_of::<u64>() + size_of::<u32>();
    options.budget.check_bytes(INFO.id, counters + (of_entry * a.nnz()) as u128)?;
    Ok(boxed(MergeTrans {
        segment: parameters.count(SEGMENT.name),
        keys: vec![0; a.nnz()],
        merged: vec![0; a.nnz()],
        row_index: vec![0; a.nnz()],
        counts: vec![0; threads.count() * a.cols()],
        sums: vec![0; threads.count()],
        a,
        threads,
    }))
}

impl<T: Scalar> Procedure<T> for MergeTrans<'_, T> {
    fn matrix(&self) -> &CsrView<'_, T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        let words = self.row_index.len() + self.counts.len() + self.sums.len();
        (words * size_of::<u32>() + (self.keys.len() + self.merged.len()) * size_of::<u64>()) as u64
    }

    fn transpose(&mut self, output: &mut TransposeOutput<T>) {
        let TransposeOutput { col_ptr, row_ind, values } = output;
        let (a, threads) = (&self.a, &self.threads);
        let (entries, parts) = (a.nnz(), threads.count());

        pointers_to_index(threads, a.row_ptr(), &mut self.row_index);
        let keys = Disjoint::new(&mut self.keys);
        threads.run(|part| {
            let piece = partition::even(entries, parts, part);
            // SAFETY: even parts do not overlap.
            let keys = unsafe { keys.range(piece.clone()) };
            for (key, position) in keys.iter_mut().zip(piece) {
                *key = u64::from(a.col_ind()[position]) << 32 | position as u64;
            }
        });

        segmented_sort(threads, &mut self.keys, self.segment);
        let mut segment = self.segment;
        while segment < entries {
            merge(threads, &self.keys, &mut self.merged, segment);
            std::mem::swap(&mut self.keys, &mut self.merged);
            segment *= 2;
        }

        let columns = a.col_ind();
        index_to_pointers(threads, columns, col_ptr, &mut self.counts, &mut self.sums);
        let (keys, row_index) = (&self.keys, &self.row_index);
        let (row_ind, values) = (Disjoint::new(row_ind), Disjoint::new(values));
        threads.run(|part| {
            let piece = partition::even(entries, parts, part);
            // SAFETY: even parts do not overlap.
            let (row_ind, values) =
                unsafe { (row_ind.range(piece.clone()), values.range(piece.clone())) };
            for ((index, value), key) in row_ind.iter_mut().zip(values).zip(&keys[piece]) {
                let position = *key as u32 as usize;
                (*index, *value) = (row_index[position], a.values()[position]);
            }
        });
    }
}
