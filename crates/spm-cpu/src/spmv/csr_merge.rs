//! CSR SpMV by merge path: y_i = sum_j a_ij x_j.
//!
//! The merge path of row ends and entries is divided into partitions of equal length (Merrill and
//! Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016). A partition may
//! begin and end inside a row, so a very long row is balanced too.

use spm_formats::kernel::{Backend, KernelInfo, Operation, Parameters, PlanError};
use spm_formats::partition::{self, MergePoint};
use spm_formats::{CsrView, Scalar};

use super::plan::{Memory, Product, boxed};
use super::{BoxedPlan, row};
use crate::disjoint::Disjoint;
use crate::{PlanOptions, Threads};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-merge",
    operation: Operation::Spmv,
    backend: Backend::Cpu,
    source: "own; Merrill and Garland, SC 2016",
    summary: "merge path: equal partitions of rows and entries; long rows split between threads",
    parameters: &[row::SIMD],
};

struct Merge<'a, T> {
    a: CsrView<'a, T>,
    threads: Threads,
    /// The partition of thread t is between points t and t + 1.
    points: Vec<MergePoint>,
    /// For each thread the partial sum of the row that its partition ends in.
    carries: Vec<T>,
    simd: bool,
}

pub(super) fn plan<'a, T: Scalar>(
    a: CsrView<'a, T>,
    parameters: &Parameters,
    options: &PlanOptions,
) -> Result<BoxedPlan<'a, T>, PlanError> {
    let threads = options.threads.clone();
    let points = partition::by_merge_path(a.row_ptr(), threads.count());
    let carries = vec![T::ZERO; threads.count()];
    Ok(boxed(Merge { a, threads, points, carries, simd: parameters.switch(row::SIMD.name) }))
}

impl<T: Scalar> Product<T> for Merge<'_, T> {
    fn shape(&self) -> (usize, usize) {
        (self.a.rows(), self.a.cols())
    }

    fn memory(&self) -> Memory {
        Memory::borrowed(&self.a, size_of_val(&*self.points) + size_of_val(&*self.carries))
    }

    fn multiply(&mut self, x: &[T], y: &mut [T]) {
        let (a, points, simd) = (&self.a, &self.points, self.simd);
        let all_rows = Disjoint::new(y);
        let carries = Disjoint::new(&mut self.carries);
        self.threads.run(|part| {
            let (from, to) = (points[part], points[part + 1]);
            // SAFETY: the points ascend, so the rows that end in different pieces differ.
            let y = unsafe { all_rows.range(from.row..to.row) };
            // SAFETY: each thread has its own carry.
            let carry = unsafe { &mut carries.range(part..part + 1)[0] };
            let mut start = from.entry;
            if let Some((first, rest)) = y.split_first_mut() {
                // The first row may have begun in a piece before.
                let end = a.row_ptr()[from.row + 1] as usize;
                *first = row::dot_entries(a, start..end, x, simd);
                row::multiply_rows(a, from.row + 1..to.row, x, rest, simd);
                start = a.row_ptr()[to.row] as usize;
            }
            *carry = row::dot_entries(a, start..to.entry, x, simd);
        });
        // In the order of the pieces, whoever finished first.
        for (point, &carry) in self.points[1..].iter().zip(&self.carries) {
            if point.row < self.a.rows() {
                y[point.row] += carry;
            }
        }
    }
}
