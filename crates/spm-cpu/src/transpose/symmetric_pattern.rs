//! Transposition of a matrix whose pattern is symmetric.
//!
//! Its row pointers and column indices are also those of the transpose: they are copied. The value of each entry
//! (i, j) below the diagonal changes places with that of (j, i), which is found without a search: see
//! [`visit_mirrors`]. Nothing is counted, and each pair of entries is looked up once.

use spm_formats::kernel::{KernelInfo, Parameters, PlanError, TransposeOutput};
use spm_formats::{CsrView, Scalar, partition};

use super::BoxedPlan;
use super::KERNEL;
use super::plan::{Procedure, boxed};
use crate::disjoint::Disjoint;
use crate::symmetry::{asymmetry, visit_mirrors};
use crate::workspace::Workspace;
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "symmetric-pattern",
    source: "own",
    summary: "values of mirrored entries change places; for symmetric patterns",
    parameters: &[],
    ..KERNEL
};

struct SymmetricPattern<'a, T> {
    /// Its pattern is symmetric.
    a: CsrView<'a, T>,
    threads: Threads,
    /// The first row of each thread, and the number of rows.
    bounds: Vec<usize>,
    /// The workspace of [`visit_mirrors`]: threads x rows.
    next: Workspace<u32>,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrView<'a, T>,
    _: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let threads = options.threads.clone();
    let words = threads.count() as u128 * a.rows() as u128;
    options.budget.check_bytes(INFO.id, words * size_of::<u32>() as u128)?;
    if let Some(reason) = asymmetry(&a, &threads, |_, _| true) {
        return Err(PlanError::Unsupported { kernel: INFO.id, reason });
    }
    let bounds = match threads.count() {
        1 => vec![0, a.rows()],
        parts => partition::by_weight(&lower_entries(&a), parts),
    };
    let next = Workspace::new(threads.count() * a.rows(), 0);
    Ok(boxed(SymmetricPattern { a, threads, bounds, next }))
}

/// The entries below the diagonal in the rows before each row, and in all rows; a row counts as one more.
fn lower_entries<T: Scalar>(a: &CsrView<'_, T>) -> Vec<usize> {
    let mut sum = 0;
    let lower = (0..a.rows()).map(|row| {
        let (cols, _) = a.row(row);
        sum += 1 + cols.partition_point(|&col| (col as usize) < row);
        sum
    });
    [0].into_iter().chain(lower).collect()
}

impl<T: Scalar> Procedure<T> for SymmetricPattern<'_, T> {
    fn matrix(&self) -> &CsrView<'_, T> {
        &self.a
    }

    fn workspace_bytes(&self) -> u64 {
        (size_of_val(&*self.next) + size_of_val(&*self.bounds)) as u64
    }

    fn transpose(&mut self, output: &mut TransposeOutput<T>) {
        // Values are written to their places without a check.
        output.check(self.a.cols(), self.a.nnz()).expect("arrays of the matrix's sizes");
        let TransposeOutput { col_ptr, row_ind, values } = output;
        let (a, bounds) = (self.a, &self.bounds);
        let (rows, from) = (a.rows(), a.values());
        col_ptr[rows] = a.nnz() as u32;
        let (col_ptr, row_ind) = (Disjoint::new(col_ptr), Disjoint::new(row_ind));
        let (values, next) = (Disjoint::new(values), Disjoint::new(&mut self.next));
        self.threads.run(|part| {
            let of_part = bounds[part]..bounds[part + 1];
            // SAFETY: one row for each part.
            let next = unsafe { next.range(part * rows..(part + 1) * rows) };
            // SAFETY: the rows of parts do not overlap.
            unsafe { col_ptr.range(of_part.clone()) }
                .copy_from_slice(&a.row_ptr()[of_part.clone()]);
            let entries = a.row_ptr()[of_part.start] as usize..a.row_ptr()[of_part.end] as usize;
            // SAFETY: as above.
            unsafe { row_ind.range(entries.clone()) }.copy_from_slice(&a.col_ind()[entries]);
            visit_mirrors(&a, of_part, next, |entry, mirror| {
                // SAFETY: places of `a`, whose pattern is symmetric: each is visited once, by itself or as the
                // mirror of an entry in the rows of one part.
                unsafe {
                    values.write_unchecked(entry, *from.get_unchecked(mirror));
                    values.write_unchecked(mirror, *from.get_unchecked(entry));
                }
                true
            });
        });
    }
}
