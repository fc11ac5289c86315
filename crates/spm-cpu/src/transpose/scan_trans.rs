//! Transposition by ScanTrans (R3 III-C; H. Wang, W. Liu, K. Hou, W. Feng, "Parallel transposition
//! of sparse data structures", ICS 2016, algorithm 1).
//!
//! Each thread counts the entries of its partition in each column and stores each entry's position
//! among those. Two scans turn the counts into positions in the output. Then all entries are moved.

use spm_formats::kernel::{KernelInfo, Parameters, PlanError, TransposeOutput};
use spm_formats::{CsrView, Scalar, partition};

use super::BoxedPlan;
use super::KERNEL;
use super::plan::{Procedure, boxed};
use super::procedures::{ChunksOfRows, exclusive_scan, vertical_scan};
use crate::disjoint::Disjoint;
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "scan-trans",
    source: "R3 III-C; Wang, Liu, Hou, Feng, ICS 2016, algorithm 1",
    summary: "column counts of each thread, scanned over threads and over columns",
    parameters: &[],
    ..KERNEL
};

struct ScanTrans<'a, T> {
    a: CsrView<'a, T>,
    threads: Threads,
    /// threads x columns: the number of entries of a column in a thread's partition; after the
    /// vertical scan the number in the partitions before it.
    inter: Vec<u32>,
    /// For each entry: the number of earlier entries of the same column in the same partition.
    intra: Vec<u32>,
    sums: Vec<u32>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrView<'a, T>,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let threads = options.threads.clone();
    let words = threads.count() as u128 * a.cols() as u128 + a.nnz() as u128;
    options.budget.check_bytes(INFO.id, words * size_of::<u32>() as u128)?;
    let (inter, intra) = (vec![0; threads.count() * a.cols()], vec![0; a.nnz()]);
    let sums = vec![0; threads.count()];
    Ok(boxed(ScanTrans { a, threads, inter, intra, sums }))
}

impl<T: Scalar> Procedure<T> for ScanTrans<'_, T> {
    fn matrix(&self) -> &CsrView<'_, T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        let words = self.inter.len() + self.intra.len() + self.sums.len();
        (words * size_of::<u32>()) as u64
    }

    fn transpose(&mut self, output: &mut TransposeOutput<T>) {
        // Entries are written to their places without a check.
        output.check(self.a.cols(), self.a.nnz()).expect("arrays of the matrix's sizes");
        let TransposeOutput { col_ptr, row_ind, values } = output;
        let (a, threads) = (&self.a, &self.threads);
        let (cols, entries, parts) = (a.cols(), a.nnz(), threads.count());

        let (inter, intra) = (Disjoint::new(&mut self.inter), Disjoint::new(&mut self.intra));
        threads.run(|part| {
            let piece = partition::even(entries, parts, part);
            // SAFETY: one row of `inter`, and one piece of `intra`, for each part.
            let (counts, intra) = unsafe {
                (inter.range(part * cols..(part + 1) * cols), intra.range(piece.clone()))
            };
            counts.fill(0);
            for (&col, place) in a.col_ind()[piece].iter().zip(intra) {
                // SAFETY: CsrView promises that columns are below cols.
                let count = unsafe { counts.get_unchecked_mut(col as usize) };
                *place = *count;
                *count += 1;
            }
        });

        vertical_scan(threads, &mut self.inter, cols, &mut col_ptr[..cols]);
        col_ptr[cols] = exclusive_scan(threads, &mut col_ptr[..cols], &mut self.sums);

        let (inter, intra, col_ptr) = (&self.inter, &self.intra, &*col_ptr);
        let (row_ind, values) = (Disjoint::new(row_ind), Disjoint::new(values));
        threads.run(|part| {
            let before = &inter[part * cols..(part + 1) * cols];
            let piece = partition::even(entries, parts, part);
            // The row of each entry is expanded from the row pointers on the fly (R3 IV-G).
            let mut chunks = ChunksOfRows::new(a.row_ptr(), piece);
            while let Some((start, rows)) = chunks.next() {
                let piece = start..start + rows.len();
                let columns = a.col_ind()[piece.clone()].iter();
                let from = columns.zip(&a.values()[piece.clone()]).zip(&intra[piece]).zip(rows);
                for (((&col, &value), &place), &row) in from {
                    let col = col as usize;
                    // SAFETY: CsrView promises that columns are below cols; column, part and
                    // place among the part's entries give each entry a place of its own, below the
                    // number of entries.
                    unsafe {
                        let place = col_ptr.get_unchecked(col) + before.get_unchecked(col) + place;
                        row_ind.write_unchecked(place as usize, row);
                        values.write_unchecked(place as usize, value);
                    }
                }
            }
        });
    }
}
