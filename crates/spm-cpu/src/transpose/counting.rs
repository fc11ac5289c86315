//! Each thread counts the columns of its entries, the counts become the places of its next entry in
//! each column, and entries move there straight from A: two readings of the columns, nothing kept
//! for each entry.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, TransposeOutput};
use spm_formats::{CsrArrays, CsrView, Scalar, partition};

use super::BoxedPlan;
use super::plan::{Procedure, boxed};
use super::procedures::{exclusive_scan, rows_of, vertical_scan};
use crate::disjoint::Disjoint;
use crate::workspace::Workspace;
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "counting",
    operation: Operation::Transpose,
    backend: Backend::Cpu,
    source: "own",
    summary: "column counts of each thread as running places; for columns that are near each other",
    parameters: &[],
};

struct Counting<'a, T> {
    a: CsrArrays<'a, T>,
    threads: Threads,
    /// threads x columns.
    places: Workspace<u32>,
    sums: Vec<u32>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: &CsrView<'a, T>,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let (a, threads) = (CsrArrays::new(a)?, options.threads.clone());
    let places = Workspace::new(threads.count() * a.cols(), 0);
    let sums = vec![0; threads.count()];
    Ok(boxed(Counting { a, threads, places, sums }))
}

impl<T: Scalar> Procedure<T> for Counting<'_, T> {
    fn matrix(&self) -> &CsrArrays<'_, T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        ((self.places.len() + self.sums.len()) * size_of::<u32>()) as u64
    }

    fn transpose(&mut self, output: &mut TransposeOutput<T>) {
        let TransposeOutput { pointers, indices, values } = output;
        let (a, threads) = (&self.a, &self.threads);
        let (cols, entries, parts) = (a.cols(), a.entries(), threads.count());

        let places = Disjoint::new(&mut self.places);
        threads.run(|part| {
            // SAFETY: one row for each part.
            let counts = unsafe { places.range(part * cols..(part + 1) * cols) };
            counts.fill(0);
            for &col in &a.col_indices()[partition::even(entries, parts, part)] {
                // SAFETY: CsrArrays has verified that columns are below cols.
                unsafe { *counts.get_unchecked_mut(col as usize) += 1 };
            }
        });

        vertical_scan(threads, &mut self.places, cols, &mut pointers[..cols]);
        pointers[cols] = exclusive_scan(threads, &mut pointers[..cols], &mut self.sums);

        let (places, starts) = (Disjoint::new(&mut self.places), &pointers[..cols]);
        let (indices, values) = (Disjoint::new(indices), Disjoint::new(values));
        threads.run(|part| {
            // SAFETY: one row for each part.
            let places = unsafe { places.range(part * cols..(part + 1) * cols) };
            for (place, start) in places.iter_mut().zip(starts) {
                *place += start;
            }
            for (row, entries) in rows_of(a.pointers(), partition::even(entries, parts, part)) {
                let columns = &a.col_indices()[entries.clone()];
                for (&col, &value) in columns.iter().zip(&a.values()[entries]) {
                    // SAFETY: CsrArrays has verified that columns are below cols; each part has as
                    // many places in a column, from its place on, as it has entries there.
                    unsafe {
                        let place = places.get_unchecked_mut(col as usize);
                        indices.write_unchecked(*place as usize, row as u32);
                        values.write_unchecked(*place as usize, value);
                        *place += 1;
                    }
                }
            }
        });
    }
}
