//! CSR SpMM of R4 3.2 (`parallel_product_CSR`): chunks of rows are distributed to threads;
//! y_ic = sum_j a_ij x_jc.

use spm_formats::kernel::{KernelInfo, PlanError, Schedule};
use spm_formats::{CsrSource, DenseShape, NewValues, Scalar};

use super::KERNEL;
use super::plan::{Memory, Product, boxed};
use super::rows::{Strides, element, static_chunk};
use crate::disjoint::Disjoint;
use crate::kernel::{Planned, Problem};
use crate::scaled::Update;
use crate::{Threads, scaled, values};

pub(super) const INFO: KernelInfo = KernelInfo {
    id: "csr-rows",
    source: "R4 3.2 (parallel_product_CSR)",
    summary: "static chunks of a multiple of 16 rows for each thread",
    parameters: &[],
    ..KERNEL
};

struct Rows<'a, T> {
    a: CsrSource<'a, T>,
    dense: DenseShape,
    threads: Threads,
    chunk: usize,
}

pub(super) fn plan<'a, T: Scalar>(problem: Problem<'a, '_, T>) -> Planned<'a, T> {
    let Problem { a, dense, options, .. } = problem;
    let threads = options.threads.clone();
    let chunk = static_chunk(a.view().rows(), threads.count());
    Ok(boxed(Rows { a, dense, threads, chunk }, dense))
}

impl<T: Scalar> Product<T> for Rows<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.a.view().shape()
    }

    fn memory(&self) -> Memory {
        Memory::borrowed(&self.a.view(), 0)
    }

    fn multiply(&self, scaling: Option<Update<'_, T>>, x: &[T], y: &mut [T]) {
        let (a, dense) = (self.a.view(), self.dense);
        let (in_x, in_y) = (Strides::new(a.cols(), dense), Strides::new(a.rows(), dense));
        let y = Disjoint::new(y);
        self.threads.for_each_chunk(a.rows(), Schedule::Static, self.chunk, |rows| {
            for row in rows {
                for c in 0..dense.k {
                    let at = row * in_y.down + c * in_y.across;
                    // SAFETY: the chunks of a loop do not overlap, and a row's elements of Y are
                    // no other row's.
                    let y = unsafe { &mut y.range(at..at + 1)[0] };
                    scaled::store(scaling, element(&a, row, x, c, in_x), y);
                }
            }
        });
    }

    fn set_values(&mut self, new: NewValues<'_, T>) -> Result<(), PlanError> {
        values::set(&mut self.a, new, Some(&self.threads))
    }
}
