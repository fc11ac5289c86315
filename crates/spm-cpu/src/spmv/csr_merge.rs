//! CSR SpMV by merge path: y_i = sum_j a_ij x_j.
//!
//! The merge path of row ends and entries is divided into partitions of equal length (Merrill and
//! Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016). A partition may
//! begin and end inside a row, so a very long row is balanced too.

use spm_formats::kernel::{KernelInfo, Parameters, PlanError};
use spm_formats::partition::{self, MergePoint};
use spm_formats::{CsrSource, NewValues, Scalar};

use super::KERNEL;
use super::plan::{Memory, Product, boxed};
use super::row::{self, Summing};
use crate::disjoint::Disjoint;
use crate::kernel::{Planned, Problem};
use crate::pool::Pool;
use crate::scaled::Update;
use crate::simd::PREFETCH;
use crate::{Threads, scaled, values};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-merge",
    source: "own; Merrill and Garland, SC 2016",
    summary: "merge path: equal partitions of rows and entries; long rows split between threads",
    parameters: &[row::SIMD, PREFETCH],
    ..KERNEL
};

struct Merge<'a, T> {
    a: CsrSource<'a, T>,
    threads: Threads,
    /// Pieces of thread t: `shares[t]..shares[t + 1]`.
    shares: Vec<usize>,
    /// Piece p is between points p and p + 1.
    points: Vec<MergePoint>,
    /// For each piece the partial sum of the row that it ends in.
    carries: Pool<Vec<T>>,
    summing: Summing,
}

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, parameters, options, .. } = problem;
    let threads = options.threads.clone();
    let shares = threads.shares(a.view().nnz());
    let pieces = shares[threads.count()];
    let points = partition::by_merge_path(a.view().row_ptr(), pieces);
    let carries = Pool::new(vec![T::ZERO; pieces]);
    Ok(boxed(Merge { a, threads, shares, points, carries, summing: Summing::by(parameters) }))
}

impl<T> Merge<'_, T> {
    fn pieces(&self) -> usize {
        self.points.len() - 1
    }
}

impl<T: Scalar> Product<T> for Merge<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn run_by(&mut self, parameters: &Parameters, threads: &Threads) -> bool {
        self.summing = Summing::by(parameters);
        self.threads = threads.clone();
        true
    }

    fn memory(&self) -> Memory {
        let carries = self.pieces() * T::BYTES;
        let bounds = size_of_val(&*self.points) + size_of_val(&*self.shares);
        Memory::borrowed(&self.a.view(), bounds + carries)
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (a, points, summing) = (self.a.view(), &self.points, self.summing);
        let mut sums = self.carries.take(|| vec![T::ZERO; self.pieces()]);
        let all_rows = Disjoint::new(y);
        let carries = Disjoint::new(&mut sums);
        let multiply = |piece: usize| {
            let (from, to) = (points[piece], points[piece + 1]);
            // SAFETY: the points ascend, so the rows that end in different pieces differ.
            let y = unsafe { all_rows.range(from.row..to.row) };
            // SAFETY: each piece has its own carry.
            let carry = unsafe { &mut carries.range(piece..piece + 1)[0] };
            let mut start = from.entry;
            if let Some((first, rest)) = y.split_first_mut() {
                // The first row may have begun in a piece before.
                let end = a.row_ptr()[from.row + 1] as usize;
                scaled::store(scaling, row::dot_entries(&a, start..end, x, summing), first);
                row::multiply_rows(&a, from.row + 1..to.row, scaling, x, rest, summing);
                start = a.row_ptr()[to.row] as usize;
            }
            *carry = row::dot_entries(&a, start..to.entry, x, summing);
        };
        self.threads.share(&self.shares, |_, piece| multiply(piece));
        // In the order of the pieces, whoever finished first.
        for (point, &carry) in points[1..].iter().zip(&**sums) {
            if point.row < a.rows() {
                scaled::add(scaling, carry, &mut y[point.row]);
            }
        }
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        values::set(&mut self.a, new, Some(&self.threads))
    }
}
