//! Each thread counts the columns of its entries, the counts become the places of its next entry in
//! each column, and entries move there straight from A: two readings of the columns, nothing kept
//! for each entry.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError, TransposeOutput};
use spm_formats::{CsrArrays, CsrView, Scalar, partition};

use super::BoxedPlan;
use super::plan::{Procedure, boxed};
use super::procedures::rows_of;
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
    // One thread counts in the output itself.
    let parts = if threads.count() == 1 { 0 } else { threads.count() };
    let places = Workspace::new(parts * a.cols(), 0);
    let sums = vec![0; threads.count()];
    Ok(boxed(Counting { a, threads, places, sums }))
}

impl<T: Scalar> Counting<'_, T> {
    /// Makes the counts of all parts the places of their first entries, column by column and part
    /// by part; the place of the first part is the column's pointer.
    fn counts_to_places(&mut self, pointers: &mut [u32]) {
        let (cols, parts, threads) = (self.a.cols(), self.threads.count(), &self.threads);
        {
            let (counts, sums) = (&self.places, Disjoint::new(&mut self.sums));
            threads.run(|part| {
                let share = partition::even(cols, parts, part);
                let rows = counts.chunks_exact(cols.max(1));
                let sum = rows.map(|counts| counts[share.clone()].iter().sum::<u32>()).sum();
                // SAFETY: one element for each part.
                unsafe { sums.write(part, sum) };
            });
        }
        pointers[cols] = self.a.entries() as u32;
        let (places, sums) = (Disjoint::new(&mut self.places), &self.sums);
        let pointers = Disjoint::new(pointers);
        threads.run(|part| {
            let share = partition::even(cols, parts, part);
            let mut place = sums[..part].iter().sum::<u32>();
            // SAFETY: shares of columns do not overlap.
            let pointers = unsafe { pointers.range(share.clone()) };
            for (pointer, col) in pointers.iter_mut().zip(share) {
                *pointer = place;
                for row in 0..parts {
                    // SAFETY: as above, and inside threads x columns.
                    let count = unsafe { &mut *places.pointer(row * cols + col) };
                    place += std::mem::replace(count, place);
                }
            }
        });
    }
}

/// On one thread the pointers themselves are the places: that of column c runs at c + 1, and is the
/// end of c, where the next column starts, when all entries are placed.
fn alone<T: Scalar>(
    a: &CsrArrays<'_, T>,
    pointers: &mut [u32],
    indices: &mut [u32],
    values: &mut [T],
) {
    pointers.fill(0);
    let places = &mut pointers[1..];
    for &col in a.col_indices() {
        // SAFETY: CsrArrays has verified that columns are below cols, the length of `places`.
        unsafe { *places.get_unchecked_mut(col as usize) += 1 };
    }
    let mut place = 0;
    for count in &mut *places {
        place += std::mem::replace(count, place);
    }
    for (row, ends) in a.pointers().windows(2).enumerate() {
        let entries = ends[0] as usize..ends[1] as usize;
        for (&col, &value) in a.col_indices()[entries.clone()].iter().zip(&a.values()[entries]) {
            // SAFETY: as above, and places stay below the number of entries, which the plan has
            // checked to be the length of both.
            unsafe {
                let place = places.get_unchecked_mut(col as usize);
                *indices.get_unchecked_mut(*place as usize) = row as u32;
                *values.get_unchecked_mut(*place as usize) = value;
                *place += 1;
            }
        }
    }
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
        if parts == 1 {
            return alone(a, pointers, indices, values);
        }

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
        self.counts_to_places(pointers);

        let (a, threads, places) = (&self.a, &self.threads, Disjoint::new(&mut self.places));
        let (indices, values) = (Disjoint::new(indices), Disjoint::new(values));
        threads.run(|part| {
            // SAFETY: one row for each part.
            let places = unsafe { places.range(part * cols..(part + 1) * cols) };
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
